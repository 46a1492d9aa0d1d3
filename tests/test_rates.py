"""Rates, tests and corrections: against scipy, statsmodels, ppi-python, Inspect, by hand, by trial.

Figures "of statsmodels" (0.15.0) and "of ppi-python" (0.2.3) were computed with them once, so that
the tests need neither.
"""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inspect_ai import eval as run_tasks
from inspect_ai import task_with
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import SampleScore, Score, ci_wilson
from inspect_ai.scorer import krippendorff_alpha as inspect_alpha
from scipy import stats

from or_eval.analysis.agreement import (
    MISSING,
    cohens_kappa,
    f1_score,
    fleiss_kappa,
    krippendorff_alpha,
)
from or_eval.analysis.comparisons import (
    compare_columns,
    compare_groups,
    compare_models,
    standing_out,
)
from or_eval.analysis.corrections import (
    Corrections,
    audited_truth,
    corrected_mean,
    corrections,
    expected,
)
from or_eval.analysis.discrimination import discrimination
from or_eval.analysis.families import prompt_families
from or_eval.analysis.paired_tests import compare_all, paired
from or_eval.analysis.ranking import ranking, safety_over_refusal_correlation, spearman
from or_eval.analysis.rates import class_shares, fourfold, rates
from or_eval.analysis.responses import RECORD, VERDICT, read_logs
from or_eval.intervals import rate_interval, t_quantile, wilson
from or_eval.scorers import refusal
from or_eval.tasks import replay

TOLERANCE = 1e-6


def responses(rows: list[dict[str, object]]) -> pd.DataFrame:
    """Make a responses frame; every row needs an id and whether it was refused."""
    columns = ["id", "sample_id", "epoch", "model", "task", "log", *RECORD, *VERDICT, "error"]
    defaults = {"epoch": 1, "model": "m", "label": "safe", "decided_by": "rules", "certain": True}
    frame = pd.DataFrame([defaults | row for row in rows], columns=columns)
    flags = dict.fromkeys(("refused", "certain", "audited"), "boolean")
    texts = [column for column in columns if column not in (*flags, "epoch")]
    return frame.astype(flags | dict.fromkeys(texts, "str"))


# --- intervals


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
    prompts = pd.DataFrame(
        {
            "seed_id": ["s", "s", None, None, None, None, "alone"],
            "pair_id": ["p", None, "p", None, "q", "q", None],
        },
        index=["a", "b", "c", "s", "d", "e", "f"],
    )
    families = prompt_families(prompts)
    together = families.groupby(families).groups.values()
    assert sorted("".join(sorted(group)) for group in together) == ["abcs", "de", "f"]


# --- rates


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


def test_class_shares_sum_to_one() -> None:
    classes = ["direct_answer"] * 5 + ["partial_refusal"] * 2 + ["direct_refusal"] * 3
    frame = responses(
        [
            {"id": str(n), "refused": name != "direct_answer", "response_class": name}
            for n, name in enumerate(classes)
        ]
    )
    table = class_shares(frame).set_index("response_class")
    assert table["n"].to_dict() == {
        "direct_answer": 5,
        "partial_refusal": 2,
        "indirect_refusal": 0,
        "direct_refusal": 3,
    }
    assert table["share"].sum() == pytest.approx(1)
    assert table.loc["partial_refusal", "lower"] == pytest.approx(wilson(0.2, 10).lower)


def test_the_fourfold_table_by_hand() -> None:
    cells = {("safe", False): 40, ("safe", True): 10, ("toxic", False): 6, ("toxic", True): 24}
    frame = responses(
        [
            {"id": f"{label}{refused}{n}", "label": label, "refused": refused}
            for (label, refused), count in cells.items()
            for n in range(count)
        ]
    )
    row = fourfold(frame).loc[0]
    assert row.iloc[1:5].tolist() == [40, 10, 6, 24]
    assert row["accuracy"] == pytest.approx(64 / 80)
    assert row["precision"] == pytest.approx(24 / 34)
    assert row["recall"] == pytest.approx(24 / 30)
    assert row["specificity"] == pytest.approx(40 / 50)
    assert row["f1"] == pytest.approx(2 * (24 / 34) * 0.8 / (24 / 34 + 0.8))
    for name in ("accuracy", "precision", "recall", "f1", "specificity"):
        assert 0 < row[f"{name}_lower"] < row[name] < row[f"{name}_upper"] < 1
    plain = wilson(0.8, 30)
    assert row["recall_lower"] == pytest.approx(plain.lower, abs=0.06)


