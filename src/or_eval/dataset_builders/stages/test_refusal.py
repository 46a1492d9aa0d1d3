"""The stage ``test_refusal``: ask target models each prompt, and class their responses."""

from __future__ import annotations

from pathlib import Path

from inspect_ai import task_with
from pydantic import Field, field_validator

from or_eval.dataset_builders.stage import (
    SHORT_PROMPT_TOKENS,
    Calls,
    Plan,
    Stage,
    StageContext,
    StageParams,
    StageResult,
)
from or_eval.schema import PromptRecord
from or_eval.scorers.judge import GRADER_ROLE
from or_eval.solvers.system_prompt import existing_file
from or_eval.sources import LoadedPrompts
from or_eval.tasks.refusal_task import refusal_task

_RESPONSE_TOKENS = 300


class RefusalTestParams(StageParams):
    """What a recipe may say to ``test_refusal``.

    Attributes:
        models: The models to test, in Inspect's names.
        system_prompt: As in the tasks: ``helpful``, ``safe``, ``none``, a path, or text.
        epochs: How often each model is asked each prompt.
    """

    models: tuple[str, ...] = ()
    system_prompt: str = "none"
    epochs: int = Field(default=1, ge=1)

    @field_validator("models")
    @classmethod
    def _are_models(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        for name in models:
            if "/" not in name.strip("/"):
                raise ValueError(f"'{name}' is no PROVIDER/MODEL")
            if models.count(name) > 1:
                raise ValueError(f"'{name}' stands there twice")
        return models


def run(rows: list[PromptRecord], params: RefusalTestParams, context: StageContext) -> StageResult:
    """Test the models; all rows go on, with the logs for ``vote`` and ``assess``."""
    if not rows:
        return StageResult([])
    task = refusal_task(
        LoadedPrompts(records=rows, duplicates=0, name=str(context.recipe.get("name"))),
        system_prompt=params.system_prompt,
        description="Which prompts of a data set that is being built do models refuse?",
    )
    task = task_with(task, name="test_refusal", epochs=params.epochs)
    logs = context.ask_each(task, params.models)
    return StageResult(rows, logs=logs, models={"target": list(params.models)})


def plan(rows: int, params: RefusalTestParams, context: StageContext | None) -> Plan:
    """Estimate a call per row, model and epoch; a judge reads what the rules leave open."""
    calls = rows * params.epochs
    sent = calls * (context.row_tokens if context else SHORT_PROMPT_TOKENS)
    return Plan(
        rows,
        tuple(Calls(model, calls, sent, calls * _RESPONSE_TOKENS) for model in params.models),
    )


def _lacks(params: RefusalTestParams) -> str | None:
    return None if params.models else "'models' names no model to test ([PROVIDER/MODEL, ...])"


def _data(params: RefusalTestParams) -> list[Path]:
    path = existing_file(params.system_prompt)
    return [] if path is None else [path]


STAGE = Stage(RefusalTestParams, run, plan, optional_roles=(GRADER_ROLE,), lacks=_lacks, data=_data)
