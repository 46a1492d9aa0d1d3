"""Rates, class shares and fourfold tables with their intervals: against scipy, Inspect, by hand.

Figures "of statsmodels" (0.15.0) were computed with it once, so that the tests don't need it.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inspect_ai.scorer import SampleScore, Score, ci_wilson
from scipy import stats

from made_responses import responses
from or_eval.analysis.corrections import (
    corrections,
)
from or_eval.analysis.rates import fourfold, macro_averages, rates
from or_eval.intervals import rate_interval, t_quantile, wilson

TOLERANCE = 1e-6


@pytest.mark.parametrize(
    ("k", "n", "expected"),
    [  # of statsmodels
        (0, 10, (0.0, 0.27753279986288926)),
        (7, 50, (0.06950833427016288, 0.26186193710585537)),
        (499, 500, (0.9887592932948532, 0.9996468636054407)),
    ],
)
def test_wilson_is_that_of_statsmodels_and_scipy(
    k: int, n: int, expected: tuple[float, float]
) -> None:
    of_scipy = stats.binomtest(k, n).proportion_ci(method="wilson")
    found = wilson(k / n, n)
    assert (found.lower, found.upper) == pytest.approx(expected, abs=TOLERANCE)
    assert (found.lower, found.upper) == pytest.approx((of_scipy.low, of_scipy.high), abs=TOLERANCE)


def test_the_quantile_of_students_t_is_that_of_scipy() -> None:
    for freedom in (1, 2.5, 9, 29, 249.3, 20_000):
        assert t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=TOLERANCE)


def test_many_families_have_the_interval_of_inspect_and_few_a_wider_one() -> None:
    random = np.random.default_rng(5)
    families = random.integers(0, 400, 2000)
    values = (random.random(2000) < 0.2 + 0.5 * (families % 3 == 0)).astype(float)
    scores = [
        SampleScore(score=Score(value=float(value)), sample_metadata={"family": int(family)})
        for value, family in zip(values, families, strict=True)
    ]
    of_inspect = ci_wilson(cluster="family")(scores)
    found = rate_interval(values, families)
    assert isinstance(of_inspect, dict)
    assert found.lower == pytest.approx(of_inspect["lower"], abs=1e-3)
    assert found.upper == pytest.approx(of_inspect["upper"], abs=1e-3)
    assert found.upper - found.lower > np.diff(wilson(values.mean(), 2000)[1:])[0]


def test_a_rate_is_clustered_only_where_families_have_several_members() -> None:
    values = [1, 1, 0, 0, 1, 0]
    assert rate_interval(values, list("abcdef")) == wilson(0.5, 6)
    # By hand: families deviate from a half by 1, -1 and 0, so the clustered variance is
    # 3/2 * 2/36, twice the binomial one; three events at 2 and one at the worst case, also 2.
    assert rate_interval(values, list("aabbcc")) == wilson(0.5, 3, t_quantile(2))
    assert np.isnan(rate_interval(values, list("aaaaaa")).lower)
    assert np.isnan(rate_interval([], []).value)


def test_ten_families_that_never_refuse_tell_of_ten_not_of_two_hundred() -> None:
    nothing = rate_interval(np.zeros(200), np.repeat(np.arange(10), 20))
    assert nothing == wilson(0, 10, t_quantile(9))
    assert 0.27 < nothing.upper < 0.35
    all_of_it = rate_interval(np.ones(200), np.repeat(np.arange(10), 20))
    assert all_of_it.lower == pytest.approx(1 - nothing.upper)


def test_of_families_that_never_refuse_a_large_one_counts_as_one_of_all() -> None:
    families = np.repeat(np.arange(51), [200, *[1] * 50])
    none = rate_interval(np.zeros(250), families)
    # By hand: each of 51 families might have been refused as a whole.
    t2 = stats.t.ppf(0.975, 50) ** 2
    assert none.upper == pytest.approx(t2 / (51 + t2), abs=TOLERANCE)
    assert rate_interval(np.ones(250), families).lower == pytest.approx(1 - none.upper)
    # A large family that is seen to be of one mind stands for as many prompts as it has.
    assert rate_interval((families == 0).astype(float), families).lower < 0.2


def test_only_what_was_not_seen_is_supposed_to_be_of_one_mind() -> None:
    values = np.zeros(200)
    values[[0, 20, 40]] = 1
    families = np.repeat(np.arange(10), 20)
    few = rate_interval(values, families)
    # By hand: three families deviate from 0.3 by 0.7, seven by 0.3.
    seen = 10 / 9 * (3 * 0.7**2 + 7 * 0.3**2) / 200**2 / (0.015 * 0.985 / 200)
    weight = 0.5 / (1 + (4 * 3 / 10) ** 3)
    supposed = (3 * seen + weight * 20) / (3 + weight)
    assert few.lower == pytest.approx(wilson(0.015, 200 / seen, t_quantile(9)).lower)
    assert few.upper == pytest.approx(wilson(0.015, 200 / supposed, t_quantile(9)).upper)
    mirrored = rate_interval(1 - values, families)
    assert (1 - mirrored.upper, 1 - mirrored.lower) == pytest.approx(few[1:])


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8)), min_size=1, max_size=60),
    st.booleans(),
)
def test_bounds_lie_around_their_rate_within_0_and_1(
    rows: list[tuple[int, int]], whole: bool
) -> None:
    values = [float(value > 2) if whole else value / 5 for value, _ in rows]
    value, lower, upper = rate_interval(values, [family for _, family in rows])
    if not np.isnan(lower):
        assert 0 <= lower <= value <= upper <= 1
        assert (lower == 0) or value > 0
        assert (upper == 1) or value < 1


@pytest.mark.parametrize("n", [50, 500])
def test_wilson_covers_as_promised(n: int) -> None:
    """Exact coverage, averaged over rates from 2 to 98 %: no chance in it."""
    counts = np.arange(n + 1)
    bounds = np.array([wilson(k / n, n)[1:] for k in counts])
    truths = np.linspace(0.02, 0.98, 193)
    covered = [
        stats.binom.pmf(counts, n, p)[(bounds[:, 0] <= p) & (p <= bounds[:, 1])].sum()
        for p in truths
    ]
    assert 0.93 <= np.mean(covered) <= 0.97


def test_families_join_rewrites_of_a_seed_and_the_sides_of_a_pair() -> None:
    seeds, pairs = (
        ("s", "s", None, None, None, None, "alone"),
        ("p", None, "p", None, "q", "q", None),
    )
    rows = [
        {"id": id, "refused": True, "seed_id": seed, "pair_id": pair}
        for id, seed, pair in zip("abcsdef", seeds, pairs, strict=True)
    ]
    families = responses(rows).set_index("id")["family"]
    together = families.groupby(families).groups.values()
    assert sorted("".join(sorted(group)) for group in together) == ["abcs", "de", "f"]


def test_rates_split_count_and_leave_the_unscored_out() -> None:
    frame = responses(
        [
            {"id": "1", "refused": True, "category": "hate"},
            {"id": "2", "refused": False, "category": "hate"},
            {"id": "3", "refused": None, "category": "hate", "unscored_because": "cut_off"},
            {"id": "4", "refused": None, "category": "hate", "error": "boom"},
            {"id": "5", "refused": True, "label": "toxic"},
            {"id": "6", "refused": True, "label": "unlabelled"},
        ]
    )
    table = rates(frame)
    counts = ["measure", "n", "refused", "unscored", "errors", "families", "rate"]
    assert table[counts].values.tolist() == [
        ["over_refusal", 2, 1, 1, 1, 2, 0.5],
        ["toxic_rejection", 1, 1, 0, 0, 1, 1.0],
    ]
    assert table.loc[0, ["lower", "upper"]].tolist() == pytest.approx(wilson(0.5, 2)[1:])
    by_category = rates(frame, ("model", "category"))
    assert by_category[["category", "n"]].values.tolist() == [["hate", 2]]


def test_no_bound_lies_on_the_wrong_side_of_its_rate() -> None:
    random = np.random.default_rng(4)
    for share in (0.0, 0.02, 0.5, 0.98, 1.0):
        rows = [
            {"id": f"p{n}", "seed_id": f"s{n // 7}", "epoch": epoch}
            | {"refused": bool(random.random() < share), "certain": bool(random.random() < 0.9)}
            for n in range(70)
            for epoch in range(1, 1 + int(random.integers(1, 8)))
        ]
        frame = responses(rows)
        truth = pd.Series(np.where(random.random(len(frame)) < 0.3, frame["refused"], np.nan))
        for found in (None, corrections(frame, truth)):
            [row] = rates(frame, found=found).to_dict("records")
            assert 0 <= row["lower"] <= row["rate"] <= row["upper"] <= 1
            assert 0 <= row["lowest"] <= row["highest"] <= 1
            if share in (0, 1):
                assert row["rate"] == share


def test_rates_cluster_epochs_and_families() -> None:
    rows = [{"id": str(n), "epoch": e, "refused": n % 3 == 0} for n in range(30) for e in (1, 2)]
    table = rates(responses(rows)).loc[0]
    assert (table["n"], table["families"]) == (60, 30)
    one_each = wilson(1 / 3, 30)
    assert table["lower"] < one_each.lower + 0.01
    seeds = [{"id": str(n), "seed_id": f"s{n // 5}", "refused": n % 3 == 0} for n in range(30)]
    assert rates(responses(seeds)).loc[0, "families"] == 6


def test_the_fourfold_table_counts_prompts_as_rates_do() -> None:
    """A prompt that was asked ten times counts as much as one that was asked once."""
    rows = [{"id": "s0", "epoch": epoch, "refused": epoch < 4} for epoch in range(10)]
    rows += [{"id": f"s{n}", "refused": n < 3} for n in range(1, 6)]
    rows += [{"id": f"t{n}", "label": "toxic", "refused": n < 4} for n in range(6)]
    rows += [{"id": "t0", "label": "toxic", "epoch": 2, "refused": None}]
    frame = responses(rows)
    row = fourfold(frame).loc[0]
    over, rejection = rates(frame)["rate"]
    assert (row["safe refused"] / 6, row["toxic refused"] / 6) == pytest.approx((over, rejection))
    assert row["safe refused"] == pytest.approx(2.4)
    assert row[["safe answered", "toxic answered", "toxic refused"]].tolist() == [3.6, 2, 4]
    truth = frame["refused"].astype("float64").where(frame["epoch"] < 3)
    found = corrections(frame, truth)
    by = rates(frame, found=found)["rate"].tolist()
    row = fourfold(frame, found=found).loc[0]
    assert [row["safe refused"] / 6, row["toxic refused"] / 6] == pytest.approx(by)


def test_categories_count_alike_however_many_prompts_they_have() -> None:
    rows = [
        {"id": f"{name}{n}", "category": name, "refused": n < refused}
        for name, count, refused in (("a", 8, 2), ("b", 2, 1), ("none", 0, 0))
        for n in range(count)
    ]
    [row] = macro_averages(responses(rows)).to_dict("records")
    assert (row["groups"], row["rate"]) == (2, (2 / 8 + 1 / 2) / 2)
    # By hand: prompts weigh 1/16 and 1/4, and differ within by 8 * 3/16 and 2 * 1/4 in squares,
    # which leave one of eight and one of two to suppose at the mean's own variance.
    seen = 8 * 3 / 16 / 16**2 + 2 * 1 / 4 / 4**2
    variance = seen + 3 / 8 * 5 / 8 * (1 / 8**2 + 1 / 2**2) / 4
    prompts = 3 / 8 * 5 / 8 / variance
    effective = 1 / (8 / 16**2 + 2 / 4**2)
    freedom = round(min((1 / 8 + 1 / 2) ** 2 / (1 / 8**3 + 1 / 2**3), effective - 1), 1)
    assert row["lower"] == pytest.approx(wilson(3 / 8, prompts, t_quantile(freedom)).lower)
    assert row["lower"] < 0.25 < 0.5 < row["upper"]
    alone = [row for row in rows if row["category"] == "a"]
    assert macro_averages(responses(alone)).empty
