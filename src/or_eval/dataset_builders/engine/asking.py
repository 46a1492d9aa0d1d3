"""Asking models: what isn't answered yet goes out as Inspect tasks, in shards, and is kept.

Three things make sure that nothing is asked twice. What a log holds is in the ledger, under the
question. Each reply is on disk as soon as it comes, for conversations that were under way. And
equal questions are asked once. Tests of models are Inspect tasks of their own, whose replies are in
Inspect's cache, in the build's folder.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from inspect_ai import Task
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.model import Model
from inspect_ai.util import AdaptiveConcurrency

from or_eval.dataset_builders.engine.answer_ledger import MARK, Ledger, tested_key
from or_eval.dataset_builders.engine.conversations import Answer, Came, Question
from or_eval.dataset_builders.engine.models import Asking, BoundModel, Make
from or_eval.dataset_builders.engine.replies_under_way import UnderWay
from or_eval.dataset_builders.engine.rows import in_batches
from or_eval.dataset_builders.engine.shards import (
    LOGS,
    Held,
    MakeTasks,
    Shard,
    cache_of,
    conversation_tasks,
    hold_shard,
)
from or_eval.dataset_builders.engine.spending import SPENT_ANY, Spending, spent_in
from or_eval.dataset_builders.engine.stage import TARGET, Spent, Verdicts
from or_eval.dataset_builders.engine.stopping import SECONDS, Stopping, Unless
from or_eval.dataset_builders.engine.tested_logs import VERDICTS, forget_verdicts, judged_as_now
from or_eval.dataset_builders.engine.workers import HERE, Workers
from or_eval.dataset_builders.errors import BuildError
from or_eval.key_like import without_keys
from or_eval.schema import PromptRecord

SHARD = 10_000
"""Most samples that are asked at once, which bounds what is in memory and what a resume reads."""

_AS_SHOWN = re.compile(r"\w+\((['\"])(.*)\1,?\)", re.DOTALL)
_ERROR_CHARS = 300
_QUIET = 60.0
"""Seconds without a reply after which the build says so; and again after twice as long."""
_LOOK_AGAIN = 1.0

Item = TypeVar("Item")


class Asker:
    """Asks what a build's ledger doesn't know.

    Args:
        asking: How.
        out: Folder of the build.
        workers: Who holds the shards.
        say: Takes a line for the person who watches.

    Attributes:
        stage: The stage for which costs are counted.
    """

    def __init__(
        self,
        asking: Asking,
        out: Path,
        workers: Workers = HERE,
        say: Callable[[str], None] = print,
    ) -> None:
        self._asking, self._out, self._workers, self._say = asking, out, workers, say
        self.ledger = Ledger(out, out / LOGS)
        self.stage = ""

    def close(self) -> None:
        """Let go of the build's files."""
        self.ledger.close()

    @contextmanager
    def models(self) -> Iterator[tuple[Make, Stopping]]:
        """Give what makes models whose calls are counted, and what stops these."""
        with closing(self._spending()) as spending, self._silence_told():

            def make(model: BoundModel, role: str) -> Model:
                return spending.metered(model.make(), model, role, self.stage)

            yield make, spending.stopping

    def spent(self) -> list[Spent]:
        """Give what was spent in all runs."""
        return spent_in(self._out, self._asking.prices)

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
            self._answer(name, self._unanswered(wanted))
            found = self.ledger.answers(wanted)
            for item, questions in some:
                yield item, [question.replayed(found[question.key]) for question in questions]

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
        judges = [judge for judges in verdicts.roles.values() for judge in judges]
        for some in in_batches(rows, SHARD):
            ids = {tested_key(mark, row.id): row for row in some}
            left = [row for key, row in ids.items() if key not in self.ledger.tested(ids)]
            if left:
                self._run(
                    left,
                    lambda some: partial(
                        _test_task, some, model, mark, task, verdicts.mark, judges
                    ),
                    [model, *judges],
                    verdicts.roles,
                )
            found = self.ledger.tested(ids)
            if short := len(ids) - len(found):
                raise BuildError(f"{short} of {len(ids)} prompts of {model.name} were not tested")
            logs |= dict.fromkeys(found[key] for key in ids)
        # What the judge said is in the cache.
        with self.models() as (make, stopping), cache_of(self._asking, self._out):
            for path in logs:
                if judged_as_now(path, verdicts, make, stopping, self._asking.display):
                    self.ledger.add(path)
        return [str(path) for path in logs]

    def _spending(self) -> Spending:
        return Spending(self._out, self._asking.prices, self._asking.max_cost)

    def _answer(self, name: str, questions: Mapping[str, Question[Any]]) -> None:
        if not questions:
            return
        earlier = self.ledger.answers(questions)

        def tasks(some: Sequence[str]) -> MakeTasks:
            asked = {key: questions[key] for key in some}
            known = {key: earlier[key] for key in some if key in earlier}
            return partial(conversation_tasks, name, asked, known, self._asking.shared_cache)

        models = [model for question in questions.values() for model in question.models]
        answers = self._run(list(questions), tasks, models)
        if left := self._unanswered(questions):
            said = next(reply.text for key in left for reply in answers[key].replies)
            raise BuildError(
                f"{len(left)} of {len(questions)} calls failed, the first: {_line(said)}"
            )

    def _run(
        self,
        items: Sequence[Item],
        tasks: Callable[[Sequence[Item]], MakeTasks],
        models: Iterable[BoundModel],
        roles: Mapping[str, Sequence[BoundModel]] | None = None,
    ) -> dict[str, Answer]:
        """Share samples out among the workers, and take what they found into the ledger."""
        limit = self._asking.config.get("max_connections") or AdaptiveConcurrency().max
        limits = [limit, len(items), *(model.most_workers for model in models)]
        of = int(min(self._workers.count(), *limits))
        shards = [
            Shard(
                tasks(items[number::of]),
                len(items[number::of]),
                roles or {},
                number if self._workers.apart else None,
                of,
            )
            for number in range(of)
        ]
        # Workers start in folders of their own.
        hold = partial(hold_shard, self._asking, self._out.absolute(), self.stage)
        with self._silence_told():
            held = list(self._workers.map(hold, shards))
        self._check_kept(held)
        broken = list(dict.fromkeys(why for one in held for why in one.broken))
        logs = [log for one in held for log in one.logs]
        answers = {key: answer for one in held for key, answer in one.answers.items()}
        for log in logs if broken else []:
            forget_verdicts(log)  # of a judge that wasn't asked to the end
        # What a worker left that died holds less than what came in its place.
        self.ledger.refresh(besides=[Path(log.location) for log in logs if log.location])
        failed = [error for log in logs for error in self._take(log, answers)]
        if any(not one.logs for one in held) or any(log.status == "cancelled" for log in logs):
            raise KeyboardInterrupt
        if any(one.stopped for one in held):
            with closing(self._spending()) as spending:
                raise BuildError(spending.told())
        if broken:
            raise BuildError("; ".join(map(_line, broken)))
        if failed:
            total = sum(log.eval.dataset.samples or 0 for log in logs)
            raise BuildError(f"{len(failed)} of {total} calls failed, the first: {failed[0]}")
        return answers

    def _check_kept(self, held: Sequence[Held]) -> None:
        """Make sure that replies could be kept; the next run takes up those that were.

        Raises:
            BuildError: Some couldn't.
        """
        if said := [one.unkept for one in held if one.unkept]:
            lost = sum(one.lost for one in held)
            full = says_disk_full(said[0])
            raise BuildError(
                f"{self._out}: {'the disk is full' if full else said[0]}, so no more is asked; "
                f"{lost} calls under way then are lost and will be asked again; "
                f"{'free some space' if full else 'make it writable'}"
            )

    @contextmanager
    def _silence_told(self) -> Iterator[None]:
        """Say so while no reply comes, from whichever process."""

        def replies() -> list[int]:
            # A file may go or come meanwhile.
            with suppress(OSError):
                return [path.stat().st_mtime_ns for path in self._out.glob(SPENT_ANY)]
            return []

        def watch() -> None:
            last, since, quiet = replies(), time.monotonic(), _QUIET
            while not over.wait(_LOOK_AGAIN):
                if (now := replies()) != last:
                    last, since, quiet = now, time.monotonic(), _QUIET
                elif time.monotonic() - since >= quiet:
                    self._say(
                        f"   {self.stage}: no reply for {quiet:.0f} s; limits and errors of "
                        f"servers are tried again, {said}"
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

    def _take(self, log: EvalLog, answers: Mapping[str, Answer]) -> list[str]:
        """Take what a log holds into the ledger; give its errors."""
        if not Path(log.location).is_file():
            return [] if log.error is None else [_line(log.error.message)]
        summaries = read_eval_log_sample_summaries(log.location)
        errors = [_line(summary.error) for summary in summaries if summary.error]
        held = {id: answers[id] for one in summaries if (id := str(one.id)) in answers}
        whole = log.status == "success" and not errors
        self.ledger.add(Path(log.location), held if whole else None)
        if log.status == "error" and log.error is not None:
            return [_line(log.error.message)]
        return errors


def _test_task(
    rows: Sequence[PromptRecord],
    model: BoundModel,
    mark: str,
    task: Callable[[list[PromptRecord]], Task],
    verdicts: str,
    judges: Sequence[BoundModel],
    make: Make,
    under_way: UnderWay,
) -> list[Task]:
    """Make the task that tests a model; it holds no conversations."""
    made = task(list(rows))
    made.metadata = {**(made.metadata or {}), MARK: mark, VERDICTS: verdicts}
    made.model = make(model, TARGET)
    made.early_stopping = Unless(lambda id: under_way.stopping.why([model, *judges]))
    return [made]


def says_disk_full(message: str) -> bool:
    """Tell whether an error is of a full disk, as SQLite and Python say it."""
    return any(said in message for said in ("disk is full", "[Errno 28]", "OSError(28,"))


def _line(message: str) -> str:
    """Shorten an error to a line; Inspect gives it as Python would show it: ``Name('message')``."""
    message = without_keys(message.strip())
    bare = _AS_SHOWN.fullmatch(message)
    lines = (bare[2] if bare else message).splitlines()
    return lines[0][:_ERROR_CHARS] if lines else "no reason given"
