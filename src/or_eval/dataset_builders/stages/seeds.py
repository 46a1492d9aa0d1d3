"""The stage ``seeds``: toxic prompts to start from, written by a model or taken from data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from or_eval.dataset_builders.engine.ports import (
    WRITER,
    Calls,
    Dropped,
    Place,
    Plan,
    Stage,
    StageContext,
    StageParams,
    StageResult,
)
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_files import prompt_path
from or_eval.dataset_builders.writing.language import folded
from or_eval.dataset_builders.writing.seed_data import SeedSource, Take, load_seeds
from or_eval.dataset_builders.writing.seed_writing import (
    FAULTS,
    SEEDS_PROMPT,
    seed_prompt,
    seeds_task,
)
from or_eval.schema import Category, Label, PromptRecord, prompt_id, taxonomies
from or_eval.sources.errors import shown

_GUESSED_CATEGORIES = 10
_CHARS_PER_TOKEN = 4
_SEED_TOKENS = 20


class SeedsParams(StageParams):
    """What a recipe may say to ``seeds``.

    Attributes:
        per_category: Distinct seeds wanted of each category; needed where a writer is asked.
        categories: Keys of the categories; all of the recipe's taxonomy by default.
        batch: Seeds asked for at once.
        dry_after: Questions in a row with nearly nothing new that end a category.
        data: A path, catalogue name or Hub id to take seeds from, instead of asking.
        source: Catalogue entry to read the data by.
        label: Label of all prompts of the data, where it doesn't tell.
        take: Which prompts of the data to take by their label.
    """

    per_category: int | None = Field(default=None, ge=1)
    categories: tuple[str, ...] = ()
    batch: int = Field(default=20, ge=1)
    dry_after: int = Field(default=3, ge=1)
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


def run(rows: list[PromptRecord], params: SeedsParams, context: StageContext) -> StageResult:
    """Give seeds, a category after the other, and with ``--limit`` so many in all."""
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
        return Plan(len(run([], params, context).rows))
    shares = _shares([params.per_category or 0] * count, limit)
    questions = sum(-(-share // params.batch) for share in shares)
    prompt = seed_prompt()
    asked = (len(prompt.system) + len(prompt.request.template)) // _CHARS_PER_TOKEN
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


def _written(
    params: SeedsParams, categories: dict[str, Category], context: StageContext
) -> StageResult:
    shares = _shares([params.per_category or 0] * len(categories), context.limit)
    wanted = {key: share for key, share in zip(categories, shares, strict=True) if share}
    task = seeds_task(
        wanted,
        categories,
        batch=params.batch,
        dry_after=params.dry_after,
        language=context.language,
    )
    source = str(context.recipe["name"])
    seeds: dict[str, PromptRecord] = {}
    dropped: list[Dropped] = []
    table: list[dict[str, Any]] = []
    for answer in context.ask(task):
        kept = 0
        reasons: Counter[str] = Counter()
        for item in answer.found["seeds"]:
            seed = _record(item["text"], answer.id, source, context.language, item["writer"])
            if first := seeds.get(folded(seed.prompt)):
                reasons["duplicate"] += 1
                dropped.append(Dropped(seed, "duplicate", f"of a seed of {first.category}"))
            else:
                seeds[folded(seed.prompt)] = seed
                kept += 1
        for item in answer.found["left_out"]:
            reasons[item["reason"]] += 1
            said = _record(item["text"], answer.id, source, context.language, item["writer"])
            dropped.append(Dropped(said, item["reason"], f"question {item['round']}"))
        short = _short(wanted[answer.id], kept, answer.found, answer.id)
        empty = _record("", answer.id, source, context.language)
        dropped += [Dropped(empty, "not found", short)] * (wanted[answer.id] - kept)
        table.append(
            {
                "category": answer.id,
                "wanted": wanted[answer.id],
                "found": kept,
                "questions": answer.found["questions"],
                "stopped": answer.found["stopped"],
                "left_out": ", ".join(f"{n} {reason}" for reason, n in reasons.most_common()),
            }
        )
    return StageResult(list(seeds.values()), dropped, tables={"categories": table})


def _taken(
    data: str, params: SeedsParams, categories: dict[str, Category], context: StageContext
) -> StageResult:
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
    rows = [seed for key, seeds in by_category.items() for seed in seeds[: shares[key]]]
    ids = {seed.id for seed in rows}
    dropped += [Dropped(seed, "not needed") for seed in loaded if seed.id not in ids]
    table = [
        {"category": key, "loaded": len(seeds), "taken": shares[key]}
        for key, seeds in by_category.items()
    ]
    exact = [{"data": data, "exact_duplicates": duplicates}]
    return StageResult(rows, dropped, tables={"categories": table, "data": exact})


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


def _short(wanted: int, kept: int, found: dict[str, Any], category: str) -> str:
    asked = f"{found['questions']} questions"
    return f"{category}: {kept} of {wanted} in {asked}, then {found['stopped']}"


def _prompts(params: SeedsParams) -> Sequence[Path]:
    return () if params.data is not None else (prompt_path(SEEDS_PROMPT),)


def _data(params: SeedsParams) -> Sequence[str]:
    return [params.data] if params.data is not None else []


def _parts(params: SeedsParams) -> Sequence[str]:
    if params.data is not None:
        return [f"not {params.take}", "wrong language", "no category", "duplicate", "not needed"]
    return [*FAULTS, "not found"]


def _problem(params: SeedsParams, place: Place) -> str | None:
    if place.inputs:
        return "it starts a recipe and takes no input; set 'input: []'"
    _categories(params, place.taxonomy)
    return None


STAGE = Stage(
    SeedsParams,
    run,
    plan,
    version=2,
    roles=(WRITER,),
    asks=lambda params: params.data is None,
    prompts=_prompts,
    data=_data,
    parts=_parts,
    problem=_problem,
)
