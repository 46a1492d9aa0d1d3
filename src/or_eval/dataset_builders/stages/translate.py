"""The stage ``translate``: prompts in further languages, each translated back to be checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic import Field

from or_eval.dataset_builders.engine.conversations import Question
from or_eval.dataset_builders.engine.ports import (
    TRANSLATOR,
    Calls,
    Dropped,
    Kept,
    Outcome,
    Plan,
    Stage,
    StageContext,
    Table,
)
from or_eval.dataset_builders.engine.rows import Rows, written_from
from or_eval.dataset_builders.prompt_files import data_path, prompt_path
from or_eval.dataset_builders.similarity import embedding_stage
from or_eval.dataset_builders.similarity.embedding_stage import EmbeddingParams
from or_eval.dataset_builders.similarity.embeddings import Likeness
from or_eval.dataset_builders.writing.translating import REASONS, TRANSLATE, Translating
from or_eval.schema import PromptRecord

_SYSTEM_TOKENS = 330
IN_LANGUAGE = "in the language already"


class TranslateParams(EmbeddingParams):
    """What a recipe may say to ``translate``.

    Attributes:
        languages: BCP-47 tags of the languages to translate into; a row that is in one of them
            isn't translated into it.
        model: The sentence-transformers model that compares what is translated back with the
            prompt; without one, people have to look at every row.
        least: Least similarity of the two.
        review_below: Similarity below which people should look at a row.
    """

    languages: tuple[str, ...] = Field(min_length=1)
    least: float = Field(default=0.7, ge=-1, le=1)
    review_below: float = Field(default=0.85, ge=-1, le=1)


def run(rows: Rows, params: TranslateParams, context: StageContext) -> Iterator[Outcome]:
    """Give each row in each language; ``meta.review`` says which ones people should look at."""
    likeness = None if params.model is None else Likeness(params.model)
    reviews: Counter[tuple[str, bool]] = Counter()
    yield from embedding_stage.used(params)

    for row in rows:
        if all(language == row.language for language in params.languages):
            yield Dropped(row, IN_LANGUAGE, row.language)

    def asked() -> Iterator[tuple[tuple[PromptRecord, str], list[Question[Translating]]]]:
        for row in rows:
            for language in params.languages:
                if language != row.language:
                    yield (row, language), [_question(row, language, params, likeness, context)]

    for (row, language), [translating] in context.ask(asked()):
        if translating.problem is not None:
            record = _record(row, translating, language, {}) if translating.translation else row
            reason, detail = translating.problem
            yield Dropped(record, reason, detail)
            continue
        similarity = translating.similarity
        review = similarity is None or similarity < params.review_below
        reviews[language, review] += 1
        yield Kept(_record(row, translating, language, {"review": review}))
    yield Table(
        "languages",
        [
            {
                "language": language,
                "translated": reviews[language, True] + reviews[language, False],
                "to be reviewed": reviews[language, True],
            }
            for language in params.languages
        ],
    )


def _question(
    row: PromptRecord,
    language: str,
    params: TranslateParams,
    likeness: Likeness | None,
    context: StageContext,
) -> Question[Translating]:
    return Question(
        TRANSLATOR,
        context.in_turn(TRANSLATOR, row.id),
        lambda: Translating(row.prompt, (row.language, language), params.least, likeness),
        course=row.language,
        shown={"id": row.id, "language": language},
        text=row.prompt,
    )


def _record(
    row: PromptRecord, translating: Translating, language: str, facts: dict[str, Any]
) -> PromptRecord:
    measures = {"back": translating.back, "similarity": translating.similarity}
    meta = {"translator": translating.translator} | facts
    meta |= {name: value for name, value in measures.items() if value not in (None, "")}
    made = written_from(
        row, translating.translation, method=TRANSLATE, language=language, meta=meta
    )
    pair = None if row.pair_id is None else f"{row.pair_id}-{language}"
    # What a prompt is doesn't change with its language.
    return replace(made, label=row.label, pair_id=pair)


def plan(rows: int, params: TranslateParams, context: StageContext) -> Plan:
    """Estimate two calls a row and language: there and back."""
    made = rows * len(params.languages)
    sent = 2 * made * (_SYSTEM_TOKENS + context.row_tokens)
    return Plan(made, (Calls(TRANSLATOR, 2 * made, sent, 2 * made * context.row_tokens),))


STAGE = Stage(
    TranslateParams,
    run,
    plan,
    roles={TRANSLATOR: "turns"},
    prompts=lambda params: [prompt_path(TRANSLATE), data_path("language_names.toml")],
    data=embedding_stage.data,
    parts=lambda params: [*REASONS, IN_LANGUAGE],
    problem=embedding_stage.problem,
    ready=embedding_stage.ready,
    makes="instead",
)
