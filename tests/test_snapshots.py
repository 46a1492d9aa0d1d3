"""Snapshots hold what was found and agree with themselves; a page over many holds and tells it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from made_logs import UNSCORED, made_log, made_sample
from or_eval.analysis.responses import read_logs
from or_eval.analysis.snapshots import ABOUT, FILE, read_snapshot
from or_eval.cli import main
from or_eval.dataset_builders.publishing.dataset_folder import read_dataset
from or_eval.dataset_builders.publishing.push_checks import problems
from pages import launched, opened
from report_logs import ATTACK, summary_of, varied


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def log(path: Path, model: str = "m", refused: int = 6, second: int = 0, **spec: Any) -> Path:
    classes = ["direct_refusal", "partial_refusal"]
    samples = [
        made_sample(
            f"p{n}",
            classes[n % 2] if n < refused else 0.0,
            category="ab"[n % 2],
            language="en",
            source="xstest",
            seed_id=f"s{n // 2}",
        )
        for n in range(40)
    ]
    samples.append(made_sample("none", UNSCORED, reason="no_response", language="en"))
    samples += [made_sample(f"t{n}", 1.0, label="toxic", language="zh+en") for n in range(20)]
    return made_log(path, model, samples, second=second, **spec)


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    log(tmp_path / "logs" / "a.eval", task_args={"system_prompt": "secret words"})
    result = run("snapshot", tmp_path / "logs", "--out", tmp_path / "snap")
    assert result.exit_code == 0, result.output
    return tmp_path / "snap"


def test_it_holds_verdicts_and_where_they_came_from_and_no_text(snapshot: Path) -> None:
    rows = pd.read_parquet(snapshot / "responses" / "train.parquet")
    assert len(rows) == 61
    assert rows["prompt"].isna().all()
    assert rows["response"].isna().all()
    assert (rows["refused"].sum(), rows["refused_full"].sum()) == (26, 23)
    assert rows["family"].nunique() == 20 + 1 + 20
    about = json.loads((snapshot / ABOUT).read_text("utf-8"))
    assert [(r["counting"], r["measure"], r["n"], r["refused"]) for r in about["rates"]] == [
        ("strict", "over_refusal", 40, 6),
        ("strict", "toxic_rejection", 20, 20),
        ("full", "over_refusal", 40, 3),
        ("full", "toxic_rejection", 20, 20),
    ]
    assert len(about["runs"][0]["system_prompt_sha256"]) == 64
    everything = b"".join(path.read_bytes() for path in snapshot.rglob("*") if path.is_file())
    assert b"secret words" not in everything
    assert b"prompt p0" not in everything


def test_what_is_read_back_is_what_was_written(snapshot: Path) -> None:
    found = read_snapshot(snapshot).responses
    logs = read_logs(snapshot.parent / "logs").responses
    for name in ("refused", "response_class", "label", "certain", "unscored_because"):
        assert found[name].astype("str").tolist() == logs[name].astype("str").tolist()


@pytest.mark.parametrize(("texts", "prompts", "responses"), [("prompts", 41, 0), ("all", 41, 41)])
def test_texts_of_safe_prompts_go_in_where_they_are_asked_for(
    tmp_path: Path, texts: str, prompts: int, responses: int
) -> None:
    log(tmp_path / "a.eval")
    assert (
        run("snapshot", tmp_path / "a.eval", "--out", tmp_path / "s", "--texts", texts).exit_code
        == 0
    )
    rows = pd.read_parquet(tmp_path / "s" / FILE)
    assert (rows["prompt"].notna().sum(), rows["response"].notna().sum()) == (prompts, responses)
    assert rows[rows["label"] == "toxic"]["prompt"].isna().all()


def test_texts_stay_out_where_a_licence_does_not_allow_them(tmp_path: Path) -> None:
    made_log(tmp_path / "a.eval", "m", [made_sample("p", source="xstest")])
    arguments = ("snapshot", tmp_path / "a.eval", "--out", tmp_path / "s", "--texts", "prompts")
    assert run(*arguments, "--licence", "cc0-1.0").exit_code == 0
    kept = pd.read_parquet(tmp_path / "s" / FILE)["prompt"].notna().sum()
    made_log(tmp_path / "a.eval", "m", [made_sample("p", source="phtest")])
    assert run(*arguments, "--licence", "cc0-1.0").exit_code == 0
    assert (kept, pd.read_parquet(tmp_path / "s" / FILE)["prompt"].notna().sum()) == (1, 0)


def _rows(change: Callable[[pd.DataFrame], pd.DataFrame], rehash: bool = True) -> Any:
    def spoil(folder: Path) -> None:
        import hashlib

        change(pd.read_parquet(folder / FILE)).to_parquet(folder / FILE, index=False)
        if rehash:
            about = json.loads((folder / ABOUT).read_text("utf-8"))
            about["file"] = hashlib.sha256((folder / FILE).read_bytes()).hexdigest()
            (folder / ABOUT).write_text(json.dumps(about), "utf-8")

    return spoil


def _about(**changes: Any) -> Any:
    def spoil(folder: Path) -> None:
        about = json.loads((folder / ABOUT).read_text("utf-8"))
        (folder / ABOUT).write_text(json.dumps(about | changes), "utf-8")

    return spoil


def _better_rate(folder: Path) -> None:
    about = json.loads((folder / ABOUT).read_text("utf-8"))
    about["rates"][0]["rate"] = 0.01
    (folder / ABOUT).write_text(json.dumps(about), "utf-8")


FAULTS = {
    "hash": (_rows(lambda rows: rows.assign(reason="policy"), rehash=False), "by its hash"),
    "columns": (_rows(lambda rows: rows.drop(columns="family")), "the columns must be"),
    "rates": (_better_rate, "the strict made m over_refusal rate"),
    "fewer rows": (_rows(lambda rows: rows.iloc[3:]), "rate isn't that of the rows"),
    "class": (
        _rows(lambda rows: rows.assign(refused=rows["refused"].mask(rows.index == 0, False))),
        "row 1: refused isn't what the class says",
    ),
    "word": (_rows(lambda rows: rows.assign(reason="<b>")), "reason is none of"),
    "id": (_rows(lambda rows: rows.assign(id="x")), "id is no hash"),
    "run": (_rows(lambda rows: rows.assign(run="9")), "run isn't told of"),
    "text": (_rows(lambda rows: rows.assign(prompt="How?")), "doesn't belong there"),
    "version": (_about(schema_version=99), "schema_version"),
    "form": (_about(runs=[{"model": 1}]), "Field required"),
    "key": (_about(scorer="sk-proj-" + "a1B2" * 12), "remove it"),
    "gone": (lambda folder: (folder / ABOUT).unlink(), "can't be read"),
}


@pytest.mark.parametrize(("spoil", "said"), FAULTS.values(), ids=FAULTS)
def test_the_check_tells_what_is_wrong(
    snapshot: Path, spoil: Callable[[Path], None], said: str
) -> None:
    assert run("snapshot", "--check", snapshot).exit_code == 0
    spoil(snapshot)
    result = run("snapshot", "--check", snapshot)
    assert result.exit_code == 1
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_push_takes_it_and_a_folder_with_other_things_is_kept(
    snapshot: Path, tmp_path: Path
) -> None:
    assert problems(read_dataset(snapshot), []) == []
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x", "utf-8")
    result = run("snapshot", tmp_path / "logs", "--out", tmp_path / "mine")
    assert result.exit_code == 1
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_a_model_that_is_a_file_is_named_without_its_folders(tmp_path: Path) -> None:
    made_log(tmp_path / "a.eval", "gguf//home/ana/models/m.gguf", varied(1))
    assert run("snapshot", tmp_path / "a.eval", "--out", tmp_path / "s").exit_code == 0
    assert set(read_snapshot(tmp_path / "s").responses["model"]) == {"gguf/m.gguf"}
    assert "ana" not in (tmp_path / "s" / ABOUT).read_text("utf-8")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a page of four models, one with a hostile name, at two dates, and of one at one."""
    root = tmp_path_factory.mktemp("board")
    for date in (0, 1):
        for model, name in enumerate(("a/one", "b/two", "c/three", ATTACK)):
            refused = 4 + 8 * model + (20 if date and name == "a/one" else 0)
            place = root / f"logs{date}"
            log(place / f"{model}.eval", name, refused)
            _dated(place / f"{model}.eval", date)
        place = root / "snapshots" / f"2026-0{date + 1}"
        assert run("snapshot", root / f"logs{date}", "--out", place).exit_code == 0
    result = run("leaderboard", root / "snapshots", "--out", root / "site")
    assert result.exit_code == 0, result.output
    return root


