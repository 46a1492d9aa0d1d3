"""Asking models: what isn't answered yet goes out as Inspect tasks, in shards, and is kept.

Three things make sure that nothing is asked twice. What a log holds is in the ledger, under the
question. Each reply is put in Inspect's cache, in the build's folder, as soon as it comes, for
conversations that were under way. And equal questions are asked once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import (
    EvalLog,
    read_eval_log_sample_summaries,
)
from inspect_ai.model import GenerateConfig, GenerateConfigArgs, Model, ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from or_eval.dataset_builders.engine.answer_ledger import (
    MARK,
    REPLIES,
    SIZE,
    Ledger,
    tested_key,
)
from or_eval.dataset_builders.engine.conversations import (
    Answer,
    Question,
    Reply,
    Request,
    Talk,
    replayed,
    reply_of,
)
from or_eval.dataset_builders.engine.models import (
    Binding,
    BoundModel,
    Make,
    bindings_of_options,
    default_model,
    made_of,
)
from or_eval.dataset_builders.engine.ports import TARGET, Verdicts
from or_eval.dataset_builders.engine.prices import Prices
from or_eval.dataset_builders.engine.request_errors import request_problem
from or_eval.dataset_builders.engine.rows import in_batches
from or_eval.dataset_builders.engine.spending import Spending
from or_eval.dataset_builders.engine.tested_logs import VERDICTS, judged_as_now
from or_eval.dataset_builders.errors import BuildError
from or_eval.schema import PromptRecord
from or_eval.solvers.structured_output import failure, generate_structured

SHARD = 10_000
"""Most samples of one log, which bounds what is in memory and what a resume reads again."""

_LOGS, _CACHE = "logs", "cache"
_CACHE_PLACE = "INSPECT_CACHE_DIR"
_AS_SHOWN = re.compile(r"\w+\((['\"])(.*)\1,?\)", re.DOTALL)
_ERROR_CHARS = 300
_FLUSHES = 20

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Asking:
    """Which models the user asks for, and how; none of it changes what the stages ask.

    Attributes:
        model: The model for every role that none is bound to.
        roles: ``ROLE=MODEL`` in Inspect's syntax, lists and settings included.
        shared_cache: Use Inspect's own cache, which all builds share, rather than the build's.
        config: Inspect's generation settings (``max_connections``, ``batch``, ``timeout``, ...).
        retry_attempts: How often a sample that failed is tried again.
        display: Inspect's display; None for its default.
        prices: Prices of models that the user gives.
        max_cost: Most dollars that a build may cost, all its runs together.
    """

    model: str | None = None
    roles: tuple[str, ...] = ()
    shared_cache: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    retry_attempts: int = 1
    display: str | None = None
    prices: Prices = field(default_factory=dict)
    max_cost: float | None = None

    def bindings(self) -> dict[str, Binding]:
        """Give the models of each role that the user binds; under "" those of all others.

        Raises:
            BuildError: Inspect can't read a binding.
        """
        default = default_model(self.model)
        return {**({} if default is None else {"": default}), **bindings_of_options(self.roles)}


class Asker:
    """Asks what a build's ledger doesn't know.

    Args:
        asking: How.
        out: Folder of the build.
    """

    def __init__(self, asking: Asking, out: Path) -> None:
        self._asking, self._out = asking, out
        self.ledger = Ledger(out, out / _LOGS)
        self.spending = Spending(out, asking.prices, asking.max_cost)

    def close(self) -> None:
        """Let go of the build's files."""
        self.ledger.close()
        self.spending.close()

    def ask(
        self, name: str, items: Iterable[tuple[Item, Sequence[Question[Talk]]]]
    ) -> Iterator[tuple[Item, list[Talk]]]:
        """Have questions answered; give each item with its conversations, in the items' order.

        Args:
            name: What the logs are called.
            items: Whatever the questions belong to, with the questions.

        Raises:
            BuildError: Some could not be answered, although they were tried again.
            KeyboardInterrupt: The run was interrupted.
        """
        for some in in_batches(items, SHARD):
            # Of equal questions the largest, whose answer serves the others.
            asked = sorted(
                (question for _, questions in some for question in questions),
                key=lambda question: question.size,
            )
            wanted = {question.key: question for question in asked}
            self._answer(name, self._unanswered(wanted))
            found = self.ledger.answers(wanted)
            for item, questions in some:
                yield item, [replayed(question, found[question.key]) for question in questions]

    def _unanswered(self, questions: Mapping[str, Question[Any]]) -> dict[str, Question[Any]]:
        known = self.ledger.sizes(questions)
        return {key: one for key, one in questions.items() if known.get(key, 0) < one.size}

    def test(
        self,
        rows: Iterable[PromptRecord],
        model: BoundModel,
        mark: str,
        task: Callable[[list[PromptRecord]], Task],
        verdicts: Verdicts,
    ) -> list[str]:
        """Run a task on the rows that it wasn't run on; give the logs that hold all of them.

        Responses that were judged otherwise than now are judged again, where they are.

        Args:
            rows: The rows; a sample's id is its row's.
            model: The model under test.
            mark: What stands for the model and for all that changes its responses.
            task: Makes the task for some rows.
            verdicts: How the responses are judged.

        Raises:
            BuildError: Samples failed, although they were tried again.
            KeyboardInterrupt: The run was interrupted.
        """
        logs: dict[Path, None] = {}
        for some in in_batches(rows, SHARD):
            ids = {tested_key(mark, row.id): row for row in some}
            left = [row for key, row in ids.items() if key not in self.ledger.tested(ids)]
            if left:
                made = task(left)
                made.metadata = {**(made.metadata or {}), MARK: mark, VERDICTS: verdicts.mark}
                made.model = self.made(model, TARGET)
                self._run([made], len(left), verdicts.roles)
            found = self.ledger.tested(ids)
            if short := len(ids) - len(found):
                raise BuildError(f"{short} of {len(ids)} prompts of {model.name} were not tested")
            logs |= dict.fromkeys(found[key] for key in ids)
        # What the judge said is in the cache.
        with self._cache():
            for path in logs:
                if judged_as_now(path, verdicts, self.made, self._asking.display):
                    self.ledger.add(path)
        return [str(path) for path in logs]

    def made(self, model: BoundModel, role: str) -> Model:
        """Make a model whose calls are counted."""
        return self.spending.metered(model.make(), model.name, role)

    def _cache(self) -> AbstractContextManager[None]:
        return _cache_in(None if self._asking.shared_cache else self._out / _CACHE)

    def _answer(self, name: str, questions: Mapping[str, Question[Any]]) -> None:
        by_model: dict[str, dict[str, Question[Any]]] = {}
        for key, question in questions.items():
            by_model.setdefault(question.models[0].identity, {})[key] = question
        if not by_model:
            return
        earlier = self.ledger.answers(questions)
        answers: dict[str, Answer] = {}
        tasks = [_task(name, asked, earlier, answers, self.made) for asked in by_model.values()]
        self._run(tasks, len(questions), answers=answers)
        if left := self._unanswered(questions):
            said = next(reply.text for key in left for reply in answers[key].replies)
            raise BuildError(
                f"{len(left)} of {len(questions)} calls failed, the first: {_line(said)}"
            )

    def _run(
        self,
        tasks: list[Task],
        samples: int,
        roles: Mapping[str, Sequence[BoundModel]] | None = None,
        answers: Mapping[str, Answer] | None = None,
    ) -> None:
        """Run tasks, each a log of its own, and take what they found into the ledger."""
        config = GenerateConfigArgs(**self._asking.config)  # type: ignore[typeddict-item]
        with self._cache():
            logs = eval(
                tasks,
                model_roles=made_of(roles or {}, self.made),
                log_dir=str(self._out / _LOGS),
                # Every sample is tried before a stage fails, so that little is left to do again.
                fail_on_error=False,
                continue_on_fail=True,
                retry_on_error=self._asking.retry_attempts,
                max_tasks=len(tasks),
                log_buffer=max(10, samples // _FLUSHES),
                # What a killed run loses for it is in the cache.
                log_realtime=False,
                log_header_only=True,
                display=self._asking.display,  # type: ignore[arg-type]
                ctl_server=False,
                **config,
            )
        failed = [error for log in logs for error in self._take(log, answers or {})]
        if not logs or any(log.status == "cancelled" for log in logs):
            raise KeyboardInterrupt
        if self.spending.stopped:
            raise BuildError(self.spending.told())
        if failed:
            total = sum(log.eval.dataset.samples or 0 for log in logs)
            raise BuildError(f"{len(failed)} of {total} calls failed, the first: {failed[0]}")

    def _take(self, log: EvalLog, answers: Mapping[str, Answer]) -> list[str]:
        """Take what a log holds into the ledger; give its errors."""
        if not log.location:
            return [] if log.error is None else [_line(log.error.message)]
        summaries = read_eval_log_sample_summaries(log.location)
        errors = [_line(summary.error) for summary in summaries if summary.error]
        held = {id: answers[id] for one in summaries if (id := str(one.id)) in answers}
        whole = log.status == "success" and not errors
        self.ledger.add(Path(log.location), held if whole else None)
        if log.status == "error" and log.error is not None:
            return [_line(log.error.message)]
        return errors


def _task(
    name: str,
    questions: Mapping[str, Question[Any]],
    earlier: Mapping[str, Sequence[Reply]],
    answers: dict[str, Answer],
    make: Make,
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
    conversations: dict[str, Any] = {}
    return Task(
        name=name,
        dataset=MemoryDataset(samples, name=name),
        solver=hold(questions, made, earlier, conversations, answers),
        scorer=told(conversations),
        model=made[first.models[0].identity],
        metadata={MARK: "questions", "role": first.role},
    )


@solver
def hold(
    questions: Mapping[str, Question[Any]],
    models: Mapping[str, Model],
    earlier: Mapping[str, Sequence[Reply]],
    conversations: dict[str, Any],
    kept: dict[str, Answer],
) -> Solver:
    """Hold the conversation of each sample's question, or go on with it, and keep its replies."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        question = questions[str(state.sample_id)]
        replies = list(earlier.get(str(state.sample_id), ()))
        conversation = replayed(question, replies)
        state.messages = []
        while (request := conversation.request()) is not None:
            bound = question.models[len(replies) % len(question.models)]
            output, reply = await _send(request, models[bound.identity], bound.name)
            # The log shows what was asked last with all that came before it.
            shown = {id(message) for message in state.messages}
            state.messages += [message for message in request.messages if id(message) not in shown]
            if output is not None and not output.empty:
                state.messages.append(output.message)
                state.output = output
            conversation.take(reply)
            replies.append(reply)
        state.store.set(REPLIES, [list(reply) for reply in replies])
        state.store.set(SIZE, question.size)
        conversations[str(state.sample_id)] = conversation
        kept[str(state.sample_id)] = Answer(replies, question.size)
        return state

    return solve


@scorer(metrics=[mean()], name="answer")
def told(conversations: dict[str, Any]) -> Scorer:
    """Show what a conversation came to, for those who read its log."""

    async def score(state: TaskState, target: Target) -> Score:
        found = conversations.pop(str(state.sample_id)).told()
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


def _line(message: str) -> str:
    """Shorten an error to a line; Inspect gives it as Python would show it: ``Name('message')``."""
    bare = _AS_SHOWN.fullmatch(message.strip())
    lines = (bare[2] if bare else message.strip()).splitlines()
    return lines[0][:_ERROR_CHARS] if lines else "no reason given"
