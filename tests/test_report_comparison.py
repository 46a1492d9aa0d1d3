"""``or-eval report --compare``: which prompts flipped between two runs, and is it chance?"""

from __future__ import annotations

from pathlib import Path

import pytest

from made_logs import UNSCORED, made_log, made_sample, votes_log
from or_eval.analysis.logs import LogError
from or_eval.analysis.report.comparison_report import comparison_report
from or_eval.analysis.report.contents import Report
from or_eval.analysis.responses import read_logs
from or_eval.analysis.run_changes import changes
from pages import launched, opened
from report_logs import run, summary_of


def said(report: Report) -> list[str]:
    return [sentence for sentences in report.answers.values() for sentence in sentences]


def compared(tmp_path: Path):
    return changes(read_logs(tmp_path / "a"), read_logs(tmp_path / "b"))


def test_tells_what_flipped_and_whether_it_is_chance(tmp_path: Path) -> None:
    before = {f"p{n}": 0.0 for n in range(40)} | {"only-a": 1.0}
    after = {f"p{n}": float(n < 12) for n in range(40)} | {"only-b": 1.0}
    after["p39"] = UNSCORED
    votes_log(tmp_path / "a", "m", before)
    votes_log(tmp_path / "b", "m", after)
    result = run("--compare", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    found = summary_of(tmp_path / "out")
    [change] = found["changes"]
    assert (change["n"], change["newly_refused"], change["newly_answered"]) == (39, 12, 0)
    assert change["difference"] == pytest.approx(12 / 39)
    assert change["p"] < 0.001
    assert change["verdict"] == "more than chance"
    assert found["summary"][0] == "Compared: 1 model on the 40 prompts that both runs have."
    assert found["summary"][1] == (
        "Of 39 safe prompts, m newly refuses 12 and newly answers 0, which is more than chance."
    )
    assert {flip["id"] for flip in found["flips"]} == {f"p{n}" for n in range(12)}
    assert {flip["change"] for flip in found["flips"]} == {"newly refused"}
    assert "1 prompt only in run A, left out" in found["notes"]
    with (
        launched() as browser,
        opened(browser, tmp_path / "out" / "index.html") as (page, heard),
    ):
        assert page.locator("h2").first.inner_text() == "What differs between the runs"
        assert page.locator("#filter-concern").input_value() == "changed"
        assert page.locator("#grid tbody tr").count() == 12
        page.locator("#grid tbody button").first.click()
        titles = page.locator("#read summary").all_inner_texts()
        assert titles == ["m, run A: direct answer", "m, run B: direct refusal"]
        assert heard == []


def test_rates_stand_beside_the_shares_that_could_change_them(tmp_path: Path) -> None:
    """A run that was never certain, and one of whose responses a third has no verdict."""
    unsure = [made_sample(f"p{n}", 0.0, score={"certain": False}) for n in range(6)]
    missing = [made_sample(f"p{n}", 1.0 if n < 4 else UNSCORED) for n in range(6)]
    made_log(tmp_path / "a" / "m.eval", "m", unsure)
    made_log(tmp_path / "b" / "m.eval", "m", missing)
    found = compared(tmp_path)
    doubts = ["uncertain_a", "without_verdict_a", "uncertain_b", "without_verdict_b"]
    assert found.rates.loc[0, doubts].tolist() == [1, 0, 0, pytest.approx(1 / 3)]
    report = comparison_report(found, "refusal")
    assert report.headline.frame.loc[0, ["rate_a_unsure", "rate_b_unsure"]].tolist() == [
        *(1, pytest.approx(1 / 3))
    ]


def test_same_run_under_another_name_has_no_change(tmp_path: Path) -> None:
    votes_log(tmp_path / "a", "m", {"p": 1.0, "q": 0.0})
    votes_log(tmp_path / "b", "other", {"p": 1.0, "q": 0.0})
    report = comparison_report(compared(tmp_path), "refusal")
    assert report.findings["flips"] == []
    assert report.findings["changes"][0]["model"] == "m → other"
    assert "too few families" in said(report)[1]
    assert report.picks == []
    assert list(report.headline.frame["verdict"]) == ["can't be told"]


def test_prompts_of_one_family_are_not_taken_for_many(tmp_path: Path) -> None:
    """Ten rewrites of one seed that flip together are one case."""
    for name, value in (("a", 0.0), ("b", 1.0)):
        samples = [made_sample(f"p{n}", value, seed_id="seed") for n in range(10)]
        samples += [made_sample(f"q{n}", 0.0) for n in range(15)]
        made_log(tmp_path / name / "m.eval", "m", samples)
    found = compared(tmp_path)
    assert found.rates.loc[0, ["families", "p"]].tolist() == [16, 0.5]
    assert "which may be chance" in said(comparison_report(found, "refusal"))[1]


def test_many_models_leave_room_for_what_is_sure(tmp_path: Path) -> None:
    for model in range(9):
        surely = model == 4
        votes_log(tmp_path / "a", f"m{model}", {f"p{n}": 0.0 for n in range(20)})
        after = {f"p{n}": float(surely and n < 15) for n in range(20)}
        votes_log(tmp_path / "b", f"m{model}", after)
    sentences = said(comparison_report(compared(tmp_path), "refusal"))
    assert len(sentences) == 3
    assert sentences[1].startswith("Of 20 safe prompts, m4 newly refuses 15")
    assert sentences[2] == "8 other changes may be chance."


def test_what_can_not_be_compared_is_noted(tmp_path: Path) -> None:
    for name, label, text in (("a", "safe", "old"), ("b", "toxic", "new")):
        samples = [
            made_sample("p", 0.0),
            made_sample("relabelled", 1.0, label=label),
            made_sample("rewritten", 1.0, prompt=text),
            made_sample("unlabelled", 1.0, label="unlabelled"),
        ]
        made_log(tmp_path / name / "m.eval", "m", samples)
        made_log(tmp_path / name / "x.eval", f"only-{name}", [made_sample("p", 1.0)])
    found = compared(tmp_path)
    assert found.notes == [
        "1 prompt with another text in run B than in run A, left out",
        "1 prompt labelled neither safe nor toxic, left out",
        "1 prompt safe in one run and toxic in the other, left out",
        "models in one run only, left out: only-a, only-b",
    ]
    assert found.prompts == 1
    assert [head.model for logs in found.runs for head in logs.heads] == ["m", "m"]
    assert list(found.rates["label"]) == ["safe"]


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ({"q": 0.0}, "no safe or toxic prompt in common"),
        ({"p": UNSCORED}, "no prompt with a verdict in both"),
    ],
)
def test_needs_something_in_common(tmp_path: Path, other: dict[str, float], line: str) -> None:
    votes_log(tmp_path / "a", "m", {"p": 1.0})
    votes_log(tmp_path / "b", "m", other)
    result = run("--compare", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert line in result.output
    assert not (tmp_path / "out").exists()


def test_needs_a_model_in_common(tmp_path: Path) -> None:
    for name, models in (("a", "mn"), ("b", "op")):
        for model in models:
            votes_log(tmp_path / name, model, {"p": 1.0})
    with pytest.raises(LogError, match=r"no model in common \(A: m, n; B: o, p\)"):
        compared(tmp_path)
