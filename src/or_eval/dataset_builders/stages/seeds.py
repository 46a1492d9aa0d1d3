"""The stage ``seeds``: toxic prompts to start from, written by a model or taken from data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from or_eval.dataset_builders.engine.conversations import Question
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
    StageParams,
    Table,
    estimated_tokens,
)
from or_eval.dataset_builders.engine.rounds import fill
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_files import prompt_path
from or_eval.dataset_builders.similarity.same_text import same_text
from or_eval.dataset_builders.writing.seed_data import SeedSource, Take, load_seeds
from or_eval.dataset_builders.writing.seed_writing import (
    DRIED_UP,
    ENOUGH,
    FAULTS,
    SEEDS_PROMPT,
    Seeking,
    seed_prompt,
)
from or_eval.schema import Category, Label, PromptRecord, prompt_id, taxonomies
from or_eval.sources.errors import shown

_GUESSED_CATEGORIES = 10
_SEED_TOKENS = 20


class SeedsParams(StageParams):
    """What a recipe may say to ``seeds``.

    Attributes:
        per_category: Distinct seeds wanted of each category; needed where a writer is asked.
        categories: Keys of the categories; all of the recipe's taxonomy by default.
        batch: Seeds asked for at once.
        dry_after: Questions in a row with nearly nothing new that end a category.
        rounds: Most rounds in which categories are asked again that lost seeds to others.
        data: A path, catalogue name or Hub id to take seeds from, instead of asking.
        source: Catalogue entry to read the data by.
        label: Label of all prompts of the data, where it doesn't tell.
        take: Which prompts of the data to take by their label.
    """

    per_category: int | None = Field(default=None, ge=1)
    categories: tuple[str, ...] = ()
    batch: int = Field(default=20, ge=1)
    dry_after: int = Field(default=3, ge=1)
    rounds: int = Field(default=3, ge=1)
    data: str | None = None
    source: str | None = None
    label: str | None = None
    take: Take = "toxic"

    @model_validator(mode="after")
    def _are_complete(self) -> Self:
        if self.data is None and self.per_category is None:
            raise ValueError("say 'per_category' to have seeds written, or 'data' to take them")
        if self.data is None and (self.source or self.label or self.take != "toxic"):
            raise ValueError("'source', 'label' and 'take' are for 'data', which is missing")
        return self


def run(rows: Rows, params: SeedsParams, context: StageContext) -> Iterator[Outcome]:
    """Give seeds, a category after the other, and with ``--limit`` so many in all.

    It holds the seeds.
    """
    categories = _categories(params, context.taxonomy)
    if params.data is not None:
        return _taken(params.data, params, categories, context)
    return _written(params, categories, context)


def plan(rows: int, params: SeedsParams, context: StageContext | None) -> Plan:
    """Estimate the questions of a writer that gives what it is asked for."""
    count = len(params.categories) or _GUESSED_CATEGORIES
    limit = context.limit if context else None
    if context is not None:
        count = len(_categories(params, context.taxonomy))
    if params.data is not None:
        if context is None:
            return Plan(limit or (params.per_category or 0) * count)
        taken = run([], params, context)
        return Plan(sum(isinstance(item, Kept) for item in taken))
    shares = _shares([params.per_category or 0] * count, limit)
    questions = sum(-(-share // params.batch) for share in shares)
    prompt = seed_prompt()
    asked = estimated_tokens(prompt.system, prompt.request.template)
    sent = questions * (asked + prompt.shown * _SEED_TOKENS)
    return Plan(sum(shares), (Calls(WRITER, questions, sent, sum(shares) * _SEED_TOKENS),))


def _categories(params: SeedsParams, taxonomy: str) -> dict[str, Category]:
    known = taxonomies()[taxonomy]
    for key in params.categories:
        if key not in known:
            raise BuildError(
                f"categories: {shown(key)} is none of the taxonomy '{taxonomy}' "
                f"(there are: {', '.join(known)})"
            )
    return {key: known[key] for key in dict.fromkeys(params.categories or known)}


def _shares(wanted: Sequence[int], limit: int | None) -> list[int]:
    """Spread a limit over the categories, one seed at a time."""
    if limit is None or limit >= sum(wanted):
        return list(wanted)
    shares = [0] * len(wanted)
    while sum(shares) < limit:
        for number, most in enumerate(wanted):
            if shares[number] < most and sum(shares) < limit:
                shares[number] += 1
    return shares


class _Harvest:
    """What was found in all rounds, no text twice in whatever category."""

    def __init__(self, wanted: Mapping[str, int], source: str, language: str) -> None:
        self.wanted, self._source, self._language = wanted, source, language
        self.seeds: dict[str, list[PromptRecord]] = {key: [] for key in wanted}
        self.dropped: list[Dropped] = []
        self.questions: Counter[str] = Counter()
        self.stopped: dict[str, str] = {}
        self.reasons: dict[str, Counter[str]] = {key: Counter() for key in wanted}
        self._seen: dict[str, str] = {}

    def add(self, category: str, search: Seeking) -> None:
        """Take what a search found."""
        for found in search.found:
            seed = self.record(found.text, category, found.writer)
            if (first := self._seen.setdefault(same_text(found.text), category)) != category:
                self._drop(category, seed, "duplicate", f"of a seed of {first}")
            else:
                self.seeds[category].append(seed)
        for faulty in search.faulty:
            seed = self.record(faulty.text, category, faulty.writer)
            number = self.questions[category] + faulty.question
            self._drop(category, seed, str(faulty.fault), f"question {number}")
        self.questions[category] += search.questions
        self.stopped[category] = search.stopped

    def record(self, text: str, category: str, writer: str | None = None) -> PromptRecord:
        """Make a text a record."""
        return _record(text, category, self._source, self._language, writer)

    def _drop(self, category: str, seed: PromptRecord, reason: str, detail: str) -> None:
        self.reasons[category][reason] += 1
        self.dropped.append(Dropped(seed, reason, detail))


def _written(
    params: SeedsParams, categories: dict[str, Category], context: StageContext
) -> Iterator[Outcome]:
    shares = _shares([params.per_category or 0] * len(categories), context.limit)
    wanted = {key: share for key, share in zip(categories, shares, strict=True) if share}
    harvest = _Harvest(wanted, context.source, context.language)

    def ask(number: int, short: dict[str, int]) -> dict[str, int]:
        # A category that dried up has no more to give.
        asked = {key: n for key, n in short.items() if harvest.stopped.get(key) != DRIED_UP}
        questions = [
            (key, [_question(categories[key], missing, harvest, params, context)])
            for key, missing in asked.items()
        ]
        for key, [search] in context.ask(questions):
            harvest.add(key, search)
        return {key: len(seeds) for key, seeds in harvest.seeds.items()}

    rounds = fill(wanted, ask, params.rounds)
    for key, seeds in harvest.seeds.items():
        for seed in seeds[: wanted[key]]:
            yield Kept(seed)
    yield from harvest.dropped
    for key, seeds in harvest.seeds.items():
        for seed in seeds[wanted[key] :]:
            yield Dropped(seed, "not needed")
        short = _short(key, harvest)
        for _ in range(wanted[key] - len(seeds)):
            yield Dropped(harvest.record("", key), "not found", short)
    yield Table("categories", [_row(key, harvest) for key in wanted])
    yield Table("rounds", [one._asdict() for one in rounds])


def _question(
    category: Category,
    missing: int,
    harvest: _Harvest,
    params: SeedsParams,
    context: StageContext,
) -> Question[Seeking]:
    known = [seed.prompt for seed in harvest.seeds[category.key]]
    before = harvest.questions[category.key]
    return Question(
        WRITER,
        context.in_turn(WRITER, category.key),
        lambda: Seeking(
            category,
            missing,
            known,
            batch=params.batch,
            dry_after=params.dry_after,
            language=context.language,
            before=before,
        ),
        course=[missing, params.batch, params.dry_after],
        shown={"category": category.key, "wanted": missing},
        text=f"{category.name}: {category.definition}",
    )


def _row(key: str, harvest: _Harvest) -> dict[str, Any]:
    reasons = harvest.reasons[key].most_common()
    found = min(len(harvest.seeds[key]), harvest.wanted[key])
    return {
        "category": key,
        "wanted": harvest.wanted[key],
        "found": found,
        "questions": harvest.questions[key],
        "stopped": ENOUGH if found == harvest.wanted[key] else harvest.stopped[key],
        "left_out": ", ".join(f"{number} {reason}" for reason, number in reasons),
    }


def _taken(
    data: str, params: SeedsParams, categories: dict[str, Category], context: StageContext
) -> Iterator[Outcome]:
    source = SeedSource(data, params.source, params.label, params.take)
    loaded, dropped, duplicates = load_seeds(source, context.taxonomy, context.language)
    by_category: dict[str, list[PromptRecord]] = {key: [] for key in categories}
    for seed in loaded:
        by_category.get(seed.category, []).append(seed)
    most = [
        len(seeds) if params.per_category is None else min(len(seeds), params.per_category)
        for seeds in by_category.values()
    ]
    shares = dict(zip(by_category, _shares(most, context.limit), strict=True))
    taken = {seed.id for key, seeds in by_category.items() for seed in seeds[: shares[key]]}
    for key, seeds in by_category.items():
        for seed in seeds[: shares[key]]:
            yield Kept(seed)
    yield from dropped
    for seed in loaded:
        if seed.id not in taken:
            yield Dropped(seed, "not needed")
    table = [
        {"category": key, "loaded": len(seeds), "taken": shares[key]}
        for key, seeds in by_category.items()
    ]
    yield Table("categories", table)
    yield Table("data", [{"data": data, "exact_duplicates": duplicates}])


def _record(
    text: str, category: str, source: str, language: str, writer: str | None = None
) -> PromptRecord:
    return PromptRecord(
        id=prompt_id(text),
        prompt=text,
        label=Label.TOXIC,
        category=category,
        language=language,
        source=source,
        method="written" if writer else None,
        meta={"writer": writer} if writer else {},
    )


def _short(key: str, harvest: _Harvest) -> str:
    found, wanted = len(harvest.seeds[key]), harvest.wanted[key]
    lost = harvest.reasons[key]["duplicate"]
    stopped = harvest.stopped[key]
    why = f"{lost} were seeds of other categories too" if stopped == ENOUGH and lost else stopped
    return f"{key}: {found} of {wanted} in {harvest.questions[key]} questions, then {why}"


def _prompts(params: SeedsParams) -> Sequence[Path]:
    return () if params.data is not None else (prompt_path(SEEDS_PROMPT),)


def _data(params: SeedsParams) -> Sequence[str]:
    return [params.data] if params.data is not None else []


def _parts(params: SeedsParams) -> Sequence[str]:
    if params.data is not None:
        return [f"not {params.take}", "wrong language", "no category", "duplicate", "not needed"]
    return [*FAULTS, "not needed", "not found"]


def _problem(params: SeedsParams, place: Place) -> str | None:
    if place.inputs:
        return "it starts a recipe and takes no input; set 'input: []'"
    _categories(params, place.taxonomy)
    return None


STAGE = Stage(
    SeedsParams,
    run,
    plan,
    roles=(WRITER,),
    asks=lambda params: params.data is None,
    prompts=_prompts,
    data=_data,
    parts=_parts,
    problem=_problem,
)
