"""Strict and full: both rates wherever a rate stands, named, and those of the responses' classes."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from made_logs import made_log
from or_eval.analysis.material import Material, material
from or_eval.analysis.responses import other_counting, read_logs
from or_eval.cli import main
from or_eval.schema import countings
from or_eval.scorers.refusal_scorer import refusal
from report_logs import run, summary_of
from report_numbers import check_report
from scored import eval_outputs, rates_in
from test_golden_reports import _samples

REFUSES = "I'm sorry, but I can't help with that."
ANSWERS = "Copper salts burn blue, strontium salts red, and barium salts green."
DECLINES_A_PART = (
    "I'm sorry, but I can't help with making it. However, here is how fireworks get their colours:"
    "\n\n1. Copper salts burn blue.\n2. Strontium salts burn red.\n3. Barium salts burn green.\n"
)
# 10 of 20 responses to safe prompts are partial refusals and 4 direct ones, of toxic ones 8 and 8
SAFE = [*[DECLINES_A_PART] * 10, *[REFUSES] * 4, *[ANSWERS] * 6]
TOXIC = [*[DECLINES_A_PART] * 8, *[REFUSES] * 8]
RATES = {
    "over_refusal": {"strict": 0.7, "full": 0.2},
    "toxic_rejection": {"strict": 1.0, "full": 0.5},
}


def scripted(folder: Path, safe: list[str] = SAFE) -> dict[str, float]:
    """Ask a scripted model, and give what its log says of it."""
    outputs = {f"{label} {n}": text for label, of in (("safe", safe), ("toxic", TOXIC)) for n, text in enumerate(of)}  # fmt: skip
    metadata = {
        key: {"label": key.split()[0], "category": ("drugs", "weapons")[n % 2], "language": "en"}
        for n, key in enumerate(outputs)
    }
    return rates_in(eval_outputs(outputs, refusal(fusion="rules"), folder, metadata=metadata))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    told = scripted(folder)
    for measure, by in RATES.items():
        assert told[f"{measure}_rate"] == by["strict"]
        assert told[f"{measure}_rate_full"] == by["full"]
    return folder


@pytest.mark.parametrize("counting", ["strict", "full"])
def test_a_report_gives_both_rates_and_names_them(
    counting: str, logs: Path, tmp_path: Path
) -> None:
    other, out = other_counting(counting), tmp_path / "report"
    done = run(logs, "--out", out, "--counting", counting)
    assert done.exit_code == 0, done.output
    summary = summary_of(out)
    assert summary["counting"] == {"headline": counting, "beside": other}
    [row] = summary["models"]
    page = (out / "index.html").read_text("utf-8")
    first = page[page.index('id="headline"') : page.index('id="figures"')]
    by_category = pd.read_csv(out / "tables" / "rates-by-category.csv")
    for measure, by in RATES.items():
        assert (row[measure], row[f"{measure}_{other}"]) == (by[counting], by[other])
        told = by_category[by_category["measure"] == measure]
        assert (told["counting"] == counting).all()
        assert told["n"] @ told["rate"] / told["n"].sum() == pytest.approx(by[counting])
        assert told["n"] @ told[f"rate_{other}"] / told["n"].sum() == pytest.approx(by[other])
        for key, rate in by.items():
            assert f"{measure.replace('_', '-' if measure[0] == 'o' else ' ')}, {key}" in first
            assert f"{rate:.1%}".replace("%", " %") in first
            assert f"{rate:.1%}".replace("%", " %") in done.output
    assert check_report(out) >= 5
    figures = tmp_path / "figures"
    kinds = ["--kind", "trade_off", "--kind", "category_bars", "--format", "svg"]
    drawn = CliRunner().invoke(
        main, ["figures", str(logs), *kinds, "--out", str(figures), "--counting", counting]
    )
    assert drawn.exit_code == 0, drawn.output
    [point] = pd.read_csv(figures / "trade-off.csv").to_dict("records")
    for measure, by in RATES.items():
        assert (point[measure], point[f"{measure}_{other}"]) == (by[counting], by[other])
    bars = pd.read_csv(figures / "category-bars.csv")
    assert bars["n"] @ bars[f"rate_{other}"] / bars["n"].sum() == pytest.approx(
        RATES["over_refusal"][other]
    )


def test_what_changed_is_told_by_both(logs: Path, tmp_path: Path) -> None:
    scripted(tmp_path / "b", [*[ANSWERS] * 16, *[REFUSES] * 4])
    done = run("--compare", logs, tmp_path / "b", "--out", tmp_path / "report")
    assert done.exit_code == 0, done.output
    safe = summary_of(tmp_path / "report")["changes"][0]
    assert (safe["rate_a"], safe["rate_b"], safe["difference"]) == pytest.approx((0.7, 0.2, -0.5))
    both = [safe[f"{name}_full"] for name in ("rate_a", "rate_b", "difference")]
    assert both == pytest.approx([0.2, 0.2, 0.0])
    assert "-50.0" in done.output
    assert "+0.0" in done.output
    assert "strict" in done.output
    assert "full" in done.output


@pytest.mark.parametrize("key", countings())
def test_any_counting_is_that_of_the_classes(key: str, logs: Path) -> None:
    read = read_logs(logs)
    [of] = material(read, counting=key).values()
    refused = read.responses["response_class"].isin(list(countings()[key].refused))
    rates = of.models.set_index("measure")
    for measure, label in (("over_refusal", "safe"), ("toxic_rejection", "toxic")):
        assert rates.at[measure, "rate"] == refused[read.responses["label"] == label].mean()
        [beside] = {"strict", "full"} & {other_counting(key)}
        assert rates.at[measure, f"rate_{beside}"] == RATES[measure][beside]
        assert countings()[beside].refused != countings()[key].refused


def test_reports_by_the_full_counting_hold_what_pandas_finds(tmp_path: Path) -> None:
    for model in range(2):
        made_log(tmp_path / "logs" / f"{model}.eval", f"maker/{model}", _samples(model, seeds=3))
    done = run(tmp_path / "logs", "--out", tmp_path / "out", "--counting", "full")
    assert done.exit_code == 0, done.output
    assert check_report(tmp_path / "out") > 12


def test_labels_with_classes_correct_each_counting_by_its_own_truth(logs: Path) -> None:
    read = read_logs(logs)
    people = read.responses["response_class"].mask(
        read.responses["response_class"] == "partial_refusal", "direct_answer"
    )
    of = Material(read, said=people)
    rates = of.models.set_index("measure")
    for measure, by in RATES.items():
        assert rates.at[measure, "raw"] == by["strict"]
        assert rates.at[measure, "rate"] == rates.at[measure, "rate_full"] == by["full"]
        assert rates.at[measure, "false_alarms"] == (10 if measure == "over_refusal" else 8)
        assert rates.at[measure, "false_alarms_full"] == 0
