"""Which benchmark a log is of: rates of several are told apart, and pooled only when asked."""

from __future__ import annotations

from collections.abc import Sequence

from or_eval.analysis.logs import LogHead
from or_eval.models.replay import REPLAY_TASK

_OF_ANY_DATA = ("or_eval/prompts", REPLAY_TASK)


def name_benchmarks(heads: Sequence[LogHead]) -> list[LogHead]:
    """Name the benchmark of each log.

    It is that of the task; or, where a task asks whatever prompts it is given, the data's name.
    Stored responses are of the benchmark that most of their prompts are of.
    """
    named: dict[str, LogHead] = {}
    for head in sorted(heads, key=lambda head: head.replayed):
        benchmark = _own_name(head)
        if head.replayed:
            hosts = [other for other in named.values() if _mostly_of(head, other)]
            benchmark = hosts[0].benchmark if hosts else benchmark
        named[head.location] = head._replace(benchmark=benchmark)
    return [named[head.location] for head in heads]


def _own_name(head: LogHead) -> str:
    data = head.header.eval.dataset.name
    return data if data and head.task in _OF_ANY_DATA else head.task.removeprefix("or_eval/")


def _mostly_of(head: LogHead, other: LogHead) -> bool:
    ids, others = (set(map(str, of.header.eval.dataset.sample_ids or [])) for of in (head, other))
    return 2 * len(ids & others) > len(ids)
