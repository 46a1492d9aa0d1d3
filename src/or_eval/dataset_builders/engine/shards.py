"""A shard of a build's calls: what one process has models answer, in ordinary Inspect evals.

It takes nothing from the process that sends it but values, so that it can run in another one.
"""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import GenerateConfig, GenerateConfigArgs, Model, ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import AdaptiveConcurrency

from or_eval.dataset_builders.engine.calls import CallFailed, Calls, Unless
from or_eval.dataset_builders.engine.conversations import (
    Question,
    Reply,
    Request,
    Told,
    reply_of,
)
from or_eval.dataset_builders.engine.models import Asking, BoundModel, Make, made_of, share_of
from or_eval.dataset_builders.engine.replies import Replies
from or_eval.dataset_builders.engine.request_errors import request_problem
from or_eval.dataset_builders.engine.stage import TARGET
from or_eval.schema import PromptRecord
from or_eval.solvers.structured_output import failure, generate_structured

LOGS = "logs"
MARK = "or_eval"
"""Key of a log's metadata that says what kind of log of a build it is."""

_QUESTIONS = "questions"
_FLUSHES = 20

MakeTasks: TypeAlias = Callable[[Make, Calls], list[Task]]
"""Makes tasks, each of which has a log of its own."""


class Held(NamedTuple):
    """What came of a shard.

    Attributes:
        logs: The logs, without their samples.
        rejected: What models said of questions, of which they reject all.
        too_dear: Whether calls were held back since they might have cost too much.
        broken: Why no more is asked of some models.
        unkept: Why replies can't be kept, once one couldn't.
        lost: Replies that couldn't be kept, and calls that were cut off.
    """

    logs: list[EvalLog]
    rejected: list[str]
    too_dear: bool
    broken: list[str]
    unkept: str
    lost: int