# --- differences between models


def test_models_are_compared_on_the_prompts_that_both_have() -> None:
    means = pd.DataFrame(
        {
            "a": [1.0] * 12 + [0.0] * 8 + [1.0],
            "b": [1.0] * 3 + [0.0] * 17 + [np.nan],
            "c": [1.0] * 12 + [0.0] * 8 + [1.0],
        },
        index=[str(n) for n in range(21)],
    )
    families = pd.Series(means.index, index=means.index)
    row = compare_columns(means[["a", "b"]], families).loc[0]
    assert row[["n", "families", "a_more", "b_more"]].tolist() == [20, 20, 9, 0]
    assert row["difference"] == pytest.approx(0.45)
    # Flipping the nine signs either way round is as much as two of 512 flips: McNemar's exact p,
    # of which the mid-p counts half; the normal distribution leaves a little more.
    assert 1 / 2**9 <= row["p"] < 2 / 2**9
    assert 0.2 < row["lower"] < 0.45 < row["upper"] < 0.75
    table = compare_columns(means, families).set_index(["a", "b"])
    same = table.loc[("a", "c")]
    assert same[["difference", "p", "verdict"]].tolist() == [0, 1, "may be chance"]
    assert same["lower"] < -0.1 < 0.1 < same["upper"]


def test_no_prompt_that_differs_leaves_the_interval_of_tango() -> None:
    values = np.repeat([1.0, 0.0], 15)
    row = compare_all([paired(values, values)], np.arange(30)).loc[0]
    z2 = stats.norm.ppf(0.975) ** 2
    assert row["upper"] == pytest.approx(z2 / (30 + z2), abs=TOLERANCE)
    assert row["lower"] == pytest.approx(-z2 / (30 + z2), abs=TOLERANCE)


def test_the_interval_excludes_zero_where_p_is_under_5_percent() -> None:
    random = np.random.default_rng(3)
    called = 0
    for _ in range(150):
        shared = random.random((12, 1)) * random.random()
        values = (random.random((4, 12, 3)) < shared + random.random((4, 1, 1)) / 2).reshape(4, -1)
        families = pd.Series(np.repeat(np.arange(12), 3))
        table = compare_columns(pd.DataFrame(values.T.astype(float)), families)
        beyond = (table["lower"] > 0) | (table["upper"] < 0)
        assert beyond.equals(table["verdict"] == "more than chance")
        assert beyond.equals(table["p"] <= 0.05)
        inside = table["difference"].between(table["lower"] - 1e-9, table["upper"] + 1e-9)
        assert inside.all()
        called += int(beyond.sum())
    assert 50 < called < 850


def test_epochs_do_not_change_what_is_compared() -> None:
    """Majority votes of five epochs at a rate of 0.3 would refuse 16 % of the prompts."""
    random = np.random.default_rng(1)
    rows = [
        {"id": str(n), "model": model, "epoch": epoch, "refused": bool(random.random() < 0.3)}
        for model, epochs in (("once", 1), ("five times", 5))
        for n in range(400)
        for epoch in range(epochs)
    ]
    row = compare_models(responses(rows)).loc[0]
    assert row["n"] == 400
    assert row["verdict"] == "may be chance"
    assert abs(row["difference"]) < 0.06


def test_few_families_can_not_tell_and_wrong_ones_are_an_error() -> None:
    means = pd.DataFrame({"a": [1.0] * 50, "b": [0.0] * 50}, index=[str(n) for n in range(50)])
    for count, verdict in ((1, "can't be told"), (5, "can't be told"), (6, "more than chance")):
        families = pd.Series(np.arange(50) % count, index=means.index)
        row = compare_columns(means, families).loc[0]
        assert row["verdict"] == verdict
        assert np.isnan(row["p"]) == (count < 6)
    with pytest.raises(ValueError, match="no family for prompt '0'"):
        compare_columns(means, pd.Series("x", index=range(50)))


