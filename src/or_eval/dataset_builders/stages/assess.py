"""The stage ``assess``: the last check that answering a prompt is harmless."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from or_eval.dataset_builders.engine.conversations import Question
from or_eval.dataset_builders.engine.ports import (
    MODERATOR,
    RESPONSE_TOKENS,
    Dropped,
    Kept,
    Outcome,
    Place,
    Plan,
    Stage,
    StageContext,
    StageParams,
)
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.engine.rows import Rows, with_meta
from or_eval.dataset_builders.panel.agreement import Agree, PanelTables, agreement, votes
from or_eval.dataset_builders.panel.answered_responses import Response, answered_responses
from or_eval.dataset_builders.panel.moderators import (
    PROMPT_LIMIT,
    Judging,
    Opinion,
    Wording,
    in_words,
    judged_by,
    load_wording,
    opinions_of,
)
from or_eval.dataset_builders.panel.panel_plan import panel_calls
from or_eval.dataset_builders.prompt_files import prompt_path
from or_eval.schema import Label, PromptRecord

HARMLESS, HARMFUL = "harmless", "harmful"
HARMFUL_RESPONSE = "harmful response"


class AssessParams(StageParams):
    """What a recipe may say to ``assess``.

    Attributes:
        agree: How many moderators must say harmless, of the prompt and of each response; one
            that gives no readable answer doesn't.
        responses: Whether to check the responses of tested models too.
        most_responses: Most responses to one prompt that are checked.
    """

    agree: Agree = "majority"
    responses: bool = False
    most_responses: int = Field(default=3, ge=1)


class Assessment(NamedTuple):
    """What the panel said of a prompt, and of each of the responses that it was asked about."""

    prompt: list[Opinion]
    responses: dict[str, list[Opinion]]


def run(rows: Rows, params: AssessParams, context: StageContext) -> Iterator[Outcome]:
    """Keep the prompts that the panel finds harmless, and whose responses it finds harmless.

    With ``responses``, it holds those that the panel is asked about.
    """
    panel = context.panel(MODERATOR)
    of_prompts = PanelTables(HARMLESS, (HARMLESS, HARMFUL))
    of_responses = PanelTables(HARMLESS, (HARMLESS, HARMFUL))
    answered = _responses(rows, params, context)

    def about_prompts() -> Iterator[tuple[PromptRecord, list[Question[Judging]]]]:
        wording = assessment_wording("prompt")
        for row in rows:
            long = len(row.prompt) > PROMPT_LIMIT
            yield row, [] if long else judged_by(panel, wording, row)

    def about_responses() -> Iterator[tuple[_Of, list[Question[Judging]]]]:
        wording = assessment_wording("response")
        for row, judgings in context.ask(about_prompts()):
            opinions = opinions_of(panel, judgings) if judgings else None
            harmless = opinions is not None and agreement(opinions, {HARMLESS}, params.agree)
            responses = answered.get(row.id, []) if harmless == "agreed" else []
            asked = [
                question
                for one in responses
                for question in judged_by(panel, wording, row, one.text)
            ]
            yield _Of(row, opinions, [one.model for one in responses]), asked

    for of, judgings in context.ask(about_responses()):
        if of.opinions is None:
            yield Dropped(_relabelled(of.row, "too long"), "too long")
            continue
        of_prompts.add(of.opinions)
        said = {
            model: opinions_of(panel, judgings[number * len(panel) :][: len(panel)])
            for number, model in enumerate(of.models)
        }
        for opinions in said.values():
            of_responses.add(opinions)
        found = Assessment(of.opinions, said)
        row = with_meta(of.row, **_facts(found, params))
        reason, detail = _objection(found, params.agree)
        if reason is None:
            yield Kept(replace(row, label=Label.SAFE))
        else:
            yield Dropped(_relabelled(row, reason), reason, detail)
    yield from of_prompts.outcomes()
    yield from of_responses.outcomes("responses_")


class _Of(NamedTuple):
    """What is known of a row before its responses are judged; no opinions where it is too long."""

    row: PromptRecord
    opinions: list[Opinion] | None
    models: list[str]


def plan(rows: int, params: AssessParams, context: StageContext) -> Plan:
    """Estimate a call per row, response and moderator; repair questions are not counted.

    As many responses as are wanted at most are counted for each row.
    """
    parts = [(rows, context.row_tokens, assessment_wording("prompt"))]
    if params.responses:
        wording = assessment_wording("response")
        parts.append((rows * params.most_responses, context.row_tokens + RESPONSE_TOKENS, wording))
    return Plan(rows, (panel_calls(parts),))


@cache
def assessment_wording(part: str) -> Wording:
    """Give what moderators are told about a ``prompt`` or a ``response``."""
    return load_wording(
        "assess", part, "verdict", {verdict: verdict for verdict in (HARMLESS, HARMFUL)}, HARMLESS
    )


def _responses(
    rows: Rows, params: AssessParams, context: StageContext
) -> dict[str, list[Response]]:
    if not params.responses:
        return {}
    ids = {row.id for row in rows if len(row.prompt) <= PROMPT_LIMIT}
    return answered_responses(context.input_logs, ids, params.most_responses) if ids else {}


def _facts(found: Assessment, params: AssessParams) -> dict[str, Any]:
    facts: dict[str, Any] = {"assessment": votes(found.prompt)}
    if params.responses:
        facts["assessment_responses"] = {
            model: votes(opinions) for model, opinions in found.responses.items()
        }
    return facts


def _objection(found: Assessment, agree: Agree) -> tuple[str | None, str]:
    """Give the gravest reason to drop a row, and the opinions behind it; no reason to keep it."""
    of_prompt = agreement(found.prompt, {HARMLESS}, agree)
    if of_prompt != "agreed":
        return HARMFUL if of_prompt == "opposed" else of_prompt, in_words(found.prompt)
    by_model = {
        model: agreement(opinions, {HARMLESS}, agree) for model, opinions in found.responses.items()
    }
    for objection in ("opposed", "disagreement", "unreadable", "blocked", "failed"):
        for model, opinions in found.responses.items():
            if by_model[model] == objection:
                reason = HARMFUL_RESPONSE if objection == "opposed" else objection
                return reason, f"response of {model}\n{in_words(opinions)}"
    return None, ""


def _relabelled(row: PromptRecord, reason: str) -> PromptRecord:
    """Label a dropped prompt by what is known now: harmful, or neither that nor safe."""
    return replace(row, label=Label.TOXIC if reason == HARMFUL else Label.UNLABELLED)


def _files(params: AssessParams) -> list[Path]:
    return [prompt_path("assess")]


def _problem(params: AssessParams, place: Place) -> str | None:
    if params.responses and place.tested is None:
        return (
            "responses: its input has no logs of tested models; 'input' has to name a stage that "
            "tests refusal or votes on such tests"
        )
    return None


def _parts(params: AssessParams) -> list[str]:
    return [HARMFUL, HARMFUL_RESPONSE, "disagreement", "unreadable", BLOCKED, FAILED, "too long"]


STAGE = Stage(
    AssessParams,
    run,
    plan,
    roles={MODERATOR: "panel"},
    prompts=_files,
    parts=_parts,
    problem=_problem,
)
