"""What a card says is what was built: its numbers, beside the files and what was set."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.run import Build
from real_lengths import moderator, target, writer
from scripted_builds import servers
from servers import Request

COMMON = [
    "test_refusal.models=[openai-api/loopback/x, openai-api/loopback/y]",
    "seeds.per_category=2",
]
OR_BENCH = [*COMMON, "seeds.categories=[hate, privacy]", "hard.min_refusals=1"]
LTO = [*COMMON, "seeds.categories=[hate]", "vote.min_refusals=0"]
VARIANTS = {
    "or_bench": [
        [*OR_BENCH, "rewrite.count=4"],
        [*OR_BENCH, "rewrite.count=2", "moderate.agree=any", "dedup.threshold=null"],
        [*OR_BENCH, "rewrite.count=4", "moderate.agree=all", "hard.majority=true"],
    ],
    "lto": [
        [*LTO, "rewrite.count=4"],
        [*LTO, "rewrite.count=2", "assess.agree=majority"],
        [*LTO, "rewrite.count=4", "assess.agree=any", "dedup.threshold=0.9"],
    ],
}


def doubting(number: int):
    """A moderator that holds every third prompt or so for harmful, others than the next one."""

    def reply(request: Request) -> str:
        said = json.loads(moderator(request))
        fields = {"category": "violence", "verdict": "harmful"}
        if sum(map(ord, request.question)) % (3 + number) == 0:
            said |= {field: bad for field, bad in fields.items() if field in said}
        return json.dumps(said)

    return reply


@pytest.fixture(scope="module", params=["or_bench", "lto"])
def cards(request, tmp_path_factory):
    """Build three variants of a recipe in one folder; give each card with the files it speaks of."""
    out = tmp_path_factory.mktemp(request.param) / "out"
    found = []
    with servers(writer, [doubting(number) for number in range(3)], target) as (asking, _):
        for changes in VARIANTS[request.param]:
            build = Build(load_recipe(request.param, changes), out, asking, say=lambda line: None)
            facts = {fact.name: fact for fact in build.run()}
            stages = {
                name: (
                    len(pd.read_parquet(out / "stages" / name / "rows.parquet")),
                    {
                        path.stem: pd.read_csv(path)
                        for path in (out / "stages" / name).glob("tables/*.csv")
                    },
                )
                for name in facts
            }
            sets = {
                path.parent.name: pd.read_parquet(path)
                for path in (out / "dataset").glob("*/*.parquet")
            }
            card = (out / "dataset" / "README.md").read_text()
            money = pd.read_csv(out / "spent.csv")
            found.append(
                (dict(change.split("=", 1) for change in changes), card, stages, sets, money)
            )
    return found


def line(card: str, stage: str) -> str:
    (found,) = [one for one in card.splitlines() if one.startswith(f"- {stage}: ")]
    return found


def numbers(text: str) -> list[float]:
    return [
        float(one)
        for one in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])", text.replace(",", ""))
    ]


def test_each_sentence_has_the_numbers_of_what_ran(cards) -> None:
    for said, card, stages, sets, _ in cards:
        kept = {name: rows for name, (rows, _) in stages.items()}
        rewrite = numbers(line(card, "rewrite"))
        assert rewrite == [float(said["rewrite.count"]), kept["distinct"], kept["rewrite"]]
        assert numbers(line(card, "seeds")) == [kept["seeds"], 2]
        threshold = said.get("dedup.threshold", "0.7")
        near = [] if threshold == "null" else [float(threshold)]
        assert numbers(line(card, "dedup")) == [kept["rewrite"], kept["dedup"], *near]
        assert numbers(line(card, "test_refusal"))[1] == 2
        vote = "hard" if "hard" in stages else "vote"
        least = float(said[f"{vote}.min_refusals"])
        assert numbers(line(card, vote)) == [kept["test_refusal"], kept[vote], least]
        assert ("a majority" in line(card, vote)) == ("hard.majority" in said)
        for name, rows in sets.items():
            assert f"| `{name}`" in card
            assert f"{name} with {len(rows)}" in line(card, "split")


def test_the_panels_agreement_and_rule_are_those_of_this_build(cards) -> None:
    words = {"all": "all of 3", "majority": "most of 3", "any": "one or more of 3"}
    for said, card, stages, _, _ in cards:
        name = "moderate" if "moderate" in stages else "assess"
        default = "majority" if name == "moderate" else "all"
        told = line(card, name)
        assert words[said.get(f"{name}.agree", default)] in told
        panel = stages[name][1]["panel"].iloc[0]
        for figure in ("alpha", "lower", "upper"):
            known = panel[figure] == panel[figure]
            assert (f"{panel[figure]:.2f}" if known else "no interval can be told") in told
        assert f"agreement on {panel['rows']:.0f} prompts" in told


def test_what_it_cost_is_what_was_spent(cards) -> None:
    for _, card, _, _, money in cards:
        told = card.split("## What it cost")[1].split("## The recipe")[0]
        assert f"{money['calls'].sum():,} calls were answered" in told
        assert f"{money['input_tokens'].sum():,} tokens in" in told
        assert f"({money['calls'].sum():,} of the calls went to models of unknown price)" in told


def test_nothing_of_a_recipes_defaults_is_said_of_another_build(cards) -> None:
    for _, card, stages, sets, _ in cards:
        told = card.split("## The recipe")[0]
        for untrue in ("five rewrites", "ten categories", "seven sensitivity types", "three models",
                       "at least two models", "Mixtral", "gpt-4"):  # fmt: skip
            assert untrue not in told, untrue
        assert "## After" in card
        assert "et al., 2025" in card
        own = "lto-built" if "assess" in stages else "or_bench"
        rows = len(pd.concat(list(sets.values())).drop_duplicates("id"))
        assert f"| {own} | {rows} | written for this data set | that of this set |" in card


def test_each_row_says_what_it_was_written_from(cards) -> None:
    from or_eval.schema import prompt_id

    for _, _, _, sets, _ in cards:
        for rows in sets.values():
            seeds = [json.loads(meta)["seed"] for meta in rows["meta"]]
            assert [prompt_id(seed) for seed in seeds] == list(rows["seed_id"])