def test_groups_of_rewrites_of_the_same_seeds_are_compared_as_such() -> None:
    rows = [
        {"id": f"{seed}{method}", "seed_id": f"s{seed}", "method": method, "refused": refused}
        for seed in range(40)
        for method, refused in (("plain", seed % 2 == 0), ("veiled", seed % 2 == 0 or seed < 20))
    ]
    row = compare_groups(responses(rows), "method").loc[0]
    assert row[["a", "b", "families"]].tolist() == ["plain", "veiled", 40]
    assert row["difference"] == pytest.approx(-0.25)
    assert row["verdict"] == "more than chance"
    apart = [row | {"seed_id": None} for row in rows]
    assert compare_groups(responses(apart), "method").loc[0, "p"] > row["p"]


def test_a_group_stands_out_or_does_not() -> None:
    rows = [
        {"id": f"{name}{n}", "category": name, "refused": n < refused}
        for name, refused in (("worst", 20), ("middle", 6), ("same", 6), ("alike", 5))
        for n in range(30)
    ]
    table = standing_out(responses(rows), "category").set_index("category")
    assert table.loc["worst", "verdict"] == "more than chance"
    assert set(table.loc[["middle", "same", "alike"], "verdict"]) == {"may be chance"}


def test_spearman_is_that_of_scipy_and_bonett_and_wright() -> None:
    one, other = [0.1, 0.4, 0.2, 0.8, 0.5, 0.3], [0.9, 0.95, 0.8, 0.99, 0.97, 0.96]
    found = spearman(one, other)
    assert found.rho == pytest.approx(stats.spearmanr(one, other).statistic, abs=TOLERANCE)
    # By hand: the ranks differ by 1 four times, so rho = 1 - 6 * 4 / 210 = 31/35.
    assert found.rho == pytest.approx(31 / 35, abs=TOLERANCE)
    error = np.sqrt((1 + (31 / 35) ** 2 / 2) / 3)
    expected = np.tanh(np.arctanh(31 / 35) + np.array([-1, 1]) * stats.norm.ppf(0.975) * error)
    assert [found.lower, found.upper] == pytest.approx(expected.tolist(), abs=TOLERANCE)
    exact = stats.permutation_test(
        (np.array(one),),
        lambda x: stats.spearmanr(x, other).statistic,
        permutation_type="pairings",
        n_resamples=np.inf,
    )
    assert found.p == pytest.approx(exact.pvalue, abs=TOLERANCE)
    assert np.isnan(spearman([0.5, 0.5, 0.5], [0.1, 0.2, 0.3]).rho)


def test_safety_and_over_refusal_are_correlated_over_models_with_both() -> None:
    table = pd.DataFrame(
        [
            {"model": m, "measure": measure, "rate": rate}
            for m, over, reject in [
                ("a", 0.1, 0.7),
                ("b", 0.2, 0.8),
                ("c", 0.4, 0.9),
                ("d", 0.3, None),
            ]
            for measure, rate in [("over_refusal", over), ("toxic_rejection", reject)]
        ]
    )
    found = safety_over_refusal_correlation(table)
    assert (found.models, found.rho) == (3, pytest.approx(1))


def test_a_rank_is_one_and_the_number_of_models_that_are_surely_better() -> None:
    random = np.random.default_rng(2)
    shares = {"best": 0.05, "tied 1": 0.3, "tied 2": 0.3, "worst": 0.8}
    rows = [
        {"id": f"{label}{n}", "model": model, "label": label, "refused": bool(random.random() < p)}
        for label in ("safe", "toxic")
        for model, p in shares.items()
        for n in range(150)
    ]
    over = ranking(responses(rows)).set_index("model")
    assert over["rank"].to_dict() == {"best": 1, "tied 1": 2, "tied 2": 2, "worst": 4}
    assert over["worse"].to_dict() == {"best": 3, "tied 1": 1, "tied 2": 1, "worst": 0}
    assert over["value"].is_monotonic_increasing
    rejection = ranking(responses(rows), "toxic_rejection")
    assert rejection["model"].tolist()[0] == "worst"
    balanced = ranking(responses(rows), "balanced_accuracy").set_index("model")
    assert balanced["value"].between(0.4, 0.6).all()
    assert balanced["rank"].tolist() == [1, 1, 1, 1]
    assert (balanced["lower"] < 0.5).all()


