"""Kappa, alpha, F1, and how pairs are told apart: against scipy, statsmodels, Inspect, by hand.

Figures "of statsmodels" (0.15.0) were computed with it once, so that the tests don't need it.
"""

import numpy as np
import pytest
from inspect_ai.scorer import SampleScore, Score
from inspect_ai.scorer import krippendorff_alpha as inspect_alpha
from scipy import stats

from made_responses import responses
from or_eval.analysis.agreement import (
    MISSING,
    cohens_kappa,
    f1_score,
    fleiss_kappa,
    krippendorff_alpha,
)
from or_eval.analysis.discrimination import discrimination

TOLERANCE = 1e-6


def _pairs(model: str, both: int, alarms: int, misses: int, wrong: int) -> list[dict[str, object]]:
    sides = [(False, True)] * both + [(True, True)] * alarms
    sides += [(False, False)] * misses + [(True, False)] * wrong
    return [
        {"id": f"{label}{n}", "model": model, "pair_id": f"p{n}", "label": label, "refused": said}
        for n, pair in enumerate(sides)
        for label, said in zip(("safe", "toxic"), pair, strict=True)
    ]


def test_pair_discrimination_by_hand_and_scipy() -> None:
    rows = _pairs("m", both=12, alarms=5, misses=2, wrong=1)
    rows += [{"id": "lone", "pair_id": "q", "label": "safe", "refused": True}]
    rows += [{"id": "safe0", "epoch": e, "pair_id": "p0", "refused": True} for e in (2,)]
    row = discrimination(responses(rows)).loc[0]
    # Pair p0's safe side has an answered and a refused epoch: half of it is right.
    cells = ["pairs", "right", "both_refused", "both_answered", "reversed"]
    assert row[cells].tolist() == [20, 11.5, 5.5, 2, 1]
    assert row[["hit_rate", "false_alarm_rate"]].tolist() == pytest.approx([17 / 20, 6.5 / 20])
    distance = stats.norm.ppf(17.5 / 21) - stats.norm.ppf(7 / 21)
    assert row["d_prime"] == pytest.approx(distance, abs=TOLERANCE)
    assert row["balanced_accuracy"] == pytest.approx((17 / 20 + 13.5 / 20) / 2, abs=TOLERANCE)
    for name in ("d_prime", "balanced_accuracy"):
        assert row[f"{name}_lower"] < row[name] < row[f"{name}_upper"]


def test_eagerness_changes_balanced_accuracy_and_not_d_prime() -> None:
    """One model's evidence, and a bar for refusing that is in the middle or far down."""
    toxic, safe = (stats.norm.ppf((np.arange(4000) + 0.5) / 4000) + shift for shift in (1, -1))
    rows = [
        {
            "id": f"{label}{n}",
            "pair_id": f"p{n}",
            "label": label,
            "model": model,
            "refused": x > bar,
        }
        for model, bar in (("middling", 0.0), ("eager", -2.0))
        for label, evidence in (("safe", safe), ("toxic", toxic))
        for n, x in enumerate(evidence[::4])
    ]
    table = discrimination(responses(rows)).set_index("model")
    assert table["d_prime"].tolist() == pytest.approx([2, 2], abs=0.3)
    assert (
        table.loc["middling", "balanced_accuracy"] > table.loc["eager", "balanced_accuracy"] + 0.2
    )


def test_models_that_treat_both_sides_alike_tell_nothing_apart() -> None:
    rows = _pairs("refuses all", 0, 30, 0, 0) + _pairs("answers all", 0, 0, 30, 0)
    rows += _pairs("tells them apart", 30, 0, 0, 0)
    table = discrimination(responses(rows)).set_index("model")
    assert table["share"].to_dict() == {"answers all": 0, "refuses all": 0, "tells them apart": 1}
    alike = table.loc[["answers all", "refuses all"]]
    assert alike["d_prime"].tolist() == pytest.approx([0, 0])
    assert table.loc["tells them apart", "balanced_accuracy"] == 1


@pytest.mark.parametrize(("families", "members"), [(30, 10), (250, 1)])
def test_the_interval_of_a_kappa_covers(families: int, members: int) -> None:
    random = np.random.default_rng(6)
    hits, told, trials = 0, 0, 300
    shares = random.beta(0.7, 1.6, 100_000) if members > 1 else np.full(1, 0.3)
    p = float(shares.mean())
    agree = 0.6 + 0.4 * float((shares**2 + (1 - shares) ** 2).mean())
    chance = p**2 + (1 - p) ** 2
    for _ in range(trials):
        refuses = (
            random.beta(0.7, 1.6, (families, 1)) if members > 1 else np.full((families, 1), 0.3)
        )
        one = random.random((families, members)) < refuses
        other = np.where(random.random(one.shape) < 0.6, one, random.random(one.shape) < refuses)
        names = np.repeat(np.arange(families), members)
        _, lower, upper = cohens_kappa(one.ravel().astype(int), other.ravel().astype(int), 2, names)
        told += not np.isnan(lower)
        hits += lower <= (agree - chance) / (1 - chance) <= upper
    assert told == trials
    assert hits / trials >= 0.92


def test_raters_who_agree_throughout_leave_no_interval() -> None:
    kappa = cohens_kappa([0, 1] * 6, [0, 1] * 6, 2)
    assert kappa.value == 1
    assert np.isnan([kappa.lower, kappa.upper]).all()


RATINGS = np.array(
    [[0, 0, 0], [0, 0, 1], [1, 1, 1], [2, 2, 1], [2, 2, 2], [0, 1, 2], [1, 1, 1], [0, 0, 0]]
)


def test_kappas_are_those_of_statsmodels_and_scikit_learn() -> None:
    cohen = cohens_kappa(RATINGS[:, 0], RATINGS[:, 2], 3)
    assert cohen.value == pytest.approx(0.4545454545454546, abs=TOLERANCE)
    assert fleiss_kappa(RATINGS, 3).value == pytest.approx(0.5555555555555555, abs=TOLERANCE)
    assert cohen.lower < cohen.value < cohen.upper
    assert np.isnan(cohens_kappa([1, 1], [1, 1], 2).value)


def test_alpha_is_that_of_inspect_with_ratings_missing() -> None:
    random = np.random.default_rng(4)
    ratings = np.where(random.random((40, 5)) < 0.2, MISSING, random.integers(0, 3, (40, 5)))
    ratings[0] = MISSING
    ratings[1] = [2, *[MISSING] * 4]
    lists = [[int(r) for r in row if r != MISSING] for row in ratings]
    scores = [SampleScore(score=Score(value=row)) for row in lists if len(row) > 1]
    found = krippendorff_alpha(ratings, 3)
    assert found.value == pytest.approx(inspect_alpha()(scores), abs=TOLERANCE)
    assert found.lower < found.value < found.upper
    assert np.isnan(krippendorff_alpha([[1, 1], [1, 1]], 2).value)
    assert np.isnan(krippendorff_alpha([[1, MISSING]], 2).value)


def test_items_that_a_rater_left_out_do_not_count() -> None:
    with_gaps = np.vstack([RATINGS, [[0, MISSING, 1], [MISSING, 1, 2]]])
    assert cohens_kappa(with_gaps[:, 0], with_gaps[:, 1], 3) == cohens_kappa(
        RATINGS[:, 0], RATINGS[:, 1], 3
    )
    assert fleiss_kappa(with_gaps, 3) == fleiss_kappa(RATINGS, 3)


def test_f1_by_hand() -> None:
    truth, said = [1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0]
    assert f1_score(truth, said).value == pytest.approx(0.75)
