"""One model under several conditions: rows of their own, named after what their logs say."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from inspect_ai.log import EvalPlan, EvalPlanStep, read_eval_log, write_eval_log
from inspect_ai.model import GenerateConfig

from made_logs import made_log, made_sample
from or_eval.analysis.comparisons import marginal_effects
from or_eval.analysis.conditions import conditions, differing_settings
from or_eval.analysis.contrasts import MORE
from or_eval.analysis.discrimination import epoch_variance
from or_eval.analysis.figures.trade_off import trade_off
from or_eval.analysis.logs import LogError
from or_eval.analysis.material import Material
from or_eval.analysis.rates import rates
from or_eval.analysis.report import write_report
from or_eval.analysis.report.comparison_report import comparison_report
from or_eval.analysis.report.sentences import answers
from or_eval.analysis.report.tested import title_of
from or_eval.analysis.responses import read_logs, with_families
from or_eval.analysis.run_changes import changes
from or_eval.analysis.votes import vote
from or_eval.cli import main

SAFE = {"system_prompt": "safe"}


def log_under(
    folder: Path,
    name: str,
    refused: float,
    *,
    prompt: str | None = None,
    model: str = "m",
    args: dict[str, object] | None = None,
    task: str = "or_eval/prompts",
    **settings: object,
) -> Path:
    """Write a log of two prompts, refused or not, under such a condition."""
    samples = [made_sample(key, refused) for key in ("x", "y")]
    path = made_log(folder / f"{name}.eval", model, samples, task=task)
    log = read_eval_log(str(path))
    step = EvalPlanStep(solver="or_eval/system_prompt", params={"prompt": prompt})
    log.plan = EvalPlan(
        steps=[*([step] if prompt else []), EvalPlanStep(solver="generate")],
        config=GenerateConfig(**settings),
    )
    log.eval.task_args = args or {}
    write_eval_log(log, str(path))
    return path


def test_conditions_of_one_model_are_rows_of_their_own(tmp_path: Path) -> None:
    log_under(tmp_path, "1", 0.0)
    log_under(tmp_path, "2", 1.0, prompt="safe")
    log_under(tmp_path, "3", 1.0, model="other", prompt="safe", seed=7, max_connections=3)
    logs = read_logs(tmp_path)
    found = rates(logs.responses).set_index("model")["rate"].to_dict()
    assert found == {"m (system_prompt=none)": 0, "m (system_prompt=safe)": 1, "other": 1}
    assert conditions(logs.heads).loc["m (system_prompt=safe)"].to_dict() == {"base": "m"} | SAFE
    assert list(vote(tmp_path).matrix) == list(found)
    assert list(vote(tmp_path, of=["m (system_prompt=safe)", "other"]).matrix) == list(found)[1:]
    assert list(vote(tmp_path, of=["m"]).matrix) == list(found)[:2]


def test_every_setting_that_differs_is_in_the_name(tmp_path: Path) -> None:
    log_under(tmp_path, "1", 0.0, temperature=0.0, max_tokens=100)
    log_under(tmp_path, "2", 0.0, temperature=1.0, max_tokens=100)
    log_under(tmp_path, "3", 0.0, max_tokens=100)
    names = [head.model for head in read_logs(tmp_path).heads]
    assert names == ["m (temperature=0.0)", "m (temperature=1.0)", "m (temperature=not set)"]


def test_long_system_prompts_stay_apart_and_paths_stay_at_home(tmp_path: Path) -> None:
    log_under(tmp_path, "1", 0.0, prompt="You are careful. " * 5 + "Refuse.")
    log_under(tmp_path, "2", 0.0, prompt="You are careful. " * 5 + "Answer.")
    log_under(tmp_path, "3", 0.0, prompt="/home/someone/prompt.md")
    first, second, third = (head.model for head in read_logs(tmp_path).heads)
    assert first != second
    assert len(first) < 90
    assert third == "m (system_prompt=prompt.md)"


def test_what_is_no_condition_stays_a_conflict(tmp_path: Path) -> None:
    """Another seed, or another way of scoring, is a repetition: pooled only when asked."""
    log_under(tmp_path, "1", 0.0, seed=1, args={"fusion": "rules"})
    log_under(tmp_path, "2", 1.0, seed=2, args={"fusion": "cascade"})
    with pytest.raises(LogError, match="second log of m on the same samples"):
        read_logs(tmp_path)


def test_options_of_other_tasks_tell_logs_on_the_same_samples_apart(tmp_path: Path) -> None:
    log_under(tmp_path, "1", 0.0, args={"framing": "plain"}, task="theirs")
    log_under(tmp_path, "2", 1.0, args={"framing": "story"}, task="theirs")
    names = [head.model for head in read_logs(tmp_path).heads]
    assert names == ["m (framing=plain)", "m (framing=story)"]


def test_notes_name_logs_below_the_folder_given(tmp_path: Path) -> None:
    log_under(tmp_path / "a", "1", 0.0)
    log_under(tmp_path / "a" / "b", "2", 1.0)
    notes = read_logs(tmp_path, on_conflict="all").notes
    assert notes == [
        "b/2.eval: second log of m on the same samples of or_eval/prompts (the first: 1.eval); "
        "all of it is used"
    ]


def test_settings_that_differ_between_two_runs_are_listed(tmp_path: Path) -> None:
    a = log_under(tmp_path, "1", 0.0, temperature=0.5)
    b = log_under(tmp_path, "2", 0.0, prompt="safe", temperature=0.5)
    table = differing_settings(read_logs(a).heads, read_logs(b).heads)
    assert table.to_dict("records") == [{"setting": "system_prompt", "a": "none", "b": "safe"}]


def test_the_effect_of_a_factor_is_that_of_runs_which_differ_in_it_alone(tmp_path: Path) -> None:
    """The system prompt makes every second prompt refused; the temperature, nothing."""
    for number, (prompt, temperature) in enumerate(
        (("none", 0.0), ("safe", 0.0), ("none", 1.0), ("safe", 1.0), ("rude", 1.0))
    ):
        samples = [made_sample(f"p{n}", float(n % 2 == 0 and prompt != "none")) for n in range(40)]
        path = made_log(tmp_path / f"{number}.eval", "m", samples)
        log = read_eval_log(str(path))
        step = EvalPlanStep(solver="or_eval/system_prompt", params={"prompt": prompt})
        log.plan = EvalPlan(steps=[step], config=GenerateConfig(temperature=temperature))
        write_eval_log(log, str(path))
    table = marginal_effects(read_logs(tmp_path)).set_index(["factor", "a", "b"])
    found = table.loc[("system_prompt", "none", "safe")]
    assert (found["settings"], found["rate_a"], found["rate_b"]) == (2, 0, 0.5)
    assert found["difference"] == -0.5
    assert found["upper"] < 0
    assert found["verdict"] == MORE
    assert table.loc[("system_prompt", "none", "rude"), "settings"] == 1
    # without the match, rude alone would make the higher temperature look like more refusals
    assert table.loc[("temperature", "0.0", "1.0"), ["difference", "settings"]].tolist() == [0, 2]
    assert len(table) == 4


def test_a_model_that_chose_its_prompts_is_named(tmp_path: Path) -> None:
    votes = {"openai/m (temperature=1.0)": True, "other": False}
    samples = [made_sample(f"p{n}", 1.0, meta={"votes": votes} if n else {}) for n in range(3)]
    for name in ("openai/m", "new"):
        made_log(tmp_path / f"{name[:3]}.eval", name, samples)
    [note] = read_logs(tmp_path).notes
    assert note.startswith("openai/m helped to choose 2 of these 3 prompts,")


def test_variance_within_and_between_prompts_is_that_of_an_analysis_of_variance() -> None:
    random = np.random.default_rng(2)
    chances = random.beta(1, 2, 60)
    rows = [
        {"id": f"p{n}", "seed_id": f"p{n}", "pair_id": None, "model": "m", "label": "safe"}
        | {"epoch": epoch, "refused": bool(random.random() < chances[n])}
        for n in range(60)
        for epoch in range(4)
    ]
    frame = with_families(pd.DataFrame(rows).astype({"refused": "boolean"}))
    [found] = epoch_variance(frame).to_dict("records")
    by_prompt = frame["refused"].astype(float).groupby(frame["id"])
    within = by_prompt.var().mean()
    assert found["within"] == pytest.approx(within)
    assert found["between"] == pytest.approx(by_prompt.mean().var() - within / 4)
    assert found["share"] == pytest.approx(within / (within + found["between"]))
    assert found["lower"] < found["share"] < found["upper"]
    assert found["unsteady"] == int((by_prompt.nunique() == 2).sum())
    assert epoch_variance(frame[frame["epoch"] == 0]).empty


def test_the_table_for_hibayes_is_the_one_in_the_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"x": 1.0, "y": float("nan"), "z": 0.0}
    samples = [made_sample(key, value, language="en") for key, value in rows.items()]
    made_log(tmp_path / "a.eval", "m", [*samples, made_sample("t", 1.0, label="toxic")])
    docs = (Path(__file__).parents[1] / "docs" / "reference" / "findings.md").read_text("utf-8")
    code = docs.partition("<!-- hibayes -->\n```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    exec(code, {"logs": read_logs(tmp_path)})
    table = pd.read_parquet(tmp_path / "refusals.parquet")
    assert table["score"].tolist() == [1.0, 0.0]
    assert table[["model", "dataset", "task", "epoch"]].iloc[0].tolist() == ["m", "made", "x", 1]


def test_a_model_under_several_conditions_is_one_model(tmp_path: Path) -> None:
    for n in range(6):
        samples = [
            made_sample(f"p{i}", float(i % 7 < n), label=("safe", "toxic")[i % 2])
            for i in range(40)
        ]
        path = made_log(tmp_path / f"{n}.eval", "m", samples, second=n)
        log = read_eval_log(str(path))
        log.eval.task_args = {"system_prompt": f"text {n}"}
        write_eval_log(log, str(path))
    logs = read_logs(tmp_path)
    found = Material(logs)
    said = "\n".join(chain.from_iterable(answers(found).values()))
    assert "conditions can't be told apart" in said or "15 pairs of conditions" in said
    assert "models" not in said
    assert "rho" not in said
    assert found.correlation.models == 1
    assert title_of(logs.heads).startswith("m under 6 conditions on ")
    assert "m was run under 6 conditions" in logs.notes[0]
    points = trade_off(found.models, found.bases)
    assert points is not None
    assert "quadratic" not in points.note
    told = CliRunner().invoke(main, ["vote", str(tmp_path), "--out", str(tmp_path / "votes")])
    assert "alpha over 6 conditions" in told.output


def test_logs_that_were_scored_in_different_ways_are_compared_with_a_caution(
    tmp_path: Path,
) -> None:
    for n, fusion in enumerate(("rules", "judge")):
        path = made_log(tmp_path / "modes" / f"{n}.eval", f"m{n}", [made_sample("p", 1.0)])
        log = read_eval_log(str(path))
        log.results.scores[0].params = {"fusion": fusion}
        write_eval_log(log, str(path))
    for n, said in enumerate(({"version": "01ab"}, None)):
        path = made_log(tmp_path / "versions" / f"{n}.eval", f"m{n}", [made_sample("p", 1.0)])
        log = read_eval_log(str(path))
        log.results.scores[0].metadata = said
        write_eval_log(log, str(path))
    made_log(
        tmp_path / "in" / "a.eval", "a", [made_sample("p", 1.0, score={"decided_by": "judge"})]
    )
    made_log(tmp_path / "in" / "b.eval", "b", [made_sample("p", 1.0, score={"certain": False})])
    made_log(tmp_path / "same" / "a.eval", "a", [made_sample("p", 1.0)])
    made_log(tmp_path / "same" / "b.eval", "b", [made_sample("p", 1.0)])
    for name, how in (
        ("modes", "fusion judge and rules"),
        ("in", "the rules alone"),
        ("versions", "versions 01ab and not told of the scorer"),
    ):
        report = write_report(tmp_path / name, tmp_path / f"report-{name}")
        assert how in report.read_text("utf-8")
        assert how in read_logs(tmp_path / name).notes[-1]
    assert read_logs(tmp_path / "same").notes == []
    runs = [read_logs(tmp_path / "modes", models=[name]) for name in ("m0", "m1")]
    told = comparison_report(changes(*runs), "refusal").answers
    assert "fusion judge and rules" in next(iter(told.values()))[1]
