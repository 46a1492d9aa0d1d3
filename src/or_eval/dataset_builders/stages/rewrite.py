"""The stage ``rewrite``: write several new prompts from each seed, by a named method."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import Field, model_validator

from or_eval.dataset_builders.engine.conversations import Question
from or_eval.dataset_builders.engine.models import BoundModel
from or_eval.dataset_builders.engine.rounds import wanted_now
from or_eval.dataset_builders.engine.rows import Rows, written_from
from or_eval.dataset_builders.engine.stage import (
    WRITER,
    Calls,
    Dropped,
    Kept,
    Outcome,
    Place,
    Plan,
    StageContext,
    estimated_tokens,
    turns,
)
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_files import data_path, prompt_path
from or_eval.dataset_builders.similarity.embedding_stage import EmbeddingStage
from or_eval.dataset_builders.similarity.embeddings import Likeness
from or_eval.dataset_builders.similarity.same_text import text_mark
from or_eval.dataset_builders.writing.methods import (
    SAME_LANGUAGE,
    RewriteMethod,
    in_language,
    load_method,
    method_files,
    method_path,
)
from or_eval.dataset_builders.writing.rewrite_checks import DUPLICATE, REASONS, Written
from or_eval.dataset_builders.writing.rewriting import AGAIN, Rewritten, rewriting, shares_of
from or_eval.schema import Category, PromptRecord, taxonomies

_TOKENS_PER_WORD = 1.4
_SEED_TOKENS = 150


class Rewrite(EmbeddingStage):
    """The stage ``rewrite``, by what a recipe may say to it; what it leaves out is the method's.

    Attributes:
        method: ``or_bench``, ``lto``, or the path of a method file of one's own.
        methods: Several of these, each for every seed.
        languages: BCP-47 tags of the languages to write in, each for every seed and method, or
            ``same`` for that of the seed; the recipe's by default.
        count: Rewrites wanted of each seed, by each method and in each language.
        min_words: Least length of a rewrite.
        max_words: Greatest length of a rewrite.
        forbidden: Whether words that the method forbids are looked for.
        model: The sentence-transformers model that the similarity to the seed is measured with.
        similarity: Whether the method's bounds of it are checked.
    """

    roles = turns(WRITER)
    makes = "instead"
    gives_more = True
    drops = REASONS
    method: str | None = None
    methods: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    count: int | None = Field(default=None, ge=1)
    min_words: int | None = Field(default=None, ge=1)
    max_words: int | None = Field(default=None, ge=1)
    forbidden: bool = True
    similarity: bool = True

    @model_validator(mode="after")
    def _has_methods(self) -> Self:
        if (self.method is None) == (not self.methods):
            raise ValueError("say 'method', or 'methods' for several")
        for method in self.all_methods:
            method_path(method)
        return self

    @property
    def all_methods(self) -> tuple[str, ...]:
        """The methods, however many."""
        return self.methods if self.method is None else (self.method,)

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Rewrite the rows: of each come as many rows, kept or dropped, as the methods write.

        A rewrite that could not be had is dropped with what there is of it, or else with its seed.
        It holds a digest of each text that it keeps.
        """
        methods = {Path(method).stem: self.settled(method) for method in self.all_methods}
        categories = taxonomies()[build.taxonomy]
        likeness = None if self.model is None else Likeness(self.model)

        def asked() -> Iterator[tuple[_Way, list[Question[Rewritten]]]]:
            for seed in rows:
                category = categories.get(seed.category, Category(seed.category, seed.category, ""))
                models = build.in_turn(WRITER, seed.id)
                for name, method in methods.items():
                    for language in self.languages or (build.language,):
                        way = _way(seed, name, method, language, build)
                        question = _question(way, category, models, likeness)
                        yield way._replace(key=question.key), [question]

        self.name_model(build)
        table: dict[str, dict[str, Any]] = {}
        reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
        seen: set[bytes] = set()
        for way, [rewritten] in build.ask(asked()):
            seed = way.seed
            told = table.setdefault(
                seed.id, {"seed_id": seed.id, "category": seed.category, "kept": 0}
            )
            for written in rewritten.written:
                reason, detail = written.reason, written.detail
                record = _record(written, way)
                mark = text_mark(record.prompt)
                if reason is None and mark in seen:
                    reason, detail = DUPLICATE, "of a text from another seed"
                if reason is None:
                    seen.add(mark)
                    told["kept"] += 1
                    yield Kept(record)
                else:
                    reasons[seed.id][reason] += 1
                    yield Dropped(record, reason, detail)
        for id, told in table.items():
            listed = (f"{count} {reason}" for reason, count in reasons[id].most_common())
            told["dropped"] = ", ".join(listed)
        if table:
            build.table("seeds", list(table.values()))

    def plan(self, rows: int, build: StageContext) -> Plan:
        """Estimate the questions without those that are asked again."""
        kept = calls = sent = returned = longest = 0
        for named in self.all_methods:
            method = self.settled(named)
            asked = {
                part: -(-count // method.per_call) for part, count in shares_of(method).items()
            }
            questions = sum(asked.values())
            for language in self.languages or (build.language,):
                request = in_language(method.request, method.asked_in(language))
                told = sum(
                    number * estimated_tokens(method.system_for(part, language), request)
                    for part, number in asked.items()
                )
                length = method.length_in(language)
                words = max(min(3 * length.min_words // 2, length.max_words), 20)
                edited = method.most_edited is not None
                tokens = build.row_tokens if edited else round(words * _TOKENS_PER_WORD)
                kept += rows * method.count
                calls += rows * questions
                sent += rows * (told + questions * _SEED_TOKENS)
                returned += rows * method.count * tokens
                longest = max(longest, tokens)
        return Plan(kept, (Calls(WRITER, calls, sent, returned),), longest)

    def settled(self, method: str) -> RewriteMethod:
        """Give a method with what the recipe says of it."""
        said = self.model_dump(include={"count", "min_words", "max_words"}, exclude_none=True)
        loaded = load_method(method)
        own: dict[str, Any] = {"forbidden": loaded.forbidden if self.forbidden else {}}
        if not self.similarity:
            own["similarity"] = None
        if self.min_words is not None or self.max_words is not None:
            own["lengths"] = {}
        settled = loaded.model_copy(update=said | own)
        if settled.min_words > settled.max_words:
            raise BuildError(
                f"min_words ({settled.min_words}) is above max_words ({settled.max_words})"
            )
        return settled

    def prompts(self) -> Sequence[Path]:
        told = map(data_path, ("taxonomies.toml", "language_names.toml"))
        return [*method_files(self.all_methods), prompt_path(AGAIN), *told]

    def problem(self, place: Place) -> str | None:
        bounded = [name for name in self.all_methods if self.settled(name).similarity is not None]
        if bounded and self.model is None:
            return (
                f"'model' is missing: the method {bounded[0]} bounds the similarity to the seed, "
                "which a sentence-transformers model measures ('similarity: off' leaves it "
                "unchecked)"
            )
        return super().problem(place)


class _Way(NamedTuple):
    """A way in which a seed is rewritten, and the key of the question for it."""

    seed: PromptRecord
    name: str
    method: RewriteMethod
    language: str
    key: str = ""


def _way(
    seed: PromptRecord, name: str, method: RewriteMethod, language: str, build: StageContext
) -> _Way:
    """Give a way with the seed's own language, and the rewrites wanted after what was short."""
    language = seed.language if language == SAME_LANGUAGE else language
    facts = {"category": seed.category, "language": language, "method": name}
    count = wanted_now(method.count, facts, build.rounds)
    return _Way(seed, name, method.model_copy(update={"count": count}), language)


def _question(
    way: _Way, category: Category, models: Sequence[BoundModel], likeness: Likeness | None
) -> Question[Rewritten]:
    seed, name, method, language, _ = way
    one = method.model_copy(update={"count": 1})
    return Question(
        WRITER,
        models,
        partial(rewriting, seed, category, method, language, likeness),
        Rewritten.told,
        size=method.count,
        opening=next(rewriting(seed, category, one, language)),
        course=list(method.sensitive_part),
        shown={"id": seed.id, "category": category.key, "method": name, "language": language},
        text=seed.prompt,
    )


def _record(written: Written, way: _Way) -> PromptRecord:
    if not written.text:
        return way.seed
    facts = {
        "writer": written.writer,
        "question": way.key,
        "sensitive_part": written.part,
        "sensitive_text": written.sensitive_text or None,
        "similarity": written.similarity,
        "edited": written.edited,
    }
    meta = {name: value for name, value in facts.items() if value is not None}
    return written_from(way.seed, written.text, method=way.name, language=way.language, meta=meta)


STAGE = Rewrite
