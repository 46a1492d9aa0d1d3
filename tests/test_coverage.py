"""Intervals cover and equal models are seldom called different: the benchmark's fast part."""

from __future__ import annotations

import pytest

from benchmark_modules import benchmark

coverage = benchmark("coverage")
World, comparison_errors, rate_errors = (
    coverage.World,
    coverage.comparison_errors,
    coverage.rate_errors,
)

UNFRIENDLY = [
    World(10, 20, 0.3, 1),
    World(10, 20, 0.5, 4),
    World(30, 10, 0.3, 5),
    World(250, 1, 0.0, 4),
]


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("world", UNFRIENDLY)
def test_rates_cover_with_few_families_that_agree(world: World, rate: float) -> None:
    assert rate_errors(world, rate, runs=200).covered >= 0.92


@pytest.mark.parametrize(
    ("world", "models"), [(World(10, 20, 0.3, 1), 10), (World(30, 10, 0.3, 1), 5)]
)
def test_equal_models_are_seldom_called_different(world: World, models: int) -> None:
    """McNemar's test with the bootstrap beside it called them so in 83 and 34 of 100 runs."""
    found = comparison_errors(world, (0.3,) * models, runs=50)
    assert found.called <= 0.1
    assert found.pushed <= found.called
    assert found.covered >= 0.9


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("sizes", [(25,) * 10, (100, 50, 25, 10, 5), (200, 3, 3)])
def test_the_mean_over_categories_covers(sizes: tuple[int, ...], rate: float) -> None:
    worlds = [World(size, 1, 0.0) for size in sizes]
    assert coverage.macro_errors(worlds, (rate,) * len(sizes), runs=200).covered >= 0.9


@pytest.mark.parametrize("world", UNFRIENDLY)
def test_differences_cover_where_one_model_differs(world: World) -> None:
    found = comparison_errors(world, (0.05, 0.15), runs=80)
    assert found.covered >= 0.9
    assert found.beyond <= 0.12


def test_ten_families_find_nearly_what_a_test_without_families_does() -> None:
    found = comparison_errors(World(10, 20, 0.0, 1), (0.15, 0.05), runs=150, mcnemar=True)
    assert found.power >= found.mcnemar - 0.1


@pytest.mark.parametrize("world", [World(30, 10, 0.0, 1), World(250, 1, 0.0, 1)])
def test_families_that_turn_out_to_be_no_families_cost_little_power(world: World) -> None:
    found = comparison_errors(world, (0.45, 0.3, 0.3), runs=60, mcnemar=True)
    assert found.power >= found.mcnemar - 0.05


def test_a_design_tells_the_difference_that_it_finds_four_times_in_five() -> None:
    difference, found = coverage.smallest_found(World(40, 3, 0.3, 1), 0.3, 2, runs=60)
    assert 0.05 < difference < 0.35
    assert 0.65 <= found <= 0.95