def hold_shard(
    shard: tuple[MakeTasks, int, int | None],
    *,
    roles: Mapping[str, Sequence[BoundModel]],
    asking: Asking,
    logs_folder: Path,
    replies_folder: Path,
    stage: str,
    left: float | None,
    of: int,
) -> Held:
    """Have a shard answered.

    Args:
        shard: What makes its tasks, their samples, and which of the build's workers does it; None
            for the build's own process.
        roles: Models that the tasks ask beside their own.
        asking: How models are called.
        logs_folder: Folder of the logs.
        replies_folder: Folder of the replies.
        stage: The stage for which costs are counted.
        left: Most dollars that all workers may spend; None for no limit.
        of: How many workers share the calls at once, and the money.
    """
    make_tasks, samples, worker = shard
    config = share_of(asking.config, of)
    if of > 1:
        whole = AdaptiveConcurrency()
        bounds = {name: getattr(whole, name) // of or 1 for name in ("min", "start", "max")}
        config.setdefault("adaptive_connections", AdaptiveConcurrency(**bounds))
    with Replies(replies_folder, worker) as replies:
        calls = Calls(replies, asking.prices, None if left is None else left / of)

        def make(model: BoundModel, role: str, remember: bool = False) -> Model:
            made = model.shared(of).make()
            if not asking.shared_cache:
                made.config.cache = None  # what came is kept otherwise
            return calls.watched(made, model, role, stage, remember)

        tasks = make_tasks(make, calls)
        logs, rejected = list[EvalLog](), list[str]()
        try:
            with _garbage_sought_among_new_things():
                logs = eval(
                    tasks,
                    model_roles=made_of(roles, partial(make, remember=True)),
                    log_dir=str(logs_folder),
                    # Every sample is tried before a stage fails: little is left to do again.
                    fail_on_error=False,
                    continue_on_fail=True,
                    retry_on_error=asking.retry_attempts,
                    max_tasks=len(tasks),
                    log_buffer=max(10, samples // _FLUSHES),
                    # What a killed run loses for it is kept besides.
                    log_realtime=False,
                    log_header_only=True,
                    display="none" if worker is not None else asking.display,  # type: ignore[arg-type]
                    ctl_server=False,
                    **GenerateConfigArgs(**config),  # type: ignore[typeddict-item]
                )
            rejected = calls.rejected()
        except (OSError, sqlite3.OperationalError) as error:  # a call's is its sample's
            calls.note(str(error))
        for log in logs:
            if log.error is not None and log.error.message.startswith("OSError("):
                calls.note(log.error.message)
        if broken := calls.broken():
            for log in logs:  # of a judge that wasn't asked to the end
                if (log.eval.metadata or {}).get(MARK) != _QUESTIONS:
                    Path(log.location).unlink(missing_ok=True)
        return Held(logs, rejected, calls.too_dear, broken, calls.unkept, calls.lost)


def test_tasks(
    rows: Sequence[PromptRecord],
    model: BoundModel,
    judges: Sequence[BoundModel],
    task: Callable[[list[PromptRecord]], Task],
    mark: Mapping[str, str],
    make: Make,
    calls: Calls,
) -> list[Task]:
    """Make the task that tests a model; its log says by a mark what it is of."""
    made = task(list(rows))
    made.metadata = {**(made.metadata or {}), **mark}
    made.model = make(model, TARGET, remember=True)
    made.early_stopping = Unless(lambda id: calls.why([model, *judges]))
    return [made]


def conversation_tasks(
    name: str, questions: Mapping[str, Question[Any]], make: Make, calls: Calls
) -> list[Task]:
    """Make the tasks in which conversations are held, one for each model that answers."""
    by_model: dict[str, dict[str, Question[Any]]] = {}
    for key, question in questions.items():
        by_model.setdefault(question.models[0].identity, {})[key] = question
    return [_task(name, asked, make, calls) for asked in by_model.values()]


def _task(name: str, questions: Mapping[str, Question[Any]], make: Make, calls: Calls) -> Task:
    """Make the task in which conversations are held with models of one kind."""
    samples = [
        Sample(id=key, input=question.text or key, metadata=dict(question.shown))
        for key, question in questions.items()
    ]
    first = next(iter(questions.values()))
    made: dict[str, Model] = {}
    for question in questions.values():
        for bound in question.models:
            if bound.identity not in made:
                made[bound.identity] = make(bound, question.role)
    told: dict[str, Told] = {}
    return Task(
        name=name,
        dataset=MemoryDataset(samples, name=name),
        solver=hold(questions, made, told, calls),
        scorer=answer(told),
        model=made[first.models[0].identity],
        metadata={MARK: _QUESTIONS, "role": first.role},
        early_stopping=Unless(lambda id: calls.why(questions[id].models)),
    )


def hold(
    questions: Mapping[str, Question[Any]],
    models: Mapping[str, Model],
    told: dict[str, Told],
    calls: Calls,
) -> Solver:
    """Hold the conversation of each sample's question, or go on with it, and keep its replies."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        key = str(state.sample_id)
        question = questions[key]
        talk = question.talk()
        state.messages = []
        request, number, kept = next(talk), 0, True
        while True:
            bound = question.models[number % len(question.models)]
            said = calls.replies.get(key, number) if kept else None
            # What was said behind another request is no reply to this one.
            before = None if said is None else Reply(*said)
            kept = before is not None and request.is_answered_by(before)
            if before is not None and kept:
                reply = before
                calls.heard(reply, bound)
                output: ModelOutput | None = ModelOutput.from_content(reply.model, reply.text)
            else:
                output, reply = await _send(request, models[bound.identity], bound.name)
                reply = reply._replace(asked=request.mark)
                calls.keep(key, number, reply, bound)
            # The log shows what was asked last with all that came before it.
            shown = {id(message) for message in state.messages}
            state.messages += [message for message in request.messages if id(message) not in shown]
            if output is not None and not output.empty:
                state.messages.append(output.message)
                state.output = output
            number += 1
            try:
                request = talk.send(reply)
            except StopIteration as end:
                told[key] = question.told(end.value)
                calls.end(key, question.size)
                return state
            except Exception as error:
                # The stage's own: with the replies that are kept, the build meets it again.
                told[key] = Told(0.0, type(error).__name__, str(error))
                return state

    # With no arguments: Inspect logs them, and questions hold the models' keys.
    return solver(name="hold")(lambda: solve)()


@scorer(metrics=[mean()], name="answer")
def answer(told: dict[str, Told]) -> Scorer:
    """Show what a conversation came to, for those who read its log."""

    async def score(state: TaskState, target: Target) -> Score:
        found = told.pop(str(state.sample_id))
        return Score(value=found.value, answer=found.answer, explanation=found.explanation)

    return score


async def _send(request: Request, model: Model, name: str) -> tuple[ModelOutput | None, Reply]:
    try:
        if request.schema is not None:
            output = await generate_structured(
                model, list(request.messages), request.schema, temperature=request.temperature
            )
        else:
            config = GenerateConfig(temperature=request.temperature)
            output = await model.generate(list(request.messages), config=config)
    except Exception as error:
        said = failure(error, model)
        if problem := request_problem(error):
            return None, Reply(name, said, problem, problem, request.about)
        # Not chained: the error may quote the request with its key.
        raise CallFailed(f"{name}: {said}") from None
    return output, reply_of(output, name, request.about)


@contextmanager
def _garbage_sought_among_new_things() -> Iterator[None]:
    """Keep Python from looking through all that is loaded again and again.

    For a model that answers at once, that is a quarter of a call's time.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
