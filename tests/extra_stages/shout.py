"""A stage for tests of the pipeline: asks the writer to write each row anew."""

from __future__ import annotations

from dataclasses import replace

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from or_eval.dataset_builders.engine.asking import models_of
from or_eval.dataset_builders.engine.ports import (
    WRITER,
    Calls,
    Plan,
    Stage,
    StageContext,
    StageParams,
    StageResult,
)
from or_eval.schema import PromptRecord, prompt_id


class ShoutParams(StageParams):
    word: str = "shout"


@solver
def ask_writer() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        [model] = models_of(WRITER)
        state.output = await model.generate([ChatMessageUser(content=state.input_text)])
        return state

    return solve


@scorer(metrics=[])
def reply() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=1, metadata={"text": state.output.completion})

    return score


def run(rows: list[PromptRecord], params: ShoutParams, context: StageContext) -> StageResult:
    samples = [Sample(id=row.id, input=f"{params.word}: {row.prompt}") for row in rows]
    answers = context.ask(
        Task(name="shout", dataset=MemoryDataset(samples), solver=ask_writer(), scorer=reply())
    )
    texts = [answer.found["text"] for answer in answers]
    made = [
        replace(row, id=prompt_id(text), prompt=text, seed_id=row.id)
        for row, text in zip(rows, texts, strict=True)
    ]
    return StageResult(made, subsets={"first": made[:1]}, tables={"sizes": [{"rows": len(made)}]})


def plan(rows: int, params: ShoutParams, context: StageContext | None) -> Plan:
    return Plan(rows, (Calls(WRITER, rows, rows * 5, rows * 7),))


STAGE = Stage(ShoutParams, run, plan, roles=(WRITER,))
