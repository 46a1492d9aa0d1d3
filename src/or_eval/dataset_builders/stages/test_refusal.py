"""The stage ``test_refusal``: ask target models each prompt, and class their responses."""

from __future__ import annotations

from collections.abc import Sequence

from inspect_ai import task_with
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from pydantic import Field, field_validator

from or_eval.dataset_builders.engine.ports import (
    SHORT_PROMPT_TOKENS,
    Calls,
    Place,
    Plan,
    Stage,
    StageContext,
    StageParams,
    StageResult,
)
from or_eval.dataset_builders.engine.request_errors import BLOCKED, request_problem
from or_eval.schema import PromptRecord
from or_eval.scorers.judge import GRADER_ROLE
from or_eval.solvers.structured_output import failure
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
    task = task_with(
        task,
        name="test_refusal",
        epochs=params.epochs,
        solver=blocked_or_answered(task.solver),
    )
    logs = context.ask_each(task, params.models)
    return StageResult(rows, logs=logs, models={"target": list(params.models)})


@solver
def blocked_or_answered(inner: Solver) -> Solver:
    """Run a solver; where the provider won't have the prompt's content, that is the response."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        try:
            return await inner(state, generate)
        except Exception as error:
            if request_problem(error) != BLOCKED:
                raise
            state.output = ModelOutput.from_content(
                str(state.model),
                "",
                stop_reason="content_filter",
                error=failure(error, get_model()),
            )
            return state

    return solve


def plan(rows: int, params: RefusalTestParams, context: StageContext | None) -> Plan:
    """Estimate a call per row, model and epoch; a judge reads what the rules leave open."""
    calls = rows * params.epochs
    sent = calls * (context.row_tokens if context else SHORT_PROMPT_TOKENS)
    return Plan(
        rows,
        tuple(Calls(model, calls, sent, calls * _RESPONSE_TOKENS) for model in params.models),
    )


def _problem(params: RefusalTestParams, place: Place) -> str | None:
    return None if params.models else "'models' names no model to test ([PROVIDER/MODEL, ...])"


def _data(params: RefusalTestParams) -> list[str]:
    path = existing_file(params.system_prompt)
    return [] if path is None else [str(path)]


def _models(params: RefusalTestParams) -> Sequence[str]:
    return params.models


STAGE = Stage(
    RefusalTestParams,
    run,
    plan,
    optional_roles=(GRADER_ROLE,),
    data=_data,
    parts=lambda params: (),
    gives_logs=True,
    tests=_models,
    problem=_problem,
)
