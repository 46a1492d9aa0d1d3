"""A shard of a build's calls: what one process has models answer, in ordinary Inspect evals.

It takes nothing from the process that sends it but values, so that it can run in another one.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import GenerateConfig, GenerateConfigArgs, Model, ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import AdaptiveConcurrency

from or_eval.dataset_builders.engine.answer_ledger import MARK, REPLIES, SIZE
from or_eval.dataset_builders.engine.conversations import (
    Answer,
    Question,
    Reply,
    Request,
    Told,
    reply_of,
)
from or_eval.dataset_builders.engine.models import Asking, BoundModel, Make, made_of, share_of
from or_eval.dataset_builders.engine.replies_under_way import UnderWay
from or_eval.dataset_builders.engine.request_errors import request_problem
from or_eval.dataset_builders.engine.spending import Spending
from or_eval.dataset_builders.engine.stopping import Unless
from or_eval.solvers.structured_output import failure, generate_structured

LOGS = "logs"

_CACHE = "cache"
_CACHE_PLACE = "INSPECT_CACHE_DIR"
_FLUSHES = 20

MakeTasks: TypeAlias = Callable[[Make, UnderWay], list[Task]]
"""Makes tasks, whose solvers hand on each reply to a conversation as it comes."""


class Shard(NamedTuple):
    """What one process has answered.

    Attributes:
        tasks: Makes its tasks; each has a log of its own.
        samples: The samples of all of them.
        roles: Models that the tasks ask beside their own.
        worker: Which of the build's workers does it; None for the build's own process.
        of: How many workers share the calls at once, and the money.
    """

    tasks: MakeTasks
    samples: int
    roles: Mapping[str, Sequence[BoundModel]]
    worker: int | None = None
    of: int = 1


class Held(NamedTuple):
    """What came of a shard.

    Attributes:
        logs: The logs, without their samples.
        answers: The conversations that came to their end.
        stopped: Whether calls were held back since they might have cost too much.
        broken: Why no more is asked of some models.
        unkept: Why replies can't be kept, once one couldn't.
        lost: Replies that couldn't be kept, and calls that were cut off.
    """

    logs: list[EvalLog]
    answers: dict[str, Answer]
    stopped: bool
    broken: list[str]
    unkept: str
    lost: int


def hold_shard(asking: Asking, out: Path, stage: str, shard: Shard) -> Held:
    """Have a shard answered.

    Args:
        asking: How models are called.
        out: Folder of the build, which has the replies that came before, and takes logs and costs.
        stage: The stage for which costs are counted.
        shard: The shard.
    """
    config = share_of(asking.config, shard.of)
    if shard.of > 1:
        whole = AdaptiveConcurrency()
        bounds = {name: getattr(whole, name) // shard.of or 1 for name in ("min", "start", "max")}
        config.setdefault("adaptive_connections", AdaptiveConcurrency(**bounds))
    money = Spending(out, asking.prices, asking.max_cost, worker=shard.worker, of=shard.of)
    kept = UnderWay(out, money.stopping, shard.worker)
    with closing(money) as spending, closing(kept) as under_way, cache_of(asking, out):

        def make(model: BoundModel, role: str) -> Model:
            return spending.metered(model.shared(shard.of).make(), model, role, stage)

        tasks = shard.tasks(make, under_way)
        stop, logs = spending.stopping, list[EvalLog]()
        try:
            with _garbage_sought_among_new_things():
                logs = eval(
                    tasks,
                    model_roles=made_of(shard.roles, make),
                    log_dir=str(out / LOGS),
                    # Every sample is tried before a stage fails: little is left to do again.
                    fail_on_error=False,
                    continue_on_fail=True,
                    retry_on_error=asking.retry_attempts,
                    max_tasks=len(tasks),
                    log_buffer=max(10, shard.samples // _FLUSHES),
                    # What a killed run loses for it is kept besides.
                    log_realtime=False,
                    log_header_only=True,
                    display="none" if shard.worker is not None else asking.display,  # type: ignore[arg-type]
                    ctl_server=False,
                    **GenerateConfigArgs(**config),  # type: ignore[typeddict-item]
                )
        except OSError as error:  # of a log: a call's is its sample's
            stop.note(str(error))
        for log in logs:
            if log.error is not None and log.error.message.startswith("OSError("):
                stop.note(log.error.message)
        return Held(logs, under_way.answers, spending.stopped, stop.broken, stop.unkept, stop.lost)


def conversation_tasks(
    name: str,
    questions: Mapping[str, Question[Any]],
    earlier: Mapping[str, list[Reply]],
    cached: bool,
    make: Make,
    under_way: UnderWay,
) -> list[Task]:
    """Make the tasks in which conversations are held, one for each model that answers."""

    def asked_model(bound: BoundModel, role: str) -> Model:
        model = make(bound, role)
        if not cached:
            model.config.cache = None  # what came is kept otherwise
        return model

    by_model: dict[str, dict[str, Question[Any]]] = {}
    for key, question in questions.items():
        by_model.setdefault(question.models[0].identity, {})[key] = question
    return [_task(name, asked, earlier, asked_model, under_way) for asked in by_model.values()]


def _task(
    name: str,
    questions: Mapping[str, Question[Any]],
    earlier: Mapping[str, list[Reply]],
    make: Make,
    under_way: UnderWay,
) -> Task:
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
        solver=hold(questions, made, earlier, told, under_way),
        scorer=answer(told),
        model=made[first.models[0].identity],
        metadata={MARK: "questions", "role": first.role},
        early_stopping=Unless(lambda id: under_way.stopping.why(questions[id].models)),
    )


def hold(
    questions: Mapping[str, Question[Any]],
    models: Mapping[str, Model],
    earlier: Mapping[str, list[Reply]],
    told: dict[str, Told],
    under_way: UnderWay,
) -> Solver:
    """Hold the conversation of each sample's question, or go on with it, and keep its replies."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        key = str(state.sample_id)
        question = questions[key]
        talk = question.talk()
        replies = under_way.replies(key) or list(earlier.get(key, ()))
        state.messages = []
        request, taken = next(talk), 0
        while True:
            if taken < len(replies):
                reply = replies[taken]
                output: ModelOutput | None = ModelOutput.from_content(reply.model, reply.text)
            else:
                bound = question.models[taken % len(question.models)]
                output, reply = await _send(request, models[bound.identity], bound.name)
                replies.append(reply)
                under_way.keep(key, replies)
            # The log shows what was asked last with all that came before it.
            shown = {id(message) for message in state.messages}
            state.messages += [message for message in request.messages if id(message) not in shown]
            if output is not None and not output.empty:
                state.messages.append(output.message)
                state.output = output
            taken += 1
            try:
                request = talk.send(reply)
            except StopIteration as end:
                told[key] = question.told(end.value)
                break
        # Not in the store, whose changes Inspect would log once more.
        state.metadata |= {REPLIES: [list(reply) for reply in replies], SIZE: question.size}
        under_way.answers[key] = Answer(replies, question.size)
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


class CallFailed(Exception):
    """A call failed for good, and not because of its request; the build can be resumed."""


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


def cache_of(asking: Asking, out: Path) -> AbstractContextManager[None]:
    """Let Inspect keep replies in the build's folder, or where it does by itself."""
    return _cache_in(None if asking.shared_cache else out / _CACHE)


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


@contextmanager
def _cache_in(folder: Path | None) -> Iterator[None]:
    """Let Inspect keep its cache in a folder; it takes the place from the environment alone."""
    if folder is None:
        yield
        return
    earlier = os.environ.get(_CACHE_PLACE)
    os.environ[_CACHE_PLACE] = str(folder)
    try:
        yield
    finally:
        if earlier is None:
            del os.environ[_CACHE_PLACE]
        else:
            os.environ[_CACHE_PLACE] = earlier