def _dated(path: Path, month: int) -> None:
    from inspect_ai.log import read_eval_log, write_eval_log

    found = read_eval_log(str(path))
    found.eval.created = f"2026-0{month + 1}-01T12:00:00+00:00"
    write_eval_log(found, str(path))


def test_a_page_ranks_models_and_tells_what_changed(board: Path) -> None:
    found = summary_of(board / "site")
    assert found["kind"] == "leaderboard"
    assert [row["model"] for row in found["models"]][:2] == ["b/two", "c/three"]
    assert {row["date"] for row in found["models"]} == {"2026-02-01"}
    first = found["models"][0]
    assert (first["over_refusal"], first["over_refusal_full"]) == (0.3, 0.15)
    assert first["toxic_rejection_full"] == 1.0
    sure = [row for row in found["changes"] if row["verdict"] == "more than chance"]
    assert [(row["model"], row["label"], row["difference"]) for row in sure] == [
        ("a/one", "safe", 0.5)
    ]
    assert len(found["changes"]) == 8
    assert any(line.startswith("a/one refuses 50.0 points more") for line in found["summary"])


def test_the_page_holds_offline_at_every_width(board: Path) -> None:
    html = (board / "site" / "index.html").read_text("utf-8")
    assert "<script>document.title" not in html
    assert "&lt;script&gt;document.title" in html
    with launched() as browser:
        for width, scheme in ((390, "dark"), (1280, "light"), (2200, "dark")):
            options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
            with opened(browser, board / "site" / "index.html", **options) as (page, heard):
                assert heard == []
                assert page.title().startswith("Over-refusal of 4 models")
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                assert page.locator("#headline tbody tr").count() == 4


