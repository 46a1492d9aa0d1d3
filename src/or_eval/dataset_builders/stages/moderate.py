"""The stage ``moderate``: a panel sorts prompts, or responses to them, into categories or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Literal

from or_eval.dataset_builders.engine.conversations import Question
from or_eval.dataset_builders.engine.ports import (
    MODERATOR,
    RESPONSE_TOKENS,
    Dropped,
    Kept,
    Outcome,
    Plan,
    Stage,
    StageContext,
    StageParams,
    Table,
)
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.engine.rows import Rows, with_meta
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.panel.agreement import Agree, PanelTables, agreement, votes
from or_eval.dataset_builders.panel.guard_moderators import (
    UNNAMED,
    GuardJudging,
    format_for,
)
from or_eval.dataset_builders.panel.moderators import (
    PROMPT_LIMIT,
    REFUSED,
    UNREADABLE,
    Judging,
    Opinion,
    Wording,
    category_spellings,
    in_words,
    judged_by,
    load_wording,
    opinions_of,
)
from or_eval.dataset_builders.panel.panel_plan import panel_calls
from or_eval.dataset_builders.prompt_files import data_path, prompt_path
from or_eval.schema import Label, PromptRecord, taxonomies
from or_eval.scorers.visible_text import has_visible_text

NONE = "none"
"""What a moderator says of a text that falls into no category."""

_PROMPT = "prompt"


class ModerateParams(StageParams):
    """What a recipe may say to ``moderate``.

    Attributes:
        keep: Which rows go on: those that the panel holds for safe or for toxic.
        agree: How many moderators must say so; one that gives no readable answer says neither.
        unreadable: What a moderator says that refuses to sort or can't be read: nothing
            (``withheld``), or ``toxic``, beside one that says so.
        text: What they sort: ``prompt``, or the name of a text in ``meta``, such as a response,
            which they are shown beside the prompt.
    """

    keep: Literal["safe", "toxic"] = "safe"
    agree: Agree = "majority"
    unreadable: Literal["withheld", "toxic"] = "withheld"
    text: str = _PROMPT


def run(rows: Rows, params: ModerateParams, context: StageContext) -> Iterator[Outcome]:
    """Keep what the panel agrees on; each row carries the moderators' answers in ``meta``."""
    _check_text(rows, params.text)
    panel = context.panel(MODERATOR)
    wording = moderation_wording(context.taxonomy, params.text != _PROMPT)
    categories = set(taxonomies()[context.taxonomy])
    other: Literal["safe", "toxic"] = "toxic" if params.keep == "safe" else "safe"
    tables = PanelTables(NONE, ("safe", "toxic"))

    def asked() -> Iterator[tuple[PromptRecord, list[Question[Judging]]]]:
        for row in rows:
            if _unfit(row, params.text):
                yield row, []
            else:
                response = None if params.text == _PROMPT else row.meta[params.text]
                asked = judged_by(panel, wording, row, response)
                yield row, asked if response is not None else _guards_in_their_format(asked, row)

    for row, judgings in context.ask(asked()):
        if reason := _unfit(row, params.text):
            yield Dropped(_labelled(row, Label.UNLABELLED, params.text), reason)
            continue
        opinions = opinions_of(panel, judgings)
        tables.add(opinions)
        counted = opinions if params.unreadable == "withheld" else _toxic_if_unreadable(opinions)
        wanted = {NONE} if params.keep == "safe" else {*categories, UNNAMED, UNREADABLE}
        found = agreement(counted, wanted, params.agree)
        called_toxic = any(opinion.said not in (None, NONE) for opinion in opinions)
        if {"agreed": params.keep, "opposed": other}.get(found) == "toxic" and not called_toxic:
            # What nobody called so is not toxic because nobody could be understood.
            found = agreement(opinions, wanted, params.agree)
        said = with_meta(row, **{meta_key(params.text): votes(opinions)})
        if found == "agreed":
            yield Kept(_labelled(said, params.keep, params.text))
        elif found == "opposed":
            yield Dropped(_labelled(said, other, params.text), other, in_words(opinions))
        else:
            said = _labelled(said, Label.UNLABELLED, params.text)
            yield Dropped(said, found, in_words(opinions))
    yield from tables.outcomes()
    if by_category := tables.answers():
        yield Table("categories", by_category)


def _guards_in_their_format(
    questions: Sequence[Question[Judging]], row: PromptRecord
) -> list[Question[Judging]]:
    """Ask each guard among the moderators of a prompt in the format that it was trained on."""
    return [
        question
        if (own := format_for(question.models[0].name)) is None
        else replace(question, start=partial(GuardJudging, own, row.prompt, NONE))
        for question in questions
    ]


def _toxic_if_unreadable(opinions: Sequence[Opinion]) -> list[Opinion]:
    return [
        opinion._replace(said=UNREADABLE) if opinion.withheld in (REFUSED, UNREADABLE) else opinion
        for opinion in opinions
    ]


def plan(rows: int, params: ModerateParams, context: StageContext) -> Plan:
    """Estimate a call per row and moderator; repair questions are not counted."""
    wording = moderation_wording(context.taxonomy, params.text != _PROMPT)
    tokens = context.row_tokens + (0 if params.text == _PROMPT else RESPONSE_TOKENS)
    return Plan(rows, (panel_calls([(rows, tokens, wording)]),))


def meta_key(text: str) -> str:
    """Give the name under which ``meta`` holds the moderators' answers on a text."""
    return "moderation" if text == _PROMPT else f"moderation_{text}"


@cache
def moderation_wording(taxonomy: str, of_response: bool) -> Wording:
    """Give what moderators are told, with the categories of a taxonomy."""
    categories = taxonomies()[taxonomy].values()
    return load_wording(
        "moderate",
        "response" if of_response else "prompt",
        "category",
        category_spellings(taxonomy, NONE),
        NONE,
        categories="\n".join(f"- {one.key}: {one.definition}" for one in categories),
        keys=", ".join(one.key for one in categories),
    )


def _check_text(rows: Rows, text: str) -> None:
    if text == _PROMPT or not rows or any(text in row.meta for row in rows):
        return
    there = ", ".join(sorted({key for row in rows for key in row.meta})) or "nothing"
    raise BuildError(f"text: {text}: no row has it in meta (there is: {there})")


def _unfit(row: PromptRecord, text: str) -> str | None:
    if text == _PROMPT:
        return "too long" if len(row.prompt) > PROMPT_LIMIT else None
    said = row.meta.get(text)
    return None if isinstance(said, str) and has_visible_text(said) else "no text"


def _labelled(row: PromptRecord, label: str, text: str) -> PromptRecord:
    """Give a prompt its label; what is found of another text says nothing about the prompt."""
    return replace(row, label=Label(label)) if text == _PROMPT else row


def _files(params: ModerateParams) -> list[Path]:
    return [prompt_path("moderate"), data_path("taxonomies.toml")]


def _parts(params: ModerateParams) -> list[str]:
    unfit = "too long" if params.text == _PROMPT else "no text"
    undecided = ["disagreement", "unreadable", BLOCKED, FAILED]
    return ["toxic" if params.keep == "safe" else "safe", *undecided, unfit]


STAGE = Stage(ModerateParams, run, plan, roles={MODERATOR: "panel"}, prompts=_files, parts=_parts)
