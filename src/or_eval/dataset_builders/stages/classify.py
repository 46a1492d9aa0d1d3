"""The stage ``classify``: classifiers vote on the category of each prompt."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from or_eval.dataset_builders.engine.ports import (
    CLASSIFIER,
    Dropped,
    Kept,
    Outcome,
    Plan,
    Stage,
    StageContext,
    StageParams,
    Table,
)
from or_eval.dataset_builders.engine.rows import Rows, with_meta
from or_eval.dataset_builders.panel.agreement import votes
from or_eval.dataset_builders.panel.moderators import (
    Opinion,
    Wording,
    category_spellings,
    in_words,
    load_wording,
    opinions_on_prompts,
)
from or_eval.dataset_builders.panel.panel_plan import panel_calls
from or_eval.dataset_builders.prompt_files import data_path, prompt_path
from or_eval.schema import taxonomies

OTHER = "other"
"""What a classifier says of a prompt that falls into no category."""
NO_MAJORITY, UNSURE, ANOTHER, TOO_LONG = (
    "no majority",
    "unsure",
    "another category",
    "too long",
)


class ClassifyParams(StageParams):
    """What a recipe may say to ``classify``.

    Attributes:
        keep: Which rows go on: those with any category, which becomes theirs, or those whose
            category is the ``same`` as before.
        agree: How many of the classifiers must name it.
        least_confidence: Least confidence, the mean of those who name it; one that says none
            counts as sure.
    """

    keep: Literal["any", "same"] = "any"
    agree: Literal["majority", "all"] = "majority"
    least_confidence: float = Field(default=0, ge=0, le=1)


def run(rows: Rows, params: ClassifyParams, context: StageContext) -> Iterator[Outcome]:
    """Give each row its category; ``meta.classification`` has each classifier's answer."""
    panel, wording = context.panel(CLASSIFIER), classification_wording(context.taxonomy)
    moved: Counter[tuple[str, str]] = Counter()
    together: Counter[int] = Counter()
    for row, opinions in opinions_on_prompts(rows, wording, context, CLASSIFIER):
        if opinions is None:
            yield Dropped(row, TOO_LONG)
            continue
        category, confidence, count = _majority(opinions)
        together[count] += 1
        said = with_meta(row, classification=votes(opinions), confidence=confidence)
        needed = len(panel) if params.agree == "all" else len(panel) // 2 + 1
        detail = in_words(opinions)
        if category is None or count < needed:
            yield Dropped(said, NO_MAJORITY, detail)
            continue
        moved[row.category, category] += 1
        if confidence is not None and confidence < params.least_confidence:
            yield Dropped(said, UNSURE, detail)
        elif params.keep == "same" and category != row.category:
            yield Dropped(said, ANOTHER, detail)
        elif category == OTHER:
            yield Dropped(said, OTHER, detail)
        else:
            earlier = {} if category == row.category else {"earlier_category": row.category}
            yield Kept(replace(with_meta(said, **earlier), category=category))
    yield Table(
        "categories",
        [{"before": old, "now": new, "rows": moved[old, new]} for old, new in sorted(moved)],
    )
    yield Table(
        "votes",
        [{"classifiers that agree": n, "rows": together[n]} for n in sorted(together)],
    )


def plan(rows: int, params: ClassifyParams, context: StageContext) -> Plan:
    """Estimate a call per row and classifier; repair questions are not counted."""
    wording = classification_wording(context.taxonomy)
    return Plan(rows, (panel_calls([(rows, context.row_tokens, wording)], CLASSIFIER),))


@cache
def classification_wording(taxonomy: str) -> Wording:
    """Give what classifiers are told, with the categories of a taxonomy."""
    categories = taxonomies()[taxonomy].values()
    return load_wording(
        "classify",
        "category",
        "category",
        category_spellings(taxonomy, OTHER),
        OTHER,
        confidence=True,
        categories="\n".join(f"- {one.key}: {one.definition}" for one in categories),
        keys=", ".join(one.key for one in categories),
    )


def _majority(opinions: Sequence[Opinion]) -> tuple[str | None, float | None, int]:
    """Give the answer that most gave, how sure these are, and how many they are.

    None where as many gave another one.
    """
    sure: defaultdict[str, list[float | None]] = defaultdict(list)
    for opinion in opinions:
        if opinion.said is not None:
            sure[opinion.said].append(opinion.confidence)
    if not sure:
        return None, None, 0
    first, *others = sorted(sure, key=lambda said: -len(sure[said]))
    count = len(sure[first])
    told = [confidence for confidence in sure[first] if confidence is not None]
    mean = round(sum(told) / len(told), 3) if told else None
    tied = bool(others) and len(sure[others[0]]) == count
    return None if tied else first, mean, count


def _files(params: ClassifyParams) -> list[Path]:
    return [prompt_path("classify"), data_path("taxonomies.toml")]


STAGE = Stage(
    ClassifyParams,
    run,
    plan,
    roles={CLASSIFIER: "panel"},
    prompts=_files,
    parts=lambda params: [NO_MAJORITY, UNSURE, ANOTHER, OTHER, TOO_LONG],
)
