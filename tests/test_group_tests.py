"""Groups of prompts: pure noise doesn't stand out, and what differs does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmark_modules import benchmark
from made_responses import responses
from or_eval.analysis.comparisons import compare_groups, standing_out
from or_eval.analysis.contrasts import CHANCE, MORE, UNKNOWN

nulls = benchmark("nulls")
Design, apart, across = nulls.Design, nulls.apart, nulls.across

RUNS = 8
"""In which up to two may err: at an error of 5 % more than that is one chance in two hundred."""


def wrong(design: object, rate: float, runs: int = RUNS) -> int:
    groups = int(design.groups.max()) + 1
    return int(
        nulls.count_errors(nulls.Cell(design, (rate,) * groups, nulls.count_errors), 0, runs)[0]
    )


@pytest.mark.parametrize("rate", [0.05, 0.12, 0.35])
@pytest.mark.parametrize("models", [1, 2])
def test_categories_of_pure_noise_do_not_stand_out(models: int, rate: float) -> None:
    assert wrong(Design("", "others", *apart([12] * 10), models, prompt=0.4), rate) <= 2


@pytest.mark.parametrize(
    "design",
    [
        Design("250 prompts in 10 categories", "others", *apart([25] * 10)),
        Design("44 sources", "others", *apart([5] * 44)),
        Design("44 sources, every two", "pairs", *apart([3] * 44)),
        Design("30 families of 10", "others", *apart([3] * 10, 10), 1, 0.6),
        Design("225 English and 25 Chinese", "pairs", *apart([225, 25]), 5, prompt=0.4),
        Design(
            "large families and small", "pairs", *apart([12, 100], [10] * 12 + [1] * 100), 1, 0.6
        ),
        Design("families unlike", "pairs", *apart([20, *[5] * 5], 8), 1, (0.0, *[0.9] * 5)),
        Design("translations alike", "pairs", *across(2, 20, 4), 1, 0.3, 0.5),
        Design("a model asked only some", "others", *apart([12] * 10), 2, 0, 0, 0.4, True),
    ],
    ids=lambda design: design.name,
)
def test_groups_of_pure_noise_do_not_differ(design: object) -> None:
    assert wrong(design, 0.12, 5 if "44" in design.name else RUNS) <= 2


@pytest.mark.parametrize(
    ("sizes", "rates"),
    [([200, *[5] * 8], (0.01, 0.35)), ([200, *[20] * 6], (0.01, 0.12))],
    ids=lambda given: str(given[0]),
)
def test_a_large_group_that_differs_tells_no_small_ones_apart(
    sizes: list[int], rates: tuple[float, float]
) -> None:
    cell = nulls.Cell(
        Design("", "pairs", *apart(sizes)),
        (rates[0], *[rates[1]] * (len(sizes) - 1)),
        nulls.count_errors,
    )
    assert nulls.count_errors(cell, 0, 2 * RUNS)[0] <= 3


def test_two_prompts_that_were_refused_are_not_beyond_chance() -> None:
    rows = [
        {"id": f"{name}{n}", "category": name, "refused": name == "privacy" or n % 2 == 0}
        for name, count in (("fraud", 60), ("drugs", 60), ("hate", 60), ("privacy", 2))
        for n in range(count)
    ]
    table = standing_out(responses(rows), "category").set_index("category")
    assert table.loc["privacy", "verdict"] == UNKNOWN
    assert table.loc["privacy", ["p", "lower", "upper"]].isna().all()
    assert set(table["verdict"].drop("privacy")) == {CHANCE}


def test_no_refusal_tells_nothing() -> None:
    rows = [{"id": str(n), "category": str(n % 4), "refused": False} for n in range(80)]
    assert set(standing_out(responses(rows), "category")["verdict"]) == {UNKNOWN}


@pytest.mark.parametrize(
    ("design", "rates"),
    [
        (Design("categories", "others", *apart([25] * 10)), (0.5, *[0.1] * 9)),
        (Design("a large one", "others", *apart([200, *[5] * 15])), (0.4, *[0.05] * 15)),
        (Design("languages", "pairs", *apart([225, 25]), 3), (0.1, 0.5)),
        (Design("methods of a seed", "pairs", *across(4, 30), 1, 0.5), (0.6, *[0.25] * 3)),
        (Design("large and small", "pairs", *apart([30, 100], [5] * 30 + [1] * 100)), (0.5, 0.15)),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_a_group_that_differs_is_found(design: object, rates: tuple[float, ...]) -> None:
    frame = design.frame()
    for run in range(3):
        refused = design.refused(np.array(rates), np.random.default_rng(run))
        assert any("g00" in names for names in nulls.called(design, frame, refused))


def test_intervals_say_what_verdicts_say_and_hold_the_difference() -> None:
    design, held, told = Design("", "pairs", *apart([40, 60, 25])), 0, set()
    frame = design.frame()
    rates = np.array([0.15, 0.3, 0.3])
    for run in range(20):
        refused = design.refused(rates, np.random.default_rng(run))
        verdicts = pd.array(refused[design.asked()], dtype="boolean")
        table = compare_groups(frame.assign(refused=verdicts), "group")
        assert ((table["lower"] > 0) | (table["upper"] < 0)).equals(table["verdict"] == MORE)
        assert table["difference"].between(table["lower"], table["upper"]).all()
        assert ((table["p"] < 0.05) == (table["verdict"] == MORE)).all()
        truth = np.array([-0.15, -0.15, 0.0])
        held += int(((table["lower"] <= truth) & (truth <= table["upper"])).all())
        told |= set(table["verdict"])
    assert held >= 17
    assert told == {MORE, CHANCE}


def test_models_that_were_asked_other_categories_make_none_of_these_stand_out() -> None:
    called = 0
    for run in range(12):
        random = np.random.default_rng(run)
        asked = (("mild", 0.01, "cdefghij"), ("strict", 0.03, "abc"))
        rows = [
            {
                "id": f"{name}{n}",
                "category": name,
                "model": model,
                "refused": bool(random.random() < rate),
            }
            for model, rate, names in asked
            for name in names
            for n in range(25)
        ]
        called += MORE in set(standing_out(responses(rows), "category")["verdict"])
    assert called <= 2


def test_a_category_that_differs_is_found_though_models_were_asked_other_ones() -> None:
    random = np.random.default_rng(1)
    asked = (("mild", 0.05, "cdefghij"), ("strict", 0.3, "abc"))
    rows = [
        {
            "id": f"{name}{n}",
            "category": name,
            "model": model,
            "refused": bool(random.random() < (0.6 if name == "d" else rate)),
        }
        for model, rate, names in asked
        for name in names
        for n in range(25)
    ]
    table = standing_out(responses(rows), "category").set_index("category")
    assert list(table.index[table["verdict"] == MORE]) == ["d"]


def test_a_model_that_was_asked_some_categories_makes_none_of_them_stand_out() -> None:
    random = np.random.default_rng(1)
    rows = [
        {
            "id": f"{name}{n}",
            "category": name,
            "model": model,
            "refused": bool(random.random() < rate),
        }
        for model, rate, names in (("mild", 0.1, "abcdefgh"), ("strict", 0.9, "ab"))
        for name in names
        for n in range(30)
    ]
    table = standing_out(responses(rows), "category").set_index("category")
    assert MORE not in set(table["verdict"])
    assert table.loc["a", "difference"] == pytest.approx(0, abs=0.2)
