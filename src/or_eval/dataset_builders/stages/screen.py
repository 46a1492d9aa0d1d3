"""The stage ``screen``: are rewrites near their seeds, and alarming at first sight?

Whether they are harmless to answer is the business of the stages ``respond`` and ``moderate``,
which have an answer written and judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import median

import numpy as np
from pydantic import Field

from or_eval.dataset_builders.engine.conversations import Question
from or_eval.dataset_builders.engine.ports import (
    MODERATOR,
    SHORT_PROMPT_TOKENS,
    Dropped,
    Kept,
    Outcome,
    Plan,
    Stage,
    StageContext,
    Table,
)
from or_eval.dataset_builders.engine.rows import SEED, Rows, in_batches, with_meta
from or_eval.dataset_builders.panel.moderators import (
    PROMPT_LIMIT,
    Judging,
    Opinion,
    Wording,
    in_words,
    judged_by,
    load_wording,
    opinions_of,
)
from or_eval.dataset_builders.panel.panel_plan import panel_calls
from or_eval.dataset_builders.prompt_files import prompt_path
from or_eval.dataset_builders.similarity import embedding_stage
from or_eval.dataset_builders.similarity.bounds import Bounds
from or_eval.dataset_builders.similarity.embedding_stage import EmbeddingParams, embedded
from or_eval.dataset_builders.similarity.near_by_letters import runs_of_letters
from or_eval.schema import PromptRecord

ANY_METHOD = "any"
OFF_SEED, LIKE_SEED, NOT_ALARMING, NO_JUDGEMENT = (
    "off the seed",
    "like the seed",
    "not alarming",
    "no judgement",
)
_LEVELS = ("1", "2", "3", "4", "5")
# Rows whose similarity is measured at once; by letters, so many of them in a part.
_AT_ONCE, _PART = 20_000, 2_000


class ScreenParams(EmbeddingParams):
    """What a recipe may say to ``screen``.

    Attributes:
        similarity: Bounds of the similarity to the seed by method; ``any`` for the others.
        model: The sentence-transformers model that it is measured with; without one it is
            measured by letters, which tells a copy but not another subject.
        min_alarm: Least alarm, from 1 to 5: the median of what the moderators say.
    """

    similarity: Mapping[str, Bounds] = Field(default={ANY_METHOD: Bounds(most=0.9)})
    min_alarm: float = Field(default=3, ge=1, le=5)


def run(rows: Rows, params: ScreenParams, context: StageContext) -> Iterator[Outcome]:
    """Keep rows that are near their seeds and alarming; ``meta`` has both measures."""
    panel, wording = context.panel(MODERATOR), alarm_wording()
    levels: Counter[float] = Counter()

    def asked() -> Iterator[tuple[tuple[PromptRecord, str | None], list[Question[Judging]]]]:
        for row in _measured(rows, params, context):
            problem = _similarity_problem(row, params)
            yield (row, problem), [] if problem else judged_by(panel, wording, row)

    yield from embedding_stage.used(params)
    for (row, problem), judgings in context.ask(asked()):
        if problem is not None:
            yield Dropped(row, problem, f"similarity {row.meta.get('similarity')}")
            continue
        opinions = opinions_of(panel, judgings)
        alarm = _alarm(opinions)
        if alarm is None:
            yield Dropped(row, NO_JUDGEMENT, in_words(opinions))
            continue
        levels[alarm] += 1
        judged = with_meta(row, alarm=alarm)
        if alarm < params.min_alarm:
            yield Dropped(judged, NOT_ALARMING, in_words(opinions))
        else:
            yield Kept(judged)
    yield Table("alarm", [{"alarm": level, "rows": levels[level]} for level in sorted(levels)])


def plan(rows: int, params: ScreenParams, context: StageContext | None) -> Plan:
    """Estimate a call per row and moderator."""
    tokens = context.row_tokens if context else SHORT_PROMPT_TOKENS
    return Plan(rows, (panel_calls([(rows, tokens, alarm_wording())]),))


@cache
def alarm_wording() -> Wording:
    """Give what moderators are told."""
    return load_wording("screen", "alarm", "alarm", {level: level for level in _LEVELS}, "5")


def _measured(rows: Rows, params: ScreenParams, context: StageContext) -> Iterator[PromptRecord]:
    """Give rows with their similarity to the seed, where they were written from one."""
    for some in in_batches(rows, _AT_ONCE):
        written = [row for row in some if SEED in row.meta]
        found = dict(
            zip((row.id for row in written), _similarities(written, params, context), strict=True)
        )
        for row in some:
            yield with_meta(row, similarity=found[row.id]) if row.id in found else row


def _similarities(
    rows: list[PromptRecord], params: ScreenParams, context: StageContext
) -> list[float]:
    pairs = [(row.prompt, str(row.meta[SEED])) for row in rows]
    if not pairs:
        return []
    if params.model is None:
        return list(chain(*context.map(_by_letters, in_batches(pairs, _PART))))
    vectors = embedded(list(chain(*pairs)), params.model, context)
    cosines = np.einsum("ij,ij->i", vectors[0::2], vectors[1::2])
    return [round(float(cosine), 3) for cosine in cosines]


def _by_letters(pairs: Iterable[tuple[str, str]]) -> list[float]:
    found = (map(runs_of_letters, pair) for pair in pairs)
    return [round(len(one & other) / len(one | other), 3) for one, other in found]


def _similarity_problem(row: PromptRecord, params: ScreenParams) -> str | None:
    if len(row.prompt) > PROMPT_LIMIT:
        return "too long"
    bounds = params.similarity.get(row.method or "", params.similarity.get(ANY_METHOD, Bounds()))
    similarity = row.meta.get("similarity")
    breach = None if similarity is None else bounds.breach(similarity)
    return None if breach is None else OFF_SEED if breach == "below" else LIKE_SEED


def _alarm(opinions: list[Opinion]) -> float | None:
    """Give the median of what moderators said; None where most of them said nothing."""
    said = [float(opinion.said) for opinion in opinions if opinion.said is not None]
    return median(said) if 2 * len(said) > len(opinions) else None


def _files(params: ScreenParams) -> list[Path]:
    return [prompt_path("screen")]


def _parts(params: ScreenParams) -> list[str]:
    return [OFF_SEED, LIKE_SEED, NOT_ALARMING, NO_JUDGEMENT, "too long"]


STAGE = Stage(
    ScreenParams,
    run,
    plan,
    roles={MODERATOR: "panel"},
    prompts=_files,
    data=embedding_stage.data,
    parts=_parts,
    problem=embedding_stage.problem,
    ready=embedding_stage.ready,
)
