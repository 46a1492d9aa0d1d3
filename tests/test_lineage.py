"""What levels, methods and languages add to refusal, seed by seed."""

from __future__ import annotations

import pandas as pd
import pytest

from or_eval.analysis.contrasts import CHANCE, MORE
from or_eval.analysis.lineage import CHOSE, OTHER_METHODS, levels, lineage_effects
from or_eval.analysis.rates import by_prompt
from or_eval.analysis.responses import Logs, with_families
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
    frame = frame.astype({"method": "str", "seed_id": "str"}).assign(
        label="safe", pair_id=None, meta=None
    )
    if not seeds:
        frame = frame[frame["method"].isin(["x", "y"])]
    return frame.set_index("id")


def logs(prompts: pd.DataFrame, refused: list[bool], *models: str) -> Logs:
    answered = prompts.reset_index().assign(refused=pd.array(refused, dtype="boolean"), log="")
    responses = [answered.assign(model=model) for model in models or ("m",)]
    frame = with_families(pd.concat(responses, ignore_index=True))
    return Logs([], prompts.assign(family=by_prompt(frame, "family")), frame, [])


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
    table = lineage_effects(logs(prompts, refused.tolist()))
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
    table = lineage_effects(logs(prompts, (prompts["method"] == "x").tolist()))
    methods = table[table["step"] == "method"].set_index("a")
    assert set(methods["b"]) == {OTHER_METHODS}
    assert methods["difference"].to_dict() == {"x": 1, "y": -1}


def test_prompts_with_nothing_in_common_are_not_compared() -> None:
    prompts = lineage().assign(seed_id=None)
    assert lineage_effects(logs(prompts, [True] * len(prompts))).empty


def test_prompts_without_a_verdict_are_left_out() -> None:
    prompts = lineage()
    answered = logs(prompts, [False] * len(prompts))
    answered.responses.loc[answered.responses["id"] == "b0", "refused"] = pd.NA
    table = lineage_effects(answered).set_index(["step", "a"])
    assert table.loc[("level", "seed"), "n"] == FAMILIES - 1


def test_base_prompts_that_a_model_chose_are_not_compared_for_it() -> None:
    """All base prompts are refused, as those are that a model was asked to choose; nothing else."""
    prompts = lineage()
    seeds = prompts["method"] == "expand"
    prompts["meta"] = prompts["meta"].mask(
        seeds, pd.Series([{"chosen_by": ["m"]}] * len(prompts), prompts.index)
    )
    base = prompts["seed_id"].isna()
    translated = prompts[base].assign(
        language="zh", method="translation", seed_id=prompts.index[base]
    )
    prompts = pd.concat([prompts, translated.rename(lambda id: f"{id}zh")])
    refused = prompts["seed_id"].isna().tolist()
    table = lineage_effects(logs(prompts, refused, "m (system_prompt=safe)", "new"))
    told = table.set_index(["model", "step", "a"])
    own = told.loc[("m (system_prompt=safe)", "level", "seed")]
    assert own["verdict"] == CHOSE
    assert own[["rate_a", "rate_b"]].tolist() == [0, 1]
    assert own[["difference", "lower", "upper", "p"]].isna().all()
    assert told.loc[("new", "level", "seed"), ["difference", "verdict"]].tolist() == [-1, MORE]
    # nor are they on either side of a comparison of languages
    assert told.loc[("m (system_prompt=safe)", "language", "zh"), ["n", "difference"]].tolist() == [
        3 * FAMILIES,
        0,
    ]
    assert told.loc[("new", "language", "zh"), "n"] == 4 * FAMILIES


def test_a_planted_method_and_measure_are_found_and_nothing_else() -> None:
    """``benchmarks/planted_effects.py`` counts over 200 worlds of each kind."""
    told = found(world(7, 75, planted=True), planted=True)
    assert told.planted_method == told.planted_measure == 1
    assert not told.false_lineage
    assert not told.false_adjusted


def test_nothing_is_found_where_nothing_raises_refusal() -> None:
    told = [found(world(seed, 25, planted=False), planted=False) for seed in range(4)]
    assert sum(of.false_lineage + of.false_adjusted + of.false_alone for of in told) == 0


def test_many_rewrites_against_one_seed_prompt_each_need_more_than_flips() -> None:
    """Rare refusals hardly ever hit the one seed prompt, whose families then all lean one way."""
    prompts = lineage()
    rewrites = prompts["method"].isin(["x", "y"]) & prompts.index.str.endswith("en")
    first = prompts.index.str.startswith("x")
    few = lineage_effects(
        logs(prompts, (rewrites & first & (prompts["language"] == "en")).tolist())
    )
    told = few.set_index(["step", "a"])["verdict"]
    assert told["method", "x"] == MORE
    assert told["level", "rewrite"] == CHANCE
