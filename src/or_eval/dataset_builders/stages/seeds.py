"""The stage ``seeds``: toxic prompts to start from, written by a model or taken from data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
from or_eval.dataset_builders.prompt_sets import (
    PUBLISHER_CATEGORY,
    PromptSet,
    Take,
    category_key,
    told_to_recipes,
    unknown_category,
)
from or_eval.dataset_builders.similarity.same_text import same_text, text_mark
from or_eval.dataset_builders.writing.language import is_in, main_tag
from or_eval.dataset_builders.writing.seed_writing import (
    DRIED_UP,
    ENOUGH,
    FAULTS,
    SEEDS_PROMPT,
    Found,
    Sought,
    seed_prompt,
    seeking,
)
from or_eval.schema import Category, Label, PromptRecord, prompt_id, taxonomies
from or_eval.sources.dialogues import refuse_dialogues
from or_eval.sources.errors import shown
from or_eval.sources.loader import stream_prompts
from or_eval.sources.records import PromptRows

_DUPLICATE, _OTHER_LANGUAGE, _NO_CATEGORY = "duplicate", "wrong language", "no category"
_MOST_NAMED = 8
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
        asked = estimated_tokens(prompt.system, prompt.request)
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
            told = estimated_tokens(prompt.system, prompt.topics) + _CATEGORY_TOKENS
            sent += parted * told + questions * estimated_tokens(prompt.part)
            returned += parted * self.topics * _TOPIC_TOKENS
            questions += parted
        return Plan(sum(shares), (Calls(WRITER, questions, sent, returned),))

    def _categories(self, taxonomy: str) -> dict[str, Category]:
        if unknown := unknown_category(self.categories, taxonomy):
            raise BuildError(f"categories: {unknown}")
        known = taxonomies()[taxonomy]
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
            found = {key: sought for key, [sought] in build.ask(questions)}
            seeds, dropped = _harvest(found, build)
            short = [
                Short({"category": key}, missing, len(some))
                for key, some in seeds.items()
                if (missing := wanted[key] - len(some)) > 0 and found[key].stopped != DRIED_UP
            ]
            if not goes_on(rounds, short, self.rounds):
                break
            rounds.append(short)
            # What another category has too doesn't count.
            for one in short:
                key = one.cell["category"]
                asked[key] = len(found[key].found) + one.missing
        for key, some in seeds.items():
            yield from map(Kept, some[: wanted[key]])
        yield from dropped
        table: list[dict[str, Any]] = []
        for key, some in seeds.items():
            for seed in some[wanted[key] :]:
                yield Dropped(seed, "not needed")
            reasons = Counter(one.reason for one in dropped if one.record.category == key)
            there, sought = min(len(some), wanted[key]), found[key]
            why = sought.stopped
            if why == ENOUGH and (lost := reasons["duplicate"]):
                why = f"{lost} were seeds of other categories too"
            told = f"{key}: {there} of {wanted[key]} in {sought.questions} questions, then {why}"
            for _ in range(wanted[key] - there):
                yield Dropped(_record(None, key, build), "not found", told)
            left_out = (f"{number} {reason}" for reason, number in reasons.most_common())
            table.append(
                {
                    "category": key,
                    "wanted": wanted[key],
                    "found": there,
                    "topics": len(sought.topics),
                    "questions": sought.questions,
                    "stopped": ENOUGH if there == wanted[key] else sought.stopped,
                    "left_out": ", ".join(left_out),
                }
            )
        build.table("categories", table)
        totals = [sum(wanted.values()), *map(total, [*rounds, short])]
        build.table(
            "rounds",
            [
                {"round": number, "short": before, "found": before - after}
                for number, (before, after) in enumerate(pairwise(totals), start=1)
            ],
        )

    def _question(self, category: Category, wanted: int, build: StageContext) -> Question[Sought]:
        seek = partial(
            seeking,
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
            partial(seek, wanted),
            Sought.told,
            size=wanted,
            opening=next(seek(1)),
            course=self.dry_after,
            shown={"category": category.key, "wanted": wanted},
            text=f"{category.name}: {category.definition}",
        )

    def _taken(
        self, data: str, categories: dict[str, Category], build: StageContext
    ) -> Iterator[Outcome]:
        given = PromptSet(data=data, source=self.source, label=self.label)
        with told_to_recipes(given):
            prompts = stream_prompts(data, self.source, self.label)
        sorted_rows = partial(self._of_data, prompts, given, build)
        shares: Mapping[str, int] | None = None
        if self.per_category is not None or build.limit is not None:
            there = Counter(one.record.category for one in sorted_rows() if isinstance(one, Kept))
            most = {key: there[key] for key in categories}
            each = self.per_category
            shares = _wanted(most if each is None else dict.fromkeys(most, each), build, most)
        loaded: Counter[str] = Counter()
        taken: Counter[str] = Counter()
        for one in sorted_rows():
            key = one.record.category
            if isinstance(one, Kept):
                loaded[key] += 1
                if key in categories and (shares is None or taken[key] < shares[key]):
                    taken[key] += 1
                else:
                    one = Dropped(one.record, "not needed")
            yield one
        table = [
            {"category": key, "loaded": loaded[key], "taken": taken[key]} for key in categories
        ]
        build.table("categories", table)

    def _of_data(
        self, prompts: PromptRows, given: PromptSet, build: StageContext
    ) -> Iterator[Outcome]:
        """Give the prompts in the recipe's language and taxonomy, and those that are no seeds.

        They are read from their source; what is held is of each text its id and a digest.
        """
        first: dict[bytes, str] = {}
        lost: defaultdict[str, Counter[str]] = defaultdict(Counter)
        with told_to_recipes(given):
            for record in refuse_dialogues(prompts, prompts.source):
                yield from _same_bytes(prompts)
                category = category_key(record.category, build.taxonomy, record.source)
                mark = text_mark(record.prompt)
                if self.take not in ("all", record.label.value):
                    reason, detail = f"not {self.take}", ""
                elif not _fits(record, build.language):
                    reason, detail = _OTHER_LANGUAGE, record.language
                elif category is None:
                    reason, detail = _NO_CATEGORY, record.category
                elif mark in first:
                    yield Dropped(record, _DUPLICATE, f"of {first[mark]}")
                    continue
                else:
                    first[mark] = record.id
                    own = {PUBLISHER_CATEGORY: record.category}
                    meta = record.meta | (own if record.category != category else {})
                    yield Kept(
                        replace(record, category=category, language=build.language, meta=meta)
                    )
                    continue
                lost[reason][detail] += 1
                yield Dropped(record, reason, detail)
            yield from _same_bytes(prompts)
        if not first:
            reason, details = max(lost.items(), key=lambda one: one[1].total())
            named = ", ".join(shown(detail) for detail, _ in details.most_common(_MOST_NAMED))
            why = f"none of its prompts is {self.take} (the key 'take' chooses by label)"
            if reason == _NO_CATEGORY:
                known = f"the taxonomy '{build.taxonomy}'"
                there = ", ".join(taxonomies()[build.taxonomy])
                why = f"its categories ({named}) are none of {known} (there are: {there}); "
                why += "the stages merge and classify take such and find their categories"
            elif reason == _OTHER_LANGUAGE:
                why = f"its prompts are in {named}, and the recipe writes in '{build.language}'"
            raise BuildError(f"data: {prompts.source}: {why}")

    def prompts(self) -> Sequence[Path]:
        if self.data is not None:
            return ()
        told = map(data_path, ("taxonomies.toml", "language_names.toml"))
        return [prompt_path(SEEDS_PROMPT), *told]

    def reads(self) -> Sequence[str]:
        return [self.data] if self.data is not None else []

    def parts(self) -> Sequence[str]:
        if self.data is not None:
            return [f"not {self.take}", _OTHER_LANGUAGE, _NO_CATEGORY, _DUPLICATE, "not needed"]
        return [*FAULTS, "not needed", "not found"]

    def problem(self, place: Place) -> str | None:
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


def _harvest(
    found: Mapping[str, Sought], build: StageContext
) -> tuple[dict[str, list[PromptRecord]], list[Dropped]]:
    """Give the seeds by category, no text twice in whatever category, and what is none."""
    seeds: dict[str, list[PromptRecord]] = {key: [] for key in found}
    dropped: list[Dropped] = []
    seen: dict[str, str] = {}
    for key, sought in found.items():
        for one in sought.found:
            seed = _record(one, key, build)
            if (first := seen.setdefault(same_text(one.text), key)) != key:
                dropped.append(Dropped(seed, _DUPLICATE, f"of a seed of {first}"))
            else:
                seeds[key].append(seed)
        dropped += [
            Dropped(_record(one, key, build), str(one.fault), f"question {one.question}")
            for one in sought.faulty
        ]
    return seeds, dropped


def _record(found: Found | None, category: str, build: StageContext) -> PromptRecord:
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
        language=build.language,
        source=build.source,
        method="written" if meta else None,
        meta=meta,
    )


def _same_bytes(prompts: PromptRows) -> Iterator[Dropped]:
    """Give the rows since the last record that have the text of an earlier one."""
    yield from (Dropped(record, _DUPLICATE, f"of {record.id}") for record in prompts.again)
    prompts.again.clear()


def _fits(record: PromptRecord, language: str) -> bool:
    if "+" in language or "+" in record.language:
        return record.language == language
    return main_tag(record.language) == main_tag(language) or is_in(record.prompt, language)


STAGE = Seeds
