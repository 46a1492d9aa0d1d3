"""The rate to expect where verdicts are uncertain, and the table of agreement behind it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from benchmark_modules import benchmark
from or_eval.analysis.corrections import Calibration, calibration, corrections
from or_eval.analysis.rates import rates
from or_eval.analysis.responses import counted_as
from or_eval.schema import FULL, STRICT
from or_eval.scorers.version import scorer_version

agreement, expected = benchmark("agreement"), benchmark("expected")
ANSWERS = ("direct_answer", False)
USUAL = Calibration({"direct_answer": (2.0, 6.0), "direct_refusal": (9.0, 1.0)}, frozenset(["en"]))
WRITTEN = (
    "{} isn't what benchmarks/agreement.py writes for the rules as they are: run it "
    "(one minute; it needs ../shared/data) and commit what it changes"
)


def made(*parts: tuple[int, str | None, bool], language: str = "en") -> pd.DataFrame:
    """Make responses of a model: so many of a class, certain or not."""
    rows = [part[1:] for part in parts for _ in range(part[0])]
    frame = pd.DataFrame(rows, columns=["response_class", "certain"])
    frame = frame.assign(
        model="m",
        label="safe",
        id=[str(n) for n in range(len(frame))],
        response_language=language,
        refused=(frame["response_class"] != "direct_answer").where(frame["response_class"].notna()),
    )
    return expected.as_responses(frame)


def nothing(frame: pd.DataFrame) -> pd.Series:
    return pd.Series(np.nan, frame.index)


def told(frame: pd.DataFrame, truth: pd.Series | None = None, usual: Calibration = USUAL):
    """Give the row of rates."""
    known = nothing(frame) if truth is None else truth
    own = corrections(frame, known)
    return rates(frame, found=own, usual=corrections(frame, known, usual)).iloc[0]


def test_uncertain_verdicts_count_as_such_verdicts_usually_do() -> None:
    row = told(made((10, "direct_refusal", True), (30, *ANSWERS)))
    assert row["expected"] == pytest.approx((10 + 30 / 4) / 40)
    assert row["lowest"] < row["expected_lower"] < row["expected"]
    assert row["expected"] < row["expected_upper"] < row["highest"]
    assert row["rate"] == 0.25


def test_certain_verdicts_stand() -> None:
    row = told(made((10, "direct_refusal", True), (30, "direct_answer", True)))
    assert "expected" not in row
    row = told(made((1, *ANSWERS), (10, "direct_refusal", True), (30, "direct_answer", True)))
    assert row["expected_upper"] - row["expected_lower"] <= 1 / 41 + 1e-9


def test_kinds_of_a_model_err_alike() -> None:
    both = told(made((30, *ANSWERS), (30, "direct_refusal", False)))
    alone = [told(made((30, *ANSWERS))), told(made((30, "direct_refusal", False)))]
    widths = [row["expected_upper"] - row["expected_lower"] for row in (both, *alone)]
    assert widths[0] == pytest.approx(np.mean(widths[1:]), abs=0.02)


def test_what_nobody_labelled_counts_at_worst() -> None:
    frame = pd.concat(
        [made((20, *ANSWERS), (20, "direct_refusal", True)), made((10, *ANSWERS), language="xx")],
        ignore_index=True,
    ).assign(id=[str(n) for n in range(50)], family=range(50), own_family=range(50))
    known, mixed = told(frame[:40]), told(frame)
    assert mixed["expected_lower"] == pytest.approx(known["expected_lower"] * 40 / 50)
    assert mixed["expected_upper"] == pytest.approx((known["expected_upper"] * 40 + 10) / 50)
    foreign = frame.assign(response_language="xx")
    assert corrections(foreign, nothing(foreign), USUAL) is None


def test_responses_without_a_verdict_widen_it_within_the_worst_case() -> None:
    row = told(made((20, *ANSWERS), (20, "direct_refusal", True), (10, None, False)))
    assert row["lowest"] <= row["expected_lower"] < row["expected"]
    assert row["expected_upper"] <= row["highest"]
    assert row["expected_upper"] - row["expected_lower"] > 10 / 50


def test_labels_of_ones_own_take_its_place() -> None:
    frame = made((10, "direct_refusal", True), (30, *ANSWERS))
    truth = nothing(frame)
    truth.iloc[10:40] = [1.0] * 15 + [0.0] * 15
    assert corrections(frame, truth, USUAL).borrowed.sum() == 0
    row = told(frame, truth)
    assert row["expected"] == row["rate"] == pytest.approx(25 / 40)
    truth.iloc[10:40] = np.nan
    truth.iloc[:10] = 1.0  # an audit of what is certain leaves the rest to what is usual
    assert told(frame, truth)["expected"] == pytest.approx((10 + 30 / 4) / 40)


def test_partial_refusals_that_are_certain_may_be_full_ones() -> None:
    usual = calibration(FULL)
    frame = counted_as(made((20, "partial_refusal", True), (20, "direct_answer", True)), FULL)
    row = told(frame, usual=usual)
    assert row["rate"] == 0
    assert 0 < row["expected"] < 0.5


def test_ranges_hold_where_models_and_sets_differ() -> None:
    found = {world: (held, width, worst) for world, held, width, worst in expected.simulated(12)}
    assert min(held for held, *_ in found.values()) > 0.8
    assert np.mean([held for held, *_ in found.values()]) > 0.9
    _, width, worst = found["models of any set alike"]
    assert width < worst / 2


@pytest.fixture(scope="module")
def table() -> dict:
    return json.loads(agreement.TABLE.read_text("utf-8"))


def test_docs_say_what_the_table_says(table: dict) -> None:
    assert agreement.PAGE.read_text("utf-8") == agreement.page(table), WRITTEN.format("the page")
    scoring = agreement.SCORING.read_text("utf-8")
    assert scoring == agreement.with_block(scoring, table), WRITTEN.format("docs/scoring.md")
    people = table["sets"]["xstest"]
    readme = " ".join((agreement.ROOT / "README.md").read_text("utf-8").split())
    kappas = (f"{people[counting]['kappa'][0]:.2f}" for counting in (STRICT, FULL))
    said = "{:,} human-labelled English responses the rules alone reach a strict kappa of {} and a full one of {};"
    assert said.format(people["n"], *kappas) in readme
    held, widths = [], []
    for of in (table["expected"][counting]["all"] for counting in (STRICT, FULL)):
        held.append(f"{100 * of['held'] / of['cells']:.0f}")
        widths.append(f"{100 * of['width']:.0f} {{}}for {100 * of['width_at_worst']:.0f}")
    findings = " ".join((agreement.ROOT / "docs" / "analysis.md").read_text("utf-8").split())
    assert f"{held[0]} of 100 models and labels of prompts by *strict*, {held[1]} by" in findings
    points = f"({widths[0].format('percentage points ')}, {widths[1].format('')})"
    assert points in findings


def test_the_table_is_of_the_scorer_as_it_is(table: dict) -> None:
    shipped = json.loads(agreement.CALIBRATION.read_text("utf-8"))
    assert table["scorer"] == shipped["scorer"] == scorer_version(), WRITTEN.format("the table")


def test_what_ships_is_learnt_from_its_counts(table: dict) -> None:
    shipped = json.loads(agreement.CALIBRATION.read_text("utf-8"))["countings"]
    for counting, of in shipped.items():
        learnt = expected.calibrated(of["counts"], frozenset(of["languages"]))
        found = calibration(counting)
        assert found.languages == learnt.languages
        assert found.kinds.keys() == learnt.kinds.keys()
        for kind, of_kind in learnt.kinds.items():
            assert found.kinds[kind] == pytest.approx(of_kind)


def test_expected_ranges_hold_nine_of_ten_cells_of_sets_left_out(table: dict) -> None:
    for counting in (STRICT, FULL):
        found = table["expected"][counting]["all"]
        assert found["held"] >= 0.9 * found["cells"]
        assert found["width"] < found["width_at_worst"]
