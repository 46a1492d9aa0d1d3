"""The stage ``moderate``: a panel sorts prompts, or responses to them, into categories or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from or_eval.dataset_builders.engine.asking import models_of
from or_eval.dataset_builders.engine.ports import (
    MODERATOR,
    SHORT_PROMPT_TOKENS,
    Dropped,
    Plan,
    Stage,
    StageContext,
    StageParams,
    StageResult,
)
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.engine.rows import with_meta
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.panel.agreement import (
    Agree,
    agreement,
    answer_table,
    panel_tables,
    votes,
)
from or_eval.dataset_builders.panel.moderators import (
    PROMPT_LIMIT,
    Wording,
    as_data,
    ask_panel,
    from_data,
    in_words,
    load_wording,
    numbered,
    plain_spelling,
)
from or_eval.dataset_builders.panel.panel_plan import panel_calls
from or_eval.dataset_builders.prompt_files import prompt_path
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
        text: What they sort: ``prompt``, or the name of a text in ``meta``, such as a response,
            which they are shown beside the prompt.
    """

    keep: Literal["safe", "toxic"] = "safe"
    agree: Agree = "majority"
    text: str = _PROMPT


def run(rows: list[PromptRecord], params: ModerateParams, context: StageContext) -> StageResult:
    """Keep what the panel agrees on; each row carries the moderators' answers in ``meta``."""
    _check_text(rows, params.text)
    kept: list[PromptRecord] = []
    dropped: list[Dropped] = []
    fit: list[PromptRecord] = []
    for row in rows:
        if reason := _unfit(row, params.text):
            dropped.append(Dropped(_labelled(row, Label.UNLABELLED, params.text), reason))
        else:
            fit.append(row)
    answers = context.ask(_task(fit, params.text, context.taxonomy)) if fit else []
    asked = [from_data(answer.found["opinions"]) for answer in answers]
    categories = set(taxonomies()[context.taxonomy])
    other: Literal["safe", "toxic"] = "toxic" if params.keep == "safe" else "safe"
    for row, opinions in zip(fit, asked, strict=True):
        found = agreement(opinions, {NONE} if params.keep == "safe" else categories, params.agree)
        said = with_meta(row, **{meta_key(params.text): votes(opinions)})
        if found == "agreed":
            kept.append(_labelled(said, params.keep, params.text))
        elif found == "opposed":
            detail = in_words(opinions)
            dropped.append(Dropped(_labelled(said, other, params.text), other, detail))
        else:
            said = _labelled(said, Label.UNLABELLED, params.text)
            dropped.append(Dropped(said, found, in_words(opinions)))
    tables = panel_tables(asked, NONE, ("safe", "toxic"))
    if by_category := answer_table(asked, NONE):
        tables["categories"] = by_category
    return StageResult(kept, dropped, tables=tables)


def plan(rows: int, params: ModerateParams, context: StageContext | None) -> Plan:
    """Estimate a call per row and moderator; repair questions are not counted."""
    taxonomy = context.taxonomy if context else "or_bench"
    wording = moderation_wording(taxonomy, params.text != _PROMPT)
    tokens = context.row_tokens if context else SHORT_PROMPT_TOKENS
    return Plan(rows, (panel_calls([(rows, tokens, wording)]),))


def meta_key(text: str) -> str:
    """Give the name under which ``meta`` holds the moderators' answers on a text."""
    return "moderation" if text == _PROMPT else f"moderation_{text}"


@cache
def moderation_wording(taxonomy: str, of_response: bool) -> Wording:
    """Give what moderators are told, with the categories of a taxonomy."""
    categories = taxonomies()[taxonomy].values()
    # Keys last: a key is read as itself, whatever else is spelt so.
    spellings = [(alias, one.key) for one in categories for alias in one.aliases]
    spellings += [(one.name, one.key) for one in categories]
    spellings += [(key, key) for key in (*(one.key for one in categories), NONE)]
    return load_wording(
        "moderate",
        "response" if of_response else "prompt",
        "category",
        {plain_spelling(spelling): key for spelling, key in spellings},
        categories="\n".join(f"- {one.key}: {one.definition}" for one in categories),
        keys=", ".join(one.key for one in categories),
    )


def _check_text(rows: Sequence[PromptRecord], text: str) -> None:
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


def _task(rows: Sequence[PromptRecord], text: str, taxonomy: str) -> Task:
    ids = numbered(row.id for row in rows)
    samples = [
        Sample(
            id=id,
            input=row.prompt,
            metadata={
                "category": row.category,
                "method": row.method,
                "response": None if text == _PROMPT else row.meta[text],
            },
        )
        for id, row in zip(ids, rows, strict=True)
    ]
    return Task(
        name="moderate",
        dataset=MemoryDataset(samples, name="moderate"),
        solver=ask_moderators(taxonomy),
        scorer=moderation(),
    )


@solver
def ask_moderators(taxonomy: str) -> Solver:
    """Ask every model in the role ``moderator`` which category a text falls into."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        response = state.metadata["response"]
        wording = moderation_wording(taxonomy, response is not None)
        panel = models_of(MODERATOR)
        opinions = await ask_panel(panel, wording, state.input_text, response)
        state.store.set("opinions", as_data(opinions))
        return state

    return solve


@scorer(metrics=[mean()])
def moderation() -> Scorer:
    """Give the share of the moderators that hold a text for safe, and what each of them said."""

    async def score(state: TaskState, target: Target) -> Score:
        data: list[dict[str, Any]] = state.store.get("opinions")
        opinions = from_data(data)
        safe = sum(opinion.said == NONE for opinion in opinions)
        return Score(
            value=safe / len(opinions),
            answer=f"{safe} of {len(opinions)} say safe",
            explanation=in_words(opinions),
            metadata={"opinions": data},
        )

    return score


def _files(params: ModerateParams) -> list[Path]:
    return [prompt_path("moderate"), Path(str(files("or_eval") / "data" / "taxonomies.toml"))]


def _parts(params: ModerateParams) -> list[str]:
    unfit = "too long" if params.text == _PROMPT else "no text"
    undecided = ["disagreement", "unreadable", BLOCKED, FAILED]
    return ["toxic" if params.keep == "safe" else "safe", *undecided, unfit]


STAGE = Stage(ModerateParams, run, plan, roles=(MODERATOR,), prompts=_files, parts=_parts)