def test_each_benchmark_has_a_page_behind_one_with_the_rates_of_all(tmp_path: Path) -> None:
    for task in ("starter", "xstest"):
        for model in ("a/one", "b/two"):
            name = f"{task}-{model[0]}.eval"
            log(tmp_path / "logs" / name, model, refused=4, task=f"or_eval/{task}")
    assert run("snapshot", tmp_path / "logs", "--out", tmp_path / "s").exit_code == 0
    result = run("leaderboard", tmp_path / "s", "--out", tmp_path / "site")
    assert result.exit_code == 0, result.output
    found = summary_of(tmp_path / "site")
    assert found["benchmarks"] == {"starter": "starter", "xstest": "xstest"}
    assert len(summary_of(tmp_path / "site" / "xstest")["models"]) == 2
    html = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert html.count("a/one") >= 2
    assert "responses.parquet" not in html


def test_other_labels_than_the_first_snapshots_are_left_out(board: Path, tmp_path: Path) -> None:
    turned = [made_sample(f"p{n}", 0.0, label="toxic") for n in range(10)]
    turned += [made_sample(f"p{n}", 0.0) for n in range(10, 40)]
    made_log(tmp_path / "a.eval", "z/new", turned)
    _dated(tmp_path / "a.eval", 3)
    assert run("snapshot", tmp_path / "a.eval", "--out", tmp_path / "s").exit_code == 0
    result = run("leaderboard", board / "snapshots", tmp_path / "s", "--out", tmp_path / "site")
    assert result.exit_code == 0, result.output
    found = summary_of(tmp_path / "site")
    assert any(note.startswith("s: 10 responses left out") for note in found["notes"])
    rates = {row["model"]: row["over_refusal"] for row in found["models"]}
    assert rates["b/two"] == 0.3


def test_the_same_model_of_the_same_day_is_refused(board: Path) -> None:
    first = board / "snapshots" / "2026-01"
    twin = board / "twin" / "again"
    assert run("snapshot", board / "logs0", "--out", twin).exit_code == 0
    result = run("leaderboard", first, twin, "--out", board / "other")
    assert result.exit_code == 1
    assert "both hold" in result.output
    assert run("leaderboard", board / "logs0", "--out", board / "other").exit_code == 1