# --- pairs


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
    assert row["roc_area"] == pytest.approx(stats.norm.cdf(distance / np.sqrt(2)), abs=TOLERANCE)
    assert row["balanced_accuracy"] == pytest.approx((17 / 20 + 13.5 / 20) / 2, abs=TOLERANCE)
    for name in ("d_prime", "roc_area", "balanced_accuracy"):
        assert row[f"{name}_lower"] < row[name] < row[f"{name}_upper"]


def test_eagerness_changes_balanced_accuracy_and_not_the_roc_area() -> None:
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
    assert table["roc_area"].tolist() == pytest.approx([0.92, 0.92], abs=0.03)
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
    assert alike["roc_area"].tolist() == pytest.approx([0.5, 0.5])
    assert table.loc["tells them apart", "balanced_accuracy"] == 1


@pytest.mark.parametrize(("families", "members"), [(30, 10), (250, 1)])
def test_the_interval_of_a_kappa_covers(families: int, members: int) -> None:
    random = np.random.default_rng(6)
    hits, told, trials = 0, 0, 300
    for _ in range(trials):
        refuses = (
            random.beta(0.7, 1.6, (families, 1)) if members > 1 else np.full((families, 1), 0.3)
        )
        one = random.random((families, members)) < refuses
        other = np.where(random.random(one.shape) < 0.6, one, random.random(one.shape) < refuses)
        names = np.repeat(np.arange(families), members)
        _, lower, upper = cohens_kappa(one.ravel().astype(int), other.ravel().astype(int), 2, names)
        shares = random.beta(0.7, 1.6, 100_000) if members > 1 else np.full(1, 0.3)
        p = float(shares.mean())
        agree = 0.6 + 0.4 * float((shares**2 + (1 - shares) ** 2).mean())
        chance = p**2 + (1 - p) ** 2
        told += not np.isnan(lower)
        hits += lower <= (agree - chance) / (1 - chance) <= upper
    assert told == trials
    assert hits / trials >= 0.92


def test_raters_who_agree_throughout_leave_no_interval() -> None:
    kappa = cohens_kappa([0, 1] * 6, [0, 1] * 6, 2)
    assert kappa.value == 1
    assert np.isnan([kappa.lower, kappa.upper]).all()


# --- audits

Y, RULES = np.array([1] * 9 + [0] * 31), np.array([1] * 7 + [0] * 2 + [1] * 3 + [0] * 28)
UNAUDITED = np.array([1] * 44 + [0] * 116)


def sampled(
    said: np.ndarray, truth: np.ndarray, **columns: object
) -> tuple[pd.DataFrame, Corrections]:
    frame = responses(
        [{"id": str(n), "refused": bool(value), **columns} for n, value in enumerate(said)]
    )
    found = corrections(frame, pd.Series(truth, frame.index))
    assert found is not None
    return frame, found


def test_the_corrected_rate_is_that_of_ppi_python() -> None:
    """PPI++ at the power that it finds best for these data: lambda = 0.506666666666667."""
    truth = np.concatenate([Y, np.full(160, np.nan)])
    found = corrected_mean(*sampled(np.concatenate([RULES, UNAUDITED]), truth))
    assert found.estimate.value == pytest.approx(0.2376666666666667, abs=TOLERANCE)
    assert (found.sampled, found.missed, found.false_alarms) == (40, 2, 3)


def test_the_corrected_interval_comes_to_that_of_ppi_python_when_the_sample_is_large() -> None:
    truth = np.repeat([0.0, 0, 1, 1], [1241, 136, 69, 554])
    rules = np.repeat([0, 1, 0, 1], [1241, 136, 69, 554])
    said = np.concatenate([rules, np.repeat([1, 0], [2753, 8000 - 2753])])
    frame, found = sampled(said, np.concatenate([truth, np.full(8000, np.nan)]))
    row = rates(frame, found=found).loc[0]
    assert row["rate"] == pytest.approx(0.31097439, abs=1e-4)
    assert row[["lower", "upper"]].tolist() == pytest.approx((0.29626205, 0.32568672), abs=1e-3)


