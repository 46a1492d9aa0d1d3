"""Differences between models and groups, ranks and their correlation: by hand and by trial."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from made_responses import responses
from or_eval.analysis.comparisons import (
    compare_groups,
    compare_models,
    standing,
    standing_out,
)
from or_eval.analysis.contrasts import compare_all, contrasts, paired
from or_eval.analysis.ranking import ranking, safety_over_refusal_correlation, spearman
from or_eval.intervals import rate_interval

TOLERANCE = 1e-6


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
    row = contrasts(means[["a", "b"]], families).loc[0]
    assert row[["n", "families", "a_more", "b_more"]].tolist() == [20, 20, 9, 0]
    assert row["difference"] == pytest.approx(0.45)
    # Flipping the nine signs either way round is as much as two of 512 flips: McNemar's exact p,
    # of which the mid-p counts half; the normal distribution leaves a little more.
    assert 1 / 2**9 <= row["p"] < 2 / 2**9
    assert 0.2 < row["lower"] < 0.45 < row["upper"] < 0.75
    table = contrasts(means, families).set_index(["a", "b"])
    same = table.loc[("a", "c")]
    assert same[["difference", "p", "verdict"]].tolist() == [0, 1, "may be chance"]
    assert same["lower"] < -0.1 < 0.1 < same["upper"]


def test_no_prompt_that_differs_leaves_the_interval_of_tango() -> None:
    values = np.repeat([1.0, 0.0], 15)
    row = compare_all([paired(values, values)], np.arange(30)).loc[0]
    z2 = stats.norm.ppf(0.975) ** 2
    assert row["upper"] == pytest.approx(z2 / (30 + z2), abs=TOLERANCE)
    assert row["lower"] == pytest.approx(-z2 / (30 + z2), abs=TOLERANCE)
    # one-sided, and so alike within as much: no prompt differs, with an error of 3 % on each side
    z2 = stats.norm.ppf(0.97) ** 2
    margins = [row[name] for name in ("alike_within", "alike_within_lower", "alike_within_upper")]
    assert margins == pytest.approx(np.array([1, -1, 1]) * z2 / (30 + z2), abs=TOLERANCE)


def test_the_interval_excludes_zero_where_p_is_under_5_percent() -> None:
    random = np.random.default_rng(3)
    called = 0
    for _ in range(150):
        shared = random.random((12, 1)) * random.random()
        values = (random.random((4, 12, 3)) < shared + random.random((4, 1, 1)) / 2).reshape(4, -1)
        families = pd.Series(np.repeat(np.arange(12), 3))
        table = contrasts(pd.DataFrame(values.T.astype(float)), families)
        beyond = (table["lower"] > 0) | (table["upper"] < 0)
        assert beyond.equals(table["verdict"] == "more than chance")
        assert beyond.equals(table["p"] <= 0.05)
        inside = table["difference"].between(table["lower"] - 1e-9, table["upper"] + 1e-9)
        assert inside.all()
        called += int(beyond.sum())
    assert 50 < called < 850


def test_no_difference_is_wider_than_the_intervals_of_its_two_rates_together() -> None:
    random = np.random.default_rng(5)
    families = pd.Series(np.repeat(np.arange(10), 20))
    for rate in (0.01, 0.05, 0.3, 0.99):
        means = pd.DataFrame(random.random((200, 4)) < rate).astype(float)
        rates = [rate_interval(means[model], families) for model in means]
        for row in contrasts(means, families).to_dict("records"):
            a, b = (rates[row[side]] for side in ("a", "b"))
            assert row["lower"] >= min(a.lower - b.upper, 0) - 1e-9
            assert row["upper"] <= max(a.upper - b.lower, 0) + 1e-9


@pytest.mark.parametrize(("first", "second"), [(0, 4), (2, 5), (12, 3), (30, 25)])
def test_bounds_are_those_of_tango_where_every_prompt_is_a_family(first: int, second: int) -> None:
    gaps = np.array([1.0] * first + [-1.0] * second + [0.0] * (200 - first - second))
    row = compare_all([paired(gaps, np.zeros(200))], np.arange(200)).loc[0]

    def inside(at: float) -> bool:
        """Tango's (1998) score test of a difference."""
        linear = (2 - (first - second) / 200) * at - (first + second) / 200
        down = (np.sqrt(linear**2 + 8 * second / 200 * at * (1 - at)) - linear) / 4
        variance = (2 * down + at - at**2) / 200
        return abs(gaps.mean() - at) <= stats.norm.ppf(0.975) * np.sqrt(variance)

    held = [at for at in np.linspace(-0.3, 0.3, 6001) if inside(at)]
    assert row["lower"] == pytest.approx(min(held), abs=0.004)
    assert row["upper"] == pytest.approx(max(held), abs=0.004)


