"""The stage ``seeds``: toxic prompts to start from, written by a model or taken from data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from or_eval.dataset_builders.engine.conversations import Question
from or_eval.dataset_builders.engine.rounds import Short, goes_on, total, wanted_now
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import (
    WRITER,
    Calls,
    Dropped,
    Kept,
    Outcome,
    Place,
    Plan,
    Stage,
    StageContext,
    estimated_tokens,
    turns,
)
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_files import data_path, prompt_path
from or_eval.dataset_builders.similarity.same_text import same_text
from or_eval.dataset_builders.writing.seed_data import SeedData, SeedSource, Take
from or_eval.dataset_builders.writing.seed_writing import (
    DRIED_UP,
    ENOUGH,
    FAULTS,
    SEEDS_PROMPT,
    Found,
    Seeking,
    seed_prompt,
)
from or_eval.schema import Category, Label, PromptRecord, prompt_id, taxonomies
from or_eval.sources.errors import shown

_SEED_TOKENS, _TOPIC_TOKENS = 20, 8
_CATEGORY_TOKENS = 60


class Seeds(Stage):
    """The stage ``seeds``, by what a recipe may say to it.

    Attributes:
        per_category: Distinct seeds wanted of each category, needed where a writer is asked; 0 for
            those alone that a later stage says are short.
        categories: Keys of the categories; all of the recipe's taxonomy by default.
        batch: Seeds asked for at once.
        topics: Topics that a writer parts each category into before; each question is then about
            one of them. 0 for none.
        dry_after: Questions in a row with nearly nothing new that end a category.
        temperature: Sampling temperature of the writer; None for the model's own.
        rounds: Most rounds in which categories are asked again that lost seeds to others.
        data: A path, catalogue name or Hub id to take seeds from, instead of asking.
        source: Catalogue entry to read the data by.
        label: Label of all prompts of the data, where it doesn't tell.
        take: Which prompts of the data to take by their label.
    """

    roles = turns(WRITER)
    makes = "instead"
    gives_more = True
    per_category: int | None = Field(default=None, ge=0)
    categories: tuple[str, ...] = ()
    batch: int = Field(default=20, ge=1)
    topics: int = Field(default=0, ge=0)
    dry_after: int = Field(default=3, ge=1)
    temperature: float | None = Field(default=None, ge=0)
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

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Give seeds, and with ``--limit`` so many in all.

        It holds the seeds that are written; of data, an id and a digest of each text.
        """
        categories = self._categories(build.taxonomy)
        if self.data is not None:
            return self._taken(self.data, categories, build)
        return self._written(categories, build)

    def plan(self, rows: int, build: StageContext) -> Plan:
        """Estimate the questions of a writer that gives what it is asked for."""
        if self.data is not None:
            return Plan(sum(isinstance(item, Kept) for item in self.run([], build)))
        categories = self._categories(build.taxonomy)
        shares = _shares([self.per_category or 0] * len(categories), build.limit)
        questions = sum(-(-share // self.batch) for share in shares)
        prompt = seed_prompt()
        asked = estimated_tokens(prompt.system, prompt.request.template)
        # Those that a question names were found by the questions before it.
        known = [
            min(number * self.batch, prompt.shown)
            for share in shares
            for number in range(-(-share // self.batch))
        ]
        sent = questions * (asked + _CATEGORY_TOKENS) + sum(known) * _SEED_TOKENS
        returned = sum(shares) * _SEED_TOKENS
        if self.topics:
            parted = sum(share > 0 for share in shares)
            told = estimated_tokens(prompt.system, prompt.topics.template) + _CATEGORY_TOKENS
            sent += parted * told + questions * estimated_tokens(prompt.part.template)
            returned += parted * self.topics * _TOPIC_TOKENS
            questions += parted
        return Plan(sum(shares), (Calls(WRITER, questions, sent, returned),))

    def _categories(self, taxonomy: str) -> dict[str, Category]:
        known = taxonomies()[taxonomy]
        for key in self.categories:
            if key not in known:
                raise BuildError(
                    f"categories: {shown(key)} is none of the taxonomy '{taxonomy}' "
                    f"(there are: {', '.join(known)})"
                )
        return {key: known[key] for key in dict.fromkeys(self.categories or known)}

    def _written(self, categories: dict[str, Category], build: StageContext) -> Iterator[Outcome]:
        wanted = _wanted(dict.fromkeys(categories, self.per_category or 0), build)
        asked = {key: share for key, share in wanted.items() if share}
        rounds: list[list[Short]] = []
        while True:
            questions = [
                (key, [self._question(categories[key], number, build)])
                for key, number in asked.items()
            ]
            found = {key: search for key, [search] in build.ask(questions)}
            harvest = _Harvest(wanted, found, build)
            if not goes_on(rounds, harvest.short, self.rounds):
                break
            rounds.append(harvest.short)
            # What another category has too doesn't count.
            for one in harvest.short:
                key = one.cell["category"]
                asked[key] = len(found[key].found) + one.missing
        yield from _harvested(harvest)
        build.table("categories", [_row(key, harvest) for key in harvest.seeds])
        short = [sum(wanted.values()), *map(total, [*rounds, harvest.short])]
        build.table(
            "rounds",
            [
                {"round": number, "short": before, "found": before - after}
                for number, (before, after) in enumerate(pairwise(short), start=1)
            ],
        )

    def _question(self, category: Category, wanted: int, build: StageContext) -> Question[Seeking]:
        seeking = partial(
            Seeking,
            category,
            batch=self.batch,
            dry_after=self.dry_after,
            language=build.language,
            topics=self.topics,
            temperature=self.temperature,
        )

        return Question(
            WRITER,
            build.in_turn(WRITER, category.key),
            lambda: seeking(wanted).talk(),
            Seeking.told,
            size=wanted,
            opening=seeking(1).request(),
            course=self.dry_after,
            shown={"category": category.key, "wanted": wanted},
            text=f"{category.name}: {category.definition}",
        )

    def _taken(
        self, data: str, categories: dict[str, Category], build: StageContext
    ) -> Iterator[Outcome]:
        source = SeedSource(data, self.source, self.label, self.take)
        found = SeedData(source, build.taxonomy, build.language)
        shares: Mapping[str, int] | None = None
        if self.per_category is not None or build.limit is not None:
            there = Counter(one.category for one in found if isinstance(one, PromptRecord))
            most = {key: there[key] for key in categories}
            each = self.per_category
            shares = _wanted(most if each is None else dict.fromkeys(most, each), build, most)
        loaded: Counter[str] = Counter()
        taken: Counter[str] = Counter()
        for one in found:
            if isinstance(one, Dropped):
                yield one
                continue
            key = one.category
            loaded[key] += 1
            if key in categories and (shares is None or taken[key] < shares[key]):
                taken[key] += 1
                yield Kept(one)
            else:
                yield Dropped(one, "not needed")
        table = [
            {"category": key, "loaded": loaded[key], "taken": taken[key]} for key in categories
        ]
        build.table("categories", table)

    def prompts(self) -> Sequence[Path]:
        """Give the prompt files."""
        if self.data is not None:
            return ()
        told = map(data_path, ("taxonomies.toml", "language_names.toml"))
        return [prompt_path(SEEDS_PROMPT), *told]

    def reads(self) -> Sequence[str]:
        """Name the data."""
        return [self.data] if self.data is not None else []

    def parts(self) -> Sequence[str]:
        """Name the subsets and the reasons."""
        if self.data is not None:
            return [f"not {self.take}", "wrong language", "no category", "duplicate", "not needed"]
        return [*FAULTS, "not needed", "not found"]

    def problem(self, place: Place) -> str | None:
        """Say what keeps it from running where it stands."""
        if place.inputs:
            return "it starts a recipe and takes no input; set 'input: []'"
        self._categories(place.taxonomy)
        return None

    def asks(self) -> bool:
        """Tell whether a writer is asked."""
        return self.data is None


def _wanted(
    each: Mapping[str, int], build: StageContext, most: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Give how many seeds are wanted of each category, after what was short in each round."""
    now = {key: wanted_now(n, {"category": key}, build.rounds) for key, n in each.items()}
    shares = [min(number, (most or now)[key]) for key, number in now.items()]
    return dict(zip(now, _shares(shares, build.limit), strict=True))


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
    """What was found, no text twice in whatever category."""

    def __init__(
        self, wanted: Mapping[str, int], found: Mapping[str, Seeking], build: StageContext
    ) -> None:
        self.wanted, self.found = wanted, found
        self.source, self.language = build.source, build.language
        self.seeds: dict[str, list[PromptRecord]] = {key: [] for key in found}
        self.dropped: list[Dropped] = []
        self.reasons: dict[str, Counter[str]] = {key: Counter() for key in found}
        seen: dict[str, str] = {}
        for key, search in found.items():
            for one in search.found:
                seed = self.record(one, key)
                if (first := seen.setdefault(same_text(one.text), key)) != key:
                    self._drop(key, seed, "duplicate", f"of a seed of {first}")
                else:
                    self.seeds[key].append(seed)
            for faulty in search.faulty:
                seed = self.record(faulty, key)
                self._drop(key, seed, str(faulty.fault), f"question {faulty.question}")

    @property
    def short(self) -> list[Short]:
        """What the categories still lack that have not dried up."""
        return [
            Short({"category": key}, missing, len(seeds))
            for key, seeds in self.seeds.items()
            if (missing := self.wanted[key] - len(seeds)) > 0
            and self.found[key].stopped != DRIED_UP
        ]

    def record(self, found: Found | None, category: str) -> PromptRecord:
        """Make a text a record; of none, one without text."""
        text = "" if found is None else found.text
        meta = {} if found is None else {"writer": found.writer}
        if found is not None and found.topic is not None:
            meta["topic"] = found.topic
        return PromptRecord(
            id=prompt_id(text),
            prompt=text,
            label=Label.TOXIC,
            category=category,
            language=self.language,
            source=self.source,
            method="written" if meta else None,
            meta=meta,
        )

    def _drop(self, category: str, seed: PromptRecord, reason: str, detail: str) -> None:
        self.reasons[category][reason] += 1
        self.dropped.append(Dropped(seed, reason, detail))


def _harvested(harvest: _Harvest) -> Iterator[Outcome]:
    for key, seeds in harvest.seeds.items():
        for seed in seeds[: harvest.wanted[key]]:
            yield Kept(seed)
    yield from harvest.dropped
    for key, seeds in harvest.seeds.items():
        for seed in seeds[harvest.wanted[key] :]:
            yield Dropped(seed, "not needed")
        short = _short(key, harvest)
        for _ in range(harvest.wanted[key] - len(seeds)):
            yield Dropped(harvest.record(None, key), "not found", short)


def _row(key: str, harvest: _Harvest) -> dict[str, Any]:
    reasons = harvest.reasons[key].most_common()
    found = min(len(harvest.seeds[key]), harvest.wanted[key])
    enough = found == harvest.wanted[key]
    return {
        "category": key,
        "wanted": harvest.wanted[key],
        "found": found,
        "topics": len(harvest.found[key].topics or ()),
        "questions": harvest.found[key].questions,
        "stopped": ENOUGH if enough else harvest.found[key].stopped,
        "left_out": ", ".join(f"{number} {reason}" for reason, number in reasons),
    }


def _short(key: str, harvest: _Harvest) -> str:
    found, wanted, search = len(harvest.seeds[key]), harvest.wanted[key], harvest.found[key]
    lost = harvest.reasons[key]["duplicate"]
    why = search.stopped
    if why == ENOUGH and lost:
        why = f"{lost} were seeds of other categories too"
    return f"{key}: {found} of {wanted} in {search.questions} questions, then {why}"


STAGE = Seeds