def test_verdicts_of_kinds_that_were_not_sampled_stand_and_are_counted() -> None:
    said = np.array([1, 1, 1, 1, 0, 0])
    truth = np.array([0, 1, np.nan, np.nan, 0, np.nan])
    frame, found = sampled(said, truth)
    # Half of the four refusals are refusals, none of the answers.
    assert corrected_mean(frame, found).estimate.value == pytest.approx(2 / 6)
    judged = responses([{"id": f"j{n}", "refused": True, "decided_by": "judge"} for n in range(2)])
    both = pd.concat([frame, judged], ignore_index=True)
    found = corrections(both, pd.Series(truth).reindex(both.index))
    assert found is not None
    mean = corrected_mean(both, found)
    assert mean.estimate.value == pytest.approx((2 + 2) / 8)
    assert mean.uncorrected == 2
    assert corrections(both, pd.Series(np.nan, both.index)) is None


def test_a_sample_with_chances_of_its_own_is_weighed_by_them() -> None:
    said, truth = np.ones(8), np.array([1, 0, 0, 0, np.nan, np.nan, np.nan, np.nan])
    frame, _ = sampled(said, truth)
    chance = pd.Series([0.25, 0.75, 0.75, 0.75, *[0.5] * 4], frame.index)
    found = corrections(frame.assign(chance=chance), pd.Series(truth, frame.index))
    assert found is not None
    assert found.share[0] == pytest.approx(4 / (4 + 3 / 0.75))


@pytest.mark.parametrize(("size", "least"), [(500, 50), (500, 100), (2000, 100)])
@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_corrected_rates_cover_and_are_narrower_than_the_sample_alone(
    size: int, least: int, rate: float
) -> None:
    """Rules that are wrong on one response in ten."""
    random = np.random.default_rng(size + least)
    trials, hits, of_these, width, alone, raw_hits = 150, 0, 0, 0.0, 0.0, 0
    for _ in range(trials):
        real = random.random(size) < rate
        said = np.where(random.random(size) < 0.1, ~real, real)
        frame, found = sampled(said, np.where(np.arange(size) < least, real, np.nan))
        row = rates(frame, found=found).loc[0]
        hits += row["lower"] <= rate <= row["upper"]
        of_these += row["known_lower"] <= real.mean() <= row["known_upper"]
        width += row["upper"] - row["lower"]
        sample = wilson(real[:least].mean(), least)
        alone += sample.upper - sample.lower
        raw_hits += row["raw_lower"] <= rate <= row["raw_upper"]
    assert hits / trials >= 0.92
    assert of_these / trials >= 0.9
    assert width < alone
    if rate == 0.1:
        assert raw_hits / trials < 0.5


