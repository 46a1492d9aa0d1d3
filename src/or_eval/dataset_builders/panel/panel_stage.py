"""Stages in which a panel judges each row: what they ask, count and decide."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from or_eval.dataset_builders.engine.conversations import Question, Talk
from or_eval.dataset_builders.engine.models import BoundModel
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.engine.rows import Rows, with_meta
from or_eval.dataset_builders.engine.stage import (
    MODERATOR,
    RESPONSE_TOKENS,
    Calls,
    Dropped,
    Kept,
    Outcome,
    Plan,
    Stage,
    StageContext,
    estimated_tokens,
    panel,
)
from or_eval.dataset_builders.panel.agreement import Agree, PanelTables, agreement
from or_eval.dataset_builders.panel.moderators import (
    PROMPT_LIMIT,
    Opinion,
    Wording,
    in_words,
    judging,
    numbered,
    told_of,
)
from or_eval.dataset_builders.prompt_files import prompt_path
from or_eval.schema import PromptRecord

TOO_LONG = "too long"
UNDECIDED = ("disagreement", "unreadable", BLOCKED, FAILED)
"""Why a panel comes to no decision."""

_ANSWER_TOKENS = 40


class PanelStage(Stage):
    """Has every model of a panel judge each row; what they say decides (``run``).

    Attributes:
        file: The prompt file with what they are told.
    """

    roles = panel(MODERATOR)
    file: ClassVar[str]

    @abstractmethod
    def wording(self, taxonomy: str) -> Wording:
        """Give what they are told, in a recipe with this taxonomy."""

    def looked_at(self, rows: Rows, build: StageContext) -> Iterator[PromptRecord | Dropped]:
        """Give the rows to ask about, and those that are dropped without."""
        for row in rows:
            yield Dropped(row, TOO_LONG) if len(row.prompt) > PROMPT_LIMIT else row

    def response(self, row: PromptRecord) -> str | None:
        """Give the text beside its prompt that is judged, where it isn't the prompt."""
        return None

    def talk(
        self, model: BoundModel, wording: Wording, prompt: str, response: str | None
    ) -> Talk[Opinion]:
        """Ask a model about a prompt, or about the text beside it."""
        return judging(wording, prompt, response)

    def judged(
        self, rows: Rows, build: StageContext
    ) -> Iterator[tuple[PromptRecord, list[Opinion]] | Dropped]:
        """Give each row with what every model said of it, under names that differ."""
        [role] = self.roles
        panel, wording = build.panel(role), self.wording(build.taxonomy)
        names = numbered(model.name for model in panel)

        def questions(row: PromptRecord) -> list[Question[Opinion]]:
            response = self.response(row)
            return [
                Question(
                    role,
                    (model,),
                    partial(self.talk, model, wording, row.prompt, response),
                    partial(told_of, wording.good),
                    shown={"id": row.id, "category": row.category, "method": row.method},
                    text=response or row.prompt,
                )
                for model in panel
            ]

        asked = (
            (item, [] if isinstance(item, Dropped) else questions(item))
            for item in self.looked_at(rows, build)
        )
        for item, said in build.ask(asked):
            if isinstance(item, Dropped):
                yield item
            else:
                named = zip(names, said, strict=True)
                yield item, [opinion._replace(model=name) for name, opinion in named]

    def plan(self, rows: int, build: StageContext) -> Plan:
        """Estimate a call per row and model; repair questions are not counted."""
        [role] = self.roles
        wording = self.wording(build.taxonomy)
        told = estimated_tokens(wording.system, wording.case.template)
        shown = build.row_tokens + (RESPONSE_TOKENS if wording.of_response else 0)
        return Plan(rows, (Calls(role, rows, rows * (shown + told), rows * _ANSWER_TOKENS),))

    def prompts(self) -> list[Path]:
        """Give the file with what they are told."""
        return [prompt_path(self.file)]


class AgreedStage(PanelStage):
    """Keeps the rows of which enough of a panel say the good thing.

    Attributes:
        sides: What stands for the good answer and for any other, in tables and as a reason.
        meta: Key of ``meta`` under which a row has what each model said.
        agree: How many must say it; one that gives no readable answer doesn't.
    """

    sides: ClassVar[tuple[str, str]]
    meta: ClassVar[str]
    agree: Agree = "majority"

    def decide(self, row: PromptRecord, opinions: Sequence[Opinion]) -> Outcome:
        """Keep a row that they agree on."""
        good, bad = self.sides
        judged = with_meta(row, **{self.meta: {one.model: one.said for one in opinions}})
        found = agreement(opinions, {good}, self.agree)
        if found == "agreed":
            return Kept(judged)
        return Dropped(judged, bad if found == "opposed" else found, in_words(opinions))

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Keep the rows that the panel agrees on, and say how often it does."""
        tables = PanelTables(self.wording(build.taxonomy).good, self.sides)
        for found in self.judged(rows, build):
            if isinstance(found, Dropped):
                yield found
            else:
                tables.add(found[1])
                yield self.decide(*found)
        self.tell(tables, build)

    def tell(self, tables: PanelTables, build: StageContext) -> None:
        """Save what was counted."""
        tables.save(build)

    def parts(self) -> list[str]:
        """Name the reasons."""
        return [self.sides[1], *UNDECIDED, TOO_LONG]
