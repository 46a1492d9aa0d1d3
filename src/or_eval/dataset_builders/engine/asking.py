"""Asking models: what isn't answered yet goes out as Inspect tasks, in shards, and is kept.

Equal questions are asked once, and none whose reply is kept (:class:`Replies`). Tests of models are
Inspect tasks of their own, made again from the replies where no log holds them as they are now.
"""

from __future__ import annotations

import re
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from inspect_ai import Task
from inspect_ai.log import EvalLog, read_eval_log, read_eval_log_sample_summaries
from inspect_ai.util import AdaptiveConcurrency

from or_eval.dataset_builders.engine.calls import SECONDS, Calls
from or_eval.dataset_builders.engine.conversations import Came, Question
from or_eval.dataset_builders.engine.models import Asking, BoundModel, Make
from or_eval.dataset_builders.engine.prices import Prices, dollars
from or_eval.dataset_builders.engine.replies import REPLIES, REPLIES_ANY, Replies
from or_eval.dataset_builders.engine.rows import in_batches
from or_eval.dataset_builders.engine.shards import (
    LOGS,
    MARK,
    Held,
    MakeTasks,
    conversation_tasks,
    hold_shard,
    test_tasks,
)
from or_eval.dataset_builders.engine.stage import Spent
from or_eval.dataset_builders.engine.workers import Engine, how_many, workers
from or_eval.dataset_builders.errors import BuildError
from or_eval.key_like import without_keys
from or_eval.schema import PromptRecord

SHARD = 10_000
"""Most samples that are asked at once, which bounds what is in memory and what a resume reads."""

_VERDICTS, _STAGE = "verdicts", "stage"
_AS_SHOWN = re.compile(r"\w+\((['\"])(.*)\1,?\)", re.DOTALL)
_ERROR_CHARS = 300
_QUIET = 60.0
"""Seconds without a reply after which the build says so; and again after twice as long."""
_LOOK_AGAIN = 1.0

Item = TypeVar("Item")