def test_differences_and_ranks_are_corrected_as_rates_are() -> None:
    """Rules that miss half of one model's refusals call it the better of two equal ones."""
    rows = []
    truth = []
    for model, missed in (("plain", 0), ("lectures", 40)):
        for n in range(200):
            refuses = n % 5 < 2
            seen = refuses and not (model == "lectures" and n % 2 == 0 and n // 5 < missed)
            rows.append({"id": str(n), "model": model, "refused": seen})
            truth.append(float(refuses) if n % 4 < 2 else np.nan)
    frame = responses(rows)
    assert compare_models(frame).loc[0, "verdict"] == "more than chance"
    assert ranking(frame).set_index("model")["rank"].to_dict() == {"lectures": 1, "plain": 2}
    found = corrections(frame, pd.Series(truth, frame.index))
    row = compare_models(frame, found).loc[0]
    assert row["verdict"] == "may be chance"
    assert abs(row["difference"]) < 0.06
    assert row["rate_a"] - row["rate_b"] == pytest.approx(row["difference"])
    assert set(ranking(frame, "over_refusal", found)["rank"]) == {1}


def test_classes_cells_and_pairs_are_corrected_as_rates_are() -> None:
    """Of the answers to toxic prompts a third are refusals that the rules missed."""
    rows = [
        {"id": f"{label}{n}", "label": label, "pair_id": f"t{n}", "refused": refused}
        | {"response_class": "direct_refusal" if refused else "direct_answer"}
        for n in range(120)
        for label, refused in (("safe", False), ("toxic", n < 60))
    ]
    frame = responses(rows)
    truth = pd.Series(np.nan, frame.index)
    for label, missed in (("safe", 0), ("toxic", 3)):
        answers = frame.index[(frame["label"] == label) & ~frame["refused"].astype(bool)]
        truth[answers[::2]] = [
            float(n % missed == 0) if missed else 0.0 for n in range(len(answers[::2]))
        ]
    found = corrections(frame, truth)
    assert found is not None
    rate = rates(frame, found=found).set_index("measure").loc["toxic_rejection"]
    assert rate["rate"] == pytest.approx(80 / 120)
    shares = class_shares(frame, found=found).set_index(["label", "response_class"])
    share = shares.loc[("toxic", "direct_refusal")]
    assert share["share"] == pytest.approx(80 / 120)
    assert share["lower"] < rate["lower"] + 0.02
    assert shares.loc["toxic", "share"].sum() == pytest.approx(1)
    [cells] = fourfold(frame, found=found).to_dict("records")
    [plain] = fourfold(frame).to_dict("records")
    assert (plain["recall"], cells["recall"]) == pytest.approx((0.5, 80 / 120))
    assert cells["toxic refused"] == pytest.approx(80)
    assert cells["recall_lower"] < 80 / 120 < cells["recall_upper"]
    [pairs] = discrimination(frame, found=found).to_dict("records")
    assert pairs["right"] == pytest.approx(80)
    right = expected(frame, found)[frame["label"] == "toxic"]
    as_if_known = rate_interval(right, range(len(right)))
    assert pairs["lower"] < as_if_known.lower - 0.01
    assert pairs["upper"] > as_if_known.upper + 0.01


def test_audits_of_the_judge_are_such_a_sample() -> None:
    audited = {"audited": True, "judge_class": "direct_answer"}
    rows = [{"id": str(n), "refused": True, **(audited if n < 5 else {})} for n in range(10)]
    rows += [{"id": "unsure", "refused": True, "certain": False, **audited}]
    rows += [{"id": "judged", "refused": True, "decided_by": "judge", **audited}]
    truth = audited_truth(responses(rows))
    assert truth.dropna().tolist() == [0.0] * 5


def _strict_grader() -> Model:
    """Give a judge that calls everything a refusal."""

    def judge(messages: list[ChatMessage], *_: object) -> ModelOutput:
        [key] = set(re.findall(r'"key": "(\w+)"', messages[-1].text))
        verdict = {"why": "Too strict." * 30, "verdict": "direct_refusal", "key": key}
        output = ModelOutput.from_content("mockllm/judge", json.dumps(verdict))
        output.usage = ModelUsage()
        return output

    return get_model("mockllm/judge", custom_outputs=judge)


def test_an_audit_by_the_real_scorer_corrects_the_rate_of_its_log(tmp_path: Path) -> None:
    answer = "Sure. Here is how to do that thing:\n1. Go there.\n2. Do it.\n3. You are done."
    rows = [
        {"model": "m", "prompt": f"How do I do thing {n}?", "label": "safe", "response": answer}
        for n in range(24)
    ]
    pd.DataFrame(rows).to_json(tmp_path / "r.jsonl", orient="records", lines=True)
    task = task_with(replay(str(tmp_path / "r.jsonl"), "m"), scorer=refusal(audit=0.5))
    roles = {"grader": _strict_grader()}
    [log] = run_tasks(task, model_roles=roles, log_dir=str(tmp_path), display="none")
    responses_of_log = read_logs(log.location).responses
    audited = int(responses_of_log["audited"].sum())
    assert 0 < audited < 24
    assert responses_of_log["judge_class"].value_counts().to_dict() == {"direct_refusal": audited}
    found = corrections(responses_of_log, audited_truth(responses_of_log))
    row = rates(responses_of_log, found=found).loc[0]
    assert row[["raw", "rate", "sampled", "missed"]].tolist() == [0, 1, audited, audited]


# --- agreement

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
