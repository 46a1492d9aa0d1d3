"""The stage ``rewrite``: write several new prompts from each seed, by a named method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import Field, model_validator

from or_eval.dataset_builders.engine.conversations import Question
from or_eval.dataset_builders.engine.models import BoundModel
from or_eval.dataset_builders.engine.ports import (
    WRITER,
    Calls,
    Dropped,
    Kept,
    Outcome,
    Place,
    Plan,
    Stage,
    StageContext,
    Table,
    estimated_tokens,
)
from or_eval.dataset_builders.engine.rounds import wanted_now
from or_eval.dataset_builders.engine.rows import Rows, written_from
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_files import data_path, prompt_path
from or_eval.dataset_builders.similarity import embedding_stage
from or_eval.dataset_builders.similarity.embedding_stage import EmbeddingParams
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
from or_eval.dataset_builders.writing.rewriting import AGAIN, Rewriting, shares_of
from or_eval.schema import Category, PromptRecord, taxonomies

_TOKENS_PER_WORD = 1.4
_SEED_TOKENS = 150


class RewriteParams(EmbeddingParams):
    """What a recipe may say to ``rewrite``; what it leaves out is the method's.

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


class _Way(NamedTuple):
    """A way in which a seed is rewritten."""

    name: str
    method: RewriteMethod
    language: str


def run(rows: Rows, params: RewriteParams, context: StageContext) -> Iterator[Outcome]:
    """Rewrite the rows: of each come as many rows, kept or dropped, as the methods write.

    A rewrite that could not be had is dropped with what there is of it, or else with its seed. It
    holds a digest of each text that it keeps.
    """
    languages = params.languages or (context.language,)
    methods = {_name(method): _settled(method, params) for method in params.all_methods}
    ways = [
        _Way(name, method, language) for name, method in methods.items() for language in languages
    ]
    categories = taxonomies()[context.taxonomy]
    likeness = None if params.model is None else Likeness(params.model)

    def asked() -> Iterator[tuple[_Asked, list[Question[Rewriting]]]]:
        for seed in rows:
            category = categories.get(seed.category, Category(seed.category, seed.category, ""))
            models = context.in_turn(WRITER, seed.id)
            questions = [
                _question(seed, category, _for_seed(way, seed, context), models, likeness)
                for way in ways
            ]
            yield _Asked(seed, [question.key for question in questions]), questions

    yield from embedding_stage.used(params)
    table: list[dict[str, Any]] = []
    seen: set[bytes] = set()
    for (seed, keys), rewritings in context.ask(asked()):
        reasons: Counter[str] = Counter()
        kept = 0
        for way, key, rewriting in zip(ways, keys, rewritings, strict=True):
            for written in rewriting.written:
                reason, detail = written.reason, written.detail
                record = _record(seed, written, _for_seed(way, seed, context), key)
                mark = text_mark(record.prompt)
                if reason is None and mark in seen:
                    reason, detail = DUPLICATE, "of a text from another seed"
                if reason is None:
                    seen.add(mark)
                    kept += 1
                    yield Kept(record)
                else:
                    reasons[reason] += 1
                    yield Dropped(record, reason, detail)
        table.append(
            {
                "seed_id": seed.id,
                "category": seed.category,
                "kept": kept,
                "dropped": _listed(reasons),
            }
        )
    if table:
        yield Table("seeds", table)


def _for_seed(way: _Way, seed: PromptRecord, context: StageContext) -> _Way:
    """Give a way with its language for a seed, and the rewrites wanted after what was short."""
    if way.language == SAME_LANGUAGE:
        way = way._replace(language=seed.language)
    facts = {"category": seed.category, "language": way.language, "method": way.name}
    count = wanted_now(way.method.count, facts, context.short)
    return way._replace(method=way.method.model_copy(update={"count": count}))


class _Asked(NamedTuple):
    """A seed, and the keys of the questions about it."""

    seed: PromptRecord
    keys: list[str]