def test_the_smaller_of_two_differences_is_tested_as_if_it_were_alone() -> None:
    """Step by step: the larger one is beyond chance, so that no allowance is needed for it."""
    zero = np.zeros(12)
    large, small = paired(np.ones(12), zero), paired(np.repeat([1.0, -1.0, 0], [7, 1, 4]), zero)
    both, alone = compare_all([large, small], np.arange(12)), compare_all([small], np.arange(12))
    assert both.loc[1, "p"] == alone.loc[0, "p"] < 0.05
    assert both.loc[0, "p"] < both.loc[1, "p"]
    assert both.loc[1, "lower"] > 0


def test_a_cautious_p_is_above_the_share_of_the_flips_that_were_drawn() -> None:
    random = np.random.default_rng(3)
    for families, drawn in ((12, False), (40, True)):
        refused = random.random((3, families)) < [[0.2], [0.5], [0.5]]
        both = [paired(refused[0], other) for other in refused[1:]]
        plain, cautious = (compare_all(both, range(families), cautious=said) for said in (False, True))  # fmt: skip
        above = 2 * np.sqrt(plain["p"] * (1 - plain["p"]) / 2001) if drawn else 0
        assert cautious["p"].to_numpy() == pytest.approx((plain["p"] + above).clip(upper=1).to_numpy())  # fmt: skip
        assert (cautious["lower"] <= plain["lower"]).all()
        assert ((cautious["p"] < 0.05) == (cautious["lower"] > 0) | (cautious["upper"] < 0)).all()


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
        row = contrasts(means, families).loc[0]
        assert row["verdict"] == verdict
        assert np.isnan(row["p"]) == (count < 6)
    with pytest.raises(ValueError, match="no family for prompt '0'"):
        contrasts(means, pd.Series("x", index=range(50)))


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


def of_models(**refused: str) -> pd.DataFrame:
    """Make responses: of each prompt, 1 or 0 for a certain verdict, + or - for one that isn't."""
    return responses(
        [
            {"id": f"p{n}", "model": model, "refused": sign in "1+", "certain": sign in "10"}
            for model, signs in refused.items()
            for n, sign in enumerate(signs)
        ]
    )


def test_a_difference_stands_where_the_test_finds_it_with_verdicts_against_it() -> None:
    def standing_of(a: str, b: str) -> tuple[int, dict[float, int]]:
        frame = of_models(a=a, b=b)
        return tuple(standing(frame, compare_models(frame)))

    always = {0.1: 1, 0.25: 1, 0.5: 1, 1.0: 1}
    assert standing_of("1" * 20 + "0" * 20, "0" * 40) == (1, always)
    # Two prompts of the worst case are no difference beyond chance, whatever their sign.
    assert standing_of("1" * 3 + "+" * 17 + "0" * 20, "0" * 39 + "-")[1][1.0] == 0
    part = standing_of("1" * 12 + "+" * 18 + "0" * 30, "0" * 40 + "-" * 20)[1]
    assert part[0.1] == 1
    assert list(part.values())[-1] == 0
    # B refuses more: its verdicts go to the answers, and those of A to the refusals
    assert standing_of("0" * 40, "1" * 20 + "+" * 2 + "0" * 18) == (1, always)


def test_verdicts_that_are_missing_go_against_a_difference_too() -> None:
    frame = of_models(a="1" * 20 + "0" * 20, b="0" * 40)
    frame.loc[
        frame["id"].isin([f"p{n}" for n in range(17)]) & (frame["model"] == "a"), "refused"
    ] = pd.NA
    told = compare_models(of_models(a="1" * 20 + "0" * 20, b="0" * 40))
    assert list(standing(frame, told).stand.values())[-1] == 0


def test_the_correlation_is_over_models_and_not_over_their_conditions() -> None:
    rows = [
        {"model": f"m{n % 2} ({n})", "measure": measure, "rate": rate + n / 100}
        for n in range(6)
        for measure, rate in (("over_refusal", 0.1), ("toxic_rejection", 0.5))
    ]
    frame = pd.DataFrame(rows)
    bases = {name: name[:2] for name in frame["model"]}
    assert safety_over_refusal_correlation(frame).models == 6
    found = safety_over_refusal_correlation(frame, bases)
    assert found.models == 2
    assert np.isnan(found.rho)
