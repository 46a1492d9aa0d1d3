"""The stage ``translate``: prompts in further languages, each translated back to be checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import Field

from or_eval.dataset_builders.engine.conversations import Question
from or_eval.dataset_builders.engine.rows import Rows, with_meta, written_from
from or_eval.dataset_builders.engine.stage import (
    TRANSLATOR,
    Calls,
    Dropped,
    Kept,
    Outcome,
    Plan,
    StageContext,
    turns,
)
from or_eval.dataset_builders.prompt_files import data_path, prompt_path
from or_eval.dataset_builders.similarity.embedding_stage import EmbeddingStage
from or_eval.dataset_builders.similarity.embeddings import Likeness
from or_eval.dataset_builders.writing.translating import (
    REASONS,
    TRANSLATE,
    Translation,
    told,
    translating,
)
from or_eval.schema import PromptRecord

_SYSTEM_TOKENS = 330
IN_LANGUAGE = "in the language already"


class Translate(EmbeddingStage):
    """The stage ``translate``, by what a recipe may say to it.

    Attributes:
        languages: BCP-47 tags of the languages to translate into; a row that is in one of them
            isn't translated into it.
        model: The sentence-transformers model that compares what is translated back with the
            prompt; without one, people have to look at every row.
        least: Least similarity of the two.
        review_below: Similarity below which people should look at a row.
    """

    roles = turns(TRANSLATOR)
    makes = "instead"
    drops = (*REASONS, IN_LANGUAGE)
    languages: tuple[str, ...] = Field(min_length=1)
    least: float = Field(default=0.7, ge=-1, le=1)
    review_below: float = Field(default=0.85, ge=-1, le=1)

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Give each row in each language; ``meta.review`` says which ones people should look at."""
        likeness = None if self.model is None else Likeness(self.model)
        reviews: Counter[tuple[str, bool]] = Counter()
        self.name_model(build)

        for row in rows:
            if all(language == row.language for language in self.languages):
                yield Dropped(row, IN_LANGUAGE, row.language)

        def asked() -> Iterator[tuple[tuple[PromptRecord, str], list[Question[Translation]]]]:
            for row in rows:
                for language in self.languages:
                    if language != row.language:
                        both = (row.language, language)
                        question = Question(
                            TRANSLATOR,
                            build.in_turn(TRANSLATOR, row.id),
                            partial(translating, row.prompt, both, self.least, likeness),
                            told,
                            course=row.language,
                            shown={"id": row.id, "language": language},
                            text=row.prompt,
                        )
                        yield (row, language), [question]

        for (row, language), [found] in build.ask(asked()):
            if found.problem is not None:
                record = _record(row, found, language) if found.text else row
                yield Dropped(record, *found.problem)
                continue
            review = found.similarity is None or found.similarity < self.review_below
            reviews[language, review] += 1
            yield Kept(with_meta(_record(row, found, language), review=review))
        build.table(
            "languages",
            [
                {
                    "language": language,
                    "translated": reviews[language, True] + reviews[language, False],
                    "to be reviewed": reviews[language, True],
                }
                for language in self.languages
            ],
        )

    def plan(self, rows: int, build: StageContext) -> Plan:
        """Estimate two calls a row and language: there and back."""
        made = rows * len(self.languages)
        sent = 2 * made * (_SYSTEM_TOKENS + build.row_tokens)
        return Plan(made, (Calls(TRANSLATOR, 2 * made, sent, 2 * made * build.row_tokens),))

    def prompts(self) -> Sequence[Path]:
        return [prompt_path(TRANSLATE), data_path("language_names.toml")]


def _record(row: PromptRecord, found: Translation, language: str) -> PromptRecord:
    facts = {"translator": found.translator, "back": found.back, "similarity": found.similarity}
    meta = {name: value for name, value in facts.items() if value not in (None, "")}
    made = written_from(row, found.text, method=TRANSLATE, language=language, meta=meta)
    pair = None if row.pair_id is None else f"{row.pair_id}-{language}"
    # What a prompt is doesn't change with its language.
    return replace(made, label=row.label, pair_id=pair)


STAGE = Translate