def _question(
    seed: PromptRecord,
    category: Category,
    way: _Way,
    models: Sequence[BoundModel],
    likeness: Likeness | None,
) -> Question[Rewriting]:
    one = way.method.model_copy(update={"count": 1})
    return Question(
        WRITER,
        models,
        lambda: Rewriting(seed, category, way.method, way.language, likeness),
        size=way.method.count,
        opening=Rewriting(seed, category, one, way.language).request(),
        course=list(way.method.sensitive_part),
        shown={
            "id": seed.id,
            "category": category.key,
            "method": way.name,
            "language": way.language,
        },
        text=seed.prompt,
    )


def plan(rows: int, params: RewriteParams, context: StageContext) -> Plan:
    """Estimate the questions without those that are asked again."""
    kept = calls = sent = returned = longest = 0
    for named in params.all_methods:
        method = _settled(named, params)
        asked = {part: -(-count // method.per_call) for part, count in shares_of(method).items()}
        questions = sum(asked.values())
        for language in params.languages or (context.language,):
            request = in_language(method.request, method.asked_in(language))
            told = sum(
                number * estimated_tokens(method.system_for(part, language), request)
                for part, number in asked.items()
            )
            length = method.length_in(language)
            words = max(min(3 * length.min_words // 2, length.max_words), 20)
            edited = method.most_edited is not None
            tokens = context.row_tokens if edited else round(words * _TOKENS_PER_WORD)
            kept += rows * method.count
            calls += rows * questions
            sent += rows * (told + questions * _SEED_TOKENS)
            returned += rows * method.count * tokens
            longest = max(longest, tokens)
    return Plan(kept, (Calls(WRITER, calls, sent, returned),), longest)


def _settled(method: str, params: RewriteParams) -> RewriteMethod:
    """Give a method with what the recipe says of it."""
    said = params.model_dump(include={"count", "min_words", "max_words"}, exclude_none=True)
    loaded = load_method(method)
    own: dict[str, Any] = {"forbidden": loaded.forbidden if params.forbidden else {}}
    if not params.similarity:
        own["similarity"] = None
    if params.min_words is not None or params.max_words is not None:
        own["lengths"] = {}
    settled = loaded.model_copy(update=said | own)
    if settled.min_words > settled.max_words:
        raise BuildError(
            f"min_words ({settled.min_words}) is above max_words ({settled.max_words})"
        )
    return settled


def _record(seed: PromptRecord, written: Written, way: _Way, key: str) -> PromptRecord:
    if not written.text:
        return seed
    meta: dict[str, Any] = {"writer": written.writer, "question": key}
    if written.part is not None:
        meta["sensitive_part"] = written.part
    if written.sensitive_text:
        meta["sensitive_text"] = written.sensitive_text
    measures = {"similarity": written.similarity, "edited": written.edited}
    meta |= {name: value for name, value in measures.items() if value is not None}
    return written_from(seed, written.text, method=way.name, language=way.language, meta=meta)


def _name(method: str) -> str:
    return Path(method).stem if method.endswith(".toml") else method


def _listed(reasons: Counter[str]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())


def _prompts(params: RewriteParams) -> Sequence[Path]:
    told = map(data_path, ("taxonomies.toml", "language_names.toml"))
    return [*method_files(params.all_methods), prompt_path(AGAIN), *told]


def _parts(params: RewriteParams) -> Sequence[str]:
    return REASONS


def _problem(params: RewriteParams, place: Place) -> str | None:
    bounded = [name for name in params.all_methods if _settled(name, params).similarity is not None]
    if bounded and params.model is None:
        return (
            f"'model' is missing: the method {bounded[0]} bounds the similarity to the seed, which "
            "a sentence-transformers model measures ('similarity: off' leaves it unchecked)"
        )
    return embedding_stage.problem(params, place)


STAGE = Stage(
    RewriteParams,
    run,
    plan,
    roles={WRITER: "turns"},
    prompts=_prompts,
    data=embedding_stage.data,
    parts=_parts,
    problem=_problem,
    ready=embedding_stage.ready,
    gives_more=True,
    makes="instead",
)
