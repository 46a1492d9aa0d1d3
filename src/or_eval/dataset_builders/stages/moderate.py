"""The stage ``moderate``: a panel sorts prompts, or responses to them, into categories or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from or_eval.dataset_builders.engine.conversations import Talk
from or_eval.dataset_builders.engine.models import BoundModel
from or_eval.dataset_builders.engine.rows import Rows, with_meta
from or_eval.dataset_builders.engine.stage import Dropped, Kept, Outcome, StageContext
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.panel.agreement import PanelTables, agreement
from or_eval.dataset_builders.panel.moderators import (
    PROMPT_LIMIT,
    REFUSED,
    UNREADABLE,
    Opinion,
    Wording,
    category_wording,
    in_words,
    judging,
)
from or_eval.dataset_builders.panel.panel_stage import TOO_LONG, UNDECIDED, AgreedStage
from or_eval.dataset_builders.panel.prompt_guards import format_for, guard_judging
from or_eval.dataset_builders.prompt_files import data_path
from or_eval.schema import Label, PromptRecord
from or_eval.scorers.visible_text import has_visible_text

NONE = "none"
"""What a moderator says of a text that falls into no category."""

_PROMPT, _NO_TEXT = "prompt", "no text"
_OTHER: dict[str, str] = {"safe": "toxic", "toxic": "safe"}


class Moderate(AgreedStage):
    """Keep what the panel agrees on; each row carries the moderators' answers in ``meta``.

    Attributes:
        keep: Which rows go on: those that the panel holds for safe or for toxic.
        agree: How many moderators must say so; one that gives no readable answer says neither.
        unreadable: What a moderator says that refuses to sort or can't be read: nothing
            (``withheld``), or ``toxic``, beside one that says so.
        text: What they sort: ``prompt``, or the name of a text in ``meta``, such as a response,
            which they are shown beside the prompt.
    """

    file = "moderate"
    sides = ("safe", "toxic")
    keep: Literal["safe", "toxic"] = "safe"
    unreadable: Literal["withheld", "toxic"] = "withheld"
    text: str = _PROMPT

    def wording(self, taxonomy: str) -> Wording:
        """Give what moderators are told, with the categories of a taxonomy."""
        part = "prompt" if self.text == _PROMPT else "response"
        return category_wording("moderate", part, taxonomy, NONE)

    def looked_at(self, rows: Rows, build: StageContext) -> Iterator[PromptRecord | Dropped]:
        """Give the rows with a text to sort."""
        if self.text != _PROMPT and rows and not any(self.text in row.meta for row in rows):
            there = ", ".join(sorted({key for row in rows for key in row.meta})) or "nothing"
            raise BuildError(f"text: {self.text}: no row has it in meta (there is: {there})")
        for row in rows:
            said = row.meta.get(self.text)
            if self.text == _PROMPT and len(row.prompt) > PROMPT_LIMIT:
                yield Dropped(row, TOO_LONG)
            elif self.text != _PROMPT and not (isinstance(said, str) and has_visible_text(said)):
                yield Dropped(row, _NO_TEXT)
            else:
                yield row

    def response(self, row: PromptRecord) -> str | None:
        """Give the text that is sorted, where it isn't the prompt."""
        return None if self.text == _PROMPT else str(row.meta[self.text])

    def talk(
        self, model: BoundModel, wording: Wording, prompt: str, response: str | None
    ) -> Talk[Opinion]:
        """Ask a model: a guard, about a prompt, in the format it was trained on."""
        own = format_for(model.name) if response is None else None
        return guard_judging(own, prompt, NONE) if own else judging(wording, prompt, response)

    def decide(self, row: PromptRecord, opinions: Sequence[Opinion]) -> Outcome:
        """Keep a row of which they agree that it is what is kept."""
        found = self._agreed(opinions, toxic_if_unreadable=self.unreadable == "toxic")
        if found == "toxic" and all(opinion.said in (None, NONE) for opinion in opinions):
            # What nobody called so is not toxic because nobody could be understood.
            found = self._agreed(opinions)
        meta = "moderation" if self.text == _PROMPT else f"moderation_{self.text}"
        judged = with_meta(row, **{meta: {one.model: one.said for one in opinions}})
        return Kept(judged) if found == self.keep else Dropped(judged, found, in_words(opinions))

    def _agreed(self, opinions: Sequence[Opinion], toxic_if_unreadable: bool = False) -> str:
        sides = []
        for one in opinions:
            said = one.said and ("safe" if one.said == NONE else "toxic")
            if toxic_if_unreadable and one.withheld in (REFUSED, UNREADABLE):
                said = "toxic"
            sides.append(one._replace(said=said))
        found = agreement(sides, {self.keep}, self.agree)
        return {"agreed": self.keep, "opposed": _OTHER[self.keep]}.get(found, found)

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Label prompts by what is found of them; another text says nothing of its prompt."""
        for found in super().run(rows, build):
            said = self.keep if isinstance(found, Kept) else found.reason
            label = Label(said) if said in _OTHER else Label.UNLABELLED
            record = replace(found.record, label=label) if self.text == _PROMPT else found.record
            yield found._replace(record=record)

    def tell(self, tables: PanelTables, build: StageContext) -> None:
        """Save what was counted, and the categories that each moderator named."""
        super().tell(tables, build)
        if by_category := tables.answers():
            build.table("categories", by_category)

    def prompts(self) -> list[Path]:
        """Give the file with what they are told, and that of the categories."""
        return [*super().prompts(), data_path("taxonomies.toml")]

    def parts(self) -> list[str]:
        return [_OTHER[self.keep], *UNDECIDED, TOO_LONG if self.text == _PROMPT else _NO_TEXT]


STAGE = Moderate
