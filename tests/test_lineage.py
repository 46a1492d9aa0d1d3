"""What levels, methods and languages add to refusal, seed by seed."""

from __future__ import annotations

import pandas as pd
import pytest

from or_eval.analysis.lineage import OTHER_METHODS, levels, lineage_effects
from or_eval.analysis.paired_tests import CHANCE, MORE
from planted import found, world

FAMILIES = 8


def lineage(*, seeds: bool = True) -> pd.DataFrame:
    """Give base prompts, seed prompts and rewrites by two methods, in two languages."""
    rows = []
    for family in range(FAMILIES):
        base = f"b{family}"
        rows.append((base, "en", None, None))
        for language in ("en", "zh"):
            seed = f"s{family}{language}"
            rows.append((seed, language, "expand", base))
            rows += [(f"{name}{family}{language}", language, name, seed) for name in "xy"]
    frame = pd.DataFrame(rows, columns=["id", "language", "method", "seed_id"])
    frame = frame.astype({"method": "str", "seed_id": "str"}).assign(label="safe", pair_id=None)
    if not seeds:
        frame = frame[frame["method"].isin(["x", "y"])]
    return frame.set_index("id")


def answers(prompts: pd.DataFrame, refused: list[bool]) -> pd.DataFrame:
    return prompts.reset_index().assign(model="m", refused=pd.array(refused, dtype="boolean"))


def test_levels_are_told_by_method_and_seed() -> None:
    prompts = pd.DataFrame(
        {
            "method": [None, "expand", "x", "translation", "translation", "translation"],
            "seed_id": [None, "a", "b", "a", "b", "not here"],
        },
        index=list("abcdef"),
    )
    assert levels(prompts).tolist() == ["base", "seed", "rewrite", "base", "seed", "rewrite"]


def test_each_step_is_compared_with_what_it_was_made_from() -> None:
    """Seed prompts in Chinese and rewrites by x are refused; nothing else is."""
    prompts = lineage()
    refused = (prompts["method"] == "x") | (
        (prompts["method"] == "expand") & (prompts["language"] == "zh")
    )
    table = lineage_effects(answers(prompts, refused.tolist()), prompts)
    told = table.set_index(["step", "a", "b"])[["n", "rate_a", "rate_b", "difference"]]
    assert told.T.to_dict("list") == {
        # the base prompt is English, and so are the seed prompts compared with it
        ("level", "seed", "base"): [FAMILIES, 0, 0, 0],
        ("level", "rewrite", "seed"): [4 * FAMILIES, 0.5, 0.5, 0],
        ("method", "x", "seed"): [2 * FAMILIES, 1, 0.5, 0.5],
        ("method", "y", "seed"): [2 * FAMILIES, 0, 0.5, -0.5],
        ("language", "zh", "en"): [3 * FAMILIES, 2 / 3, 1 / 3, pytest.approx(1 / 3)],
    }
    assert (table["families"] == FAMILIES).all()
    verdicts = table.set_index("a")["verdict"]
    assert verdicts["x"] == verdicts["zh"] == MORE
    assert verdicts["seed"] == CHANCE


def test_methods_are_compared_with_each_other_where_no_seed_was_asked() -> None:
    prompts = lineage(seeds=False)
    table = lineage_effects(answers(prompts, (prompts["method"] == "x").tolist()), prompts)
    methods = table[table["step"] == "method"].set_index("a")
    assert set(methods["b"]) == {OTHER_METHODS}
    assert methods["difference"].to_dict() == {"x": 1, "y": -1}


def test_prompts_with_nothing_in_common_are_not_compared() -> None:
    prompts = lineage().assign(seed_id=None)
    assert lineage_effects(answers(prompts, [True] * len(prompts)), prompts).empty


def test_prompts_without_a_verdict_are_left_out() -> None:
    prompts = lineage()
    responses = answers(prompts, [False] * len(prompts))
    responses.loc[responses["id"] == "b0", "refused"] = pd.NA
    table = lineage_effects(responses, prompts).set_index(["step", "a"])
    assert table.loc[("level", "seed"), "n"] == FAMILIES - 1


def test_a_planted_method_and_measure_are_found_and_nothing_else() -> None:
    """``benchmarks/planted_effects.py`` counts over 200 worlds of each kind."""
    told = found(world(3, 75, planted=True), planted=True)
    assert told.planted_method == told.planted_measure == 1
    assert not told.false_lineage
    assert not told.false_adjusted
    assert told.gain > 0


def test_nothing_is_found_where_nothing_raises_refusal() -> None:
    told = [found(world(seed, 25, planted=False), planted=False) for seed in range(4)]
    assert sum(of.false_lineage + of.false_adjusted + of.false_alone for of in told) == 0