class Asker:
    """Asks what isn't known yet.

    Args:
        asking: How.
        out: Folder of the build.
        engine: Where the shards are held.
        say: Takes a line for the person who watches.
        replies: Folder of the replies; the build's own by default.

    Attributes:
        stage: The stage for which costs are counted.
    """

    def __init__(
        self,
        asking: Asking,
        out: Path,
        engine: Engine = "here",
        say: Callable[[str], None] = print,
        replies: Path | None = None,
    ) -> None:
        self._asking, self._out, self._engine, self._say = asking, out, engine, say
        self._kept = replies or out
        self.stage = ""

    def replies(self) -> Replies:
        """Open the replies."""
        return Replies(self._kept)

    def spent(self) -> list[Spent]:
        """Give what was spent in all runs."""
        return spent_in(self._kept, self._asking.prices)

    @contextmanager
    def models(self) -> Iterator[Make]:
        """Give what makes models whose calls are counted."""
        left = self._left()
        with self.replies() as replies, self._silence_told():
            calls = Calls(replies, self._asking.prices, left)
            yield lambda model, role: calls.watched(model.make(), model, role, self.stage)

    def ask(
        self, name: str, items: Iterable[tuple[Item, Sequence[Question[Came]]]]
    ) -> Iterator[tuple[Item, list[Came]]]:
        """Have questions answered; give each item with what these came to, in the items' order.

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
            if left := self._unanswered(wanted):
                self._answer(name, left)
            with self.replies() as replies:
                found = replies.said(wanted)
            for item, questions in some:
                try:
                    came = [question.replayed(found[question.key]) for question in questions]
                except LookupError as error:
                    raise BuildError(
                        "two conversations with a model begin with the same request and go on "
                        "otherwise: tell them apart by `course`"
                    ) from error
                yield item, came

    def test(
        self,
        rows: Iterable[PromptRecord],
        model: BoundModel,
        mark: str,
        task: Callable[[list[PromptRecord]], Task],
        verdicts: str,
        judges: Mapping[str, Sequence[BoundModel]],
    ) -> list[str]:
        """Run a task on the rows of which no log tells; give the logs that hold all of them.

        Args:
            rows: The rows; a sample's id is its row's.
            model: The model under test.
            mark: What stands for the model and for all that changes its responses.
            task: Makes the task for some rows.
            verdicts: What stands for all that its verdicts depend on.
            judges: The models that the task asks besides, by role.

        Raises:
            BuildError: Samples failed, although they were tried again.
            KeyboardInterrupt: The run was interrupted.
        """
        told = {MARK: mark, _VERDICTS: verdicts}
        asked = [judge for bound in judges.values() for judge in bound]
        found: dict[str, None] = {}
        ran = False
        for some in in_batches(rows, SHARD):
            holding = self._holding(told)
            if left := [row for row in some if row.id not in holding]:
                ran = True
                self._run(
                    left,
                    lambda some: partial(
                        test_tasks, some, model, asked, task, told | {_STAGE: self.stage}
                    ),
                    [model, *asked],
                    judges,
                )
                holding = self._holding(told)
            if short := sum(row.id not in holding for row in some):
                raise BuildError(f"{short} of {len(some)} prompts of {model.name} were not tested")
            found |= dict.fromkeys(holding[row.id] for row in some)
        if ran:
            # What is left of when it was cut off, or judged otherwise.
            for path, log in self._logs():
                if _is_of(log, {MARK: mark, _STAGE: self.stage}) and str(path) not in found:
                    path.unlink()
        return list(found)

    def _holding(self, told: Mapping[str, str]) -> dict[str, str]:
        """Give the logs of a test that came to its end, by the ids of the prompts in them."""
        found: dict[str, str] = {}
        for path, log in self._logs():
            results = log.results
            whole = results is not None and results.completed_samples == results.total_samples
            if whole and log.status == "success" and _is_of(log, told):
                found |= {str(id): str(path) for id in log.eval.dataset.sample_ids or ()}
        return found

    def _logs(self) -> Iterator[tuple[Path, EvalLog]]:
        for path in sorted((self._out / LOGS).rglob("*.eval")):
            if zipfile.is_zipfile(path):
                yield path, read_eval_log(str(path), header_only=True)
            else:
                path.rename(path.with_suffix(".damaged"))  # it has lost its end

    def _unanswered(self, questions: Mapping[str, Question[Any]]) -> dict[str, Question[Any]]:
        with self.replies() as replies:
            sizes, found = replies.sizes(questions), replies.said(questions)
        return {
            key: one
            for key, one in questions.items()
            if sizes.get(key, 0) < one.size or not one.is_answered_by(found[key])
        }

    def _answer(self, name: str, questions: Mapping[str, Question[Any]]) -> None:
        def tasks(some: Sequence[str]) -> MakeTasks:
            return partial(conversation_tasks, name, {key: questions[key] for key in some})

        models = {id(one): one for question in questions.values() for one in question.models}
        held = self._run(list(questions), tasks, models.values())
        if left := self._unanswered(questions):
            with self.replies() as replies:
                for key, kept in replies.said(left).items():
                    left[key].replayed(kept)  # raises what a stage's own code raised before
            said = next(text for one in held for text in one.rejected)
            raise BuildError(
                f"{len(left)} of {len(questions)} calls failed, the first: {_line(said)}"
            )

    def _run(
        self,
        items: Sequence[Item],
        tasks: Callable[[Sequence[Item]], MakeTasks],
        models: Iterable[BoundModel],
        roles: Mapping[str, Sequence[BoundModel]] | None = None,
    ) -> list[Held]:
        """Share samples out among the workers; give what came of them."""
        limit = self._asking.config.get("max_connections") or AdaptiveConcurrency().max
        limits = [limit, len(items), *(model.most_workers for model in models)]
        of = int(min(how_many(self._engine), *limits))
        hold = partial(
            hold_shard,
            roles=roles or {},
            asking=self._asking,
            # Workers start in folders of their own.
            logs_folder=(self._out / LOGS).absolute(),
            replies_folder=self._kept.absolute(),
            stage=self.stage,
            left=self._left(),
            of=of,
        )
        shares = [items[number::of] for number in range(of)]
        shards = [
            (tasks(some), len(some), None if self._engine == "here" else number)
            for number, some in enumerate(shares)
        ]
        with self._silence_told():
            held = list(workers(self._engine)(hold, shards))
        self._check_kept(held)
        logs = [log for one in held for log in one.logs]
        if any(not one.logs for one in held) or any(log.status == "cancelled" for log in logs):
            raise KeyboardInterrupt
        if any(one.too_dear for one in held):
            raise BuildError(
                f"{self._total():.2f} dollars are spent, and the next calls might cost more than "
                f"the {self._asking.max_cost:.2f} of --max-cost"
            )
        if broken := list(dict.fromkeys(why for one in held for why in one.broken)):
            raise BuildError("; ".join(map(_line, broken)))
        if failed := [error for log in logs for error in _errors(log)]:
            total = sum(log.eval.dataset.samples or 0 for log in logs)
            raise BuildError(f"{len(failed)} of {total} calls failed, the first: {failed[0]}")
        return held

    def _left(self) -> float | None:
        """Give how many dollars may still be spent; None for no limit."""
        most = self._asking.max_cost
        return None if most is None else most - self._total()

    def _total(self) -> float:
        return sum(one.dollars or 0 for one in self.spent())

    def _check_kept(self, held: Sequence[Held]) -> None:
        """Make sure that replies could be kept; the next run takes up those that were.

        Raises:
            BuildError: Some couldn't.
        """
        if said := [one.unkept for one in held if one.unkept]:
            lost = sum(one.lost for one in held)
            full = says_disk_full(said[0])
            raise BuildError(
                f"{self._out}: {'the disk is full' if full else said[0]}, so no more requests go "
                "out; "
                f"{lost} calls in progress are lost and will be sent again; "
                f"{'free some space' if full else 'make it writable'}"
            )

    @contextmanager
    def _silence_told(self) -> Iterator[None]:
        """Say so while no reply comes, from whichever process."""

        def replies() -> list[int]:
            # A file may go or come meanwhile.
            with suppress(OSError):
                return [path.stat().st_mtime_ns for path in self._kept.glob(REPLIES_ANY)]
            return []

        def watch() -> None:
            last, since, quiet = replies(), time.monotonic(), _QUIET
            while not over.wait(_LOOK_AGAIN):
                if (now := replies()) != last:
                    last, since, quiet = now, time.monotonic(), _QUIET
                elif time.monotonic() - since >= quiet:
                    self._say(
                        f"   {self.stage}: no reply for {quiet:.0f} s; rate limits and "
                        f"server errors are retried, {said}"
                    )
                    quiet *= 2

        config = self._asking.config
        said = f"silence is an error after {config.get('timeout') or SECONDS} s (--timeout)"
        if config.get("batch"):
            said = "and a batch may take a day"
        over = threading.Event()
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()


def spent_in(folder: Path, given: Prices) -> list[Spent]:
    """Give what was spent in a build's folder, in all runs, at today's prices."""
    if not (folder / REPLIES).exists():
        return []
    found = []
    with Replies(folder) as replies:
        for stage, role, model, calls, took in replies.spent():
            cached = (took.input_tokens_cache_read or 0) + (took.input_tokens_cache_write or 0)
            sent = took.input_tokens + cached
            cost = dollars(model, took, given)
            found.append(Spent(stage, role, model, calls, sent, took.output_tokens, cost))
    return found


def _errors(log: EvalLog) -> list[str]:
    """Give the errors of a log's samples, or its own."""
    if log.error is not None:
        return [_line(log.error.message)]
    summaries = read_eval_log_sample_summaries(log.location)
    return [_line(summary.error) for summary in summaries if summary.error]


def _is_of(log: EvalLog, told: Mapping[str, str]) -> bool:
    metadata = log.eval.metadata or {}
    return all(metadata.get(key) == value for key, value in told.items())


def says_disk_full(message: str) -> bool:
    """Tell whether an error is of a full disk, as SQLite and Python say it."""
    return any(said in message for said in ("disk is full", "[Errno 28]", "OSError(28,"))


def _line(message: str) -> str:
    """Shorten an error to a line; Inspect gives it as Python would show it: ``Name('message')``."""
    message = without_keys(message.strip())
    bare = _AS_SHOWN.fullmatch(message)
    lines = (bare[2] if bare else message).splitlines()
    return lines[0][:_ERROR_CHARS] if lines else "no reason given"
