"""What keeps logs from being counted together, and the user's choice of what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

from or_eval.analysis.logs import LogError, LogHead, share_samples

OnConflict: TypeAlias = Literal["error", "latest", "all"]


class Settled(NamedTuple):
    """The logs to use, and a line for each conflict that says how it was settled."""

    heads: list[LogHead]
    notes: list[str]


def settle_logs(heads: Sequence[LogHead], scorer: str, on_conflict: OnConflict) -> Settled:
    """Find the conflicts between logs that their headers show, and settle them.

    Conflicts are a log that is incomplete, and two logs in which a model answers the same samples
    of one task under one condition. Replayed responses count as responses to whatever task the
    other logs are of.

    A log that ended before its time and was taken up again (``inspect eval-retry``, ``eval_set``)
    is no conflict with the finished one: it is left out, and a note says so.

    With ``latest``, incomplete logs are left out, and of logs on the same samples the newest that
    has the score stays. With ``all``, every log is used: answers to one prompt are pooled, as
    further epochs are.

    Raises:
        LogError: There are conflicts and the choice is ``error``, or no log is left.
    """
    heads, superseded = _without_superseded(heads)
    conflicts = [*_incomplete(heads), *_same_samples(heads)]
    if on_conflict == "error" and conflicts:
        raise conflict_error(conflicts)
    if on_conflict == "all" or not conflicts:
        used_up = [f"{line}; all of it is used" for line in conflicts]
        return Settled(list(heads), [*superseded, *used_up])
    kept = _latest(heads, scorer)
    if not kept:
        raise LogError("No complete log is left: " + "; ".join(conflicts))
    used = {head.location for head in kept}
    left_out = [head.name for head in heads if head.location not in used]
    notes = [*superseded, *conflicts, *(f"left out (latest): {path}" for path in left_out)]
    return Settled(kept, notes)


def _without_superseded(heads: Sequence[LogHead]) -> tuple[list[LogHead], list[str]]:
    """Leave out unfinished logs whose task was finished in a later one: Inspect keeps its id."""
    finished = {
        (head.header.eval.task_id, head.model): head.name for head in heads if head.complete
    }
    kept, notes = [], []
    for head in heads:
        instead = finished.get((head.header.eval.task_id, head.model))
        if head.complete or instead is None or not head.header.eval.task_id:
            kept.append(head)
        else:
            notes.append(f"{head.name}: left out, {instead} finishes its task")
    return kept, notes


def conflict_error(conflicts: Sequence[str]) -> LogError:
    """Give the error that lists conflicts, a line each, and says what the choices are."""
    return LogError(
        "\n".join(conflicts)
        + "\nName the logs to use, or choose: --on-conflict latest (the newest complete log) "
        "or --on-conflict all (pool everything)."
    )


def _incomplete(heads: Sequence[LogHead]) -> list[str]:
    return [
        f"{head.name}: incomplete log of {head.model} ({_state(head)})"
        for head in heads
        if not head.complete
    ]


def _state(head: LogHead) -> str:
    if head.header.status != "success":
        return f"status {head.header.status}"
    return "invalidated samples" if head.header.invalidated else "samples left out"


def _same_samples(heads: Sequence[LogHead]) -> list[str]:
    return [
        f"{later.name}: second log of {later.model} on the same samples of {later.task} "
        f"(the first: {earlier.name})"
        for earlier, later in combinations(heads, 2)
        if _overlap(earlier, later)
    ]


def _overlap(one: LogHead, other: LogHead) -> bool:
    return not one.models.isdisjoint(other.models) and share_samples(one, other)


def _latest(heads: Sequence[LogHead], scorer: str) -> list[LogHead]:
    kept = [head for head in heads if head.complete]
    # heads come oldest first; of two copies of a log, the one that has the score is the better
    by_worth = sorted(kept, key=lambda head: scorer in head.scores)
    winners: list[LogHead] = []
    for head in reversed(by_worth):
        if not any(_overlap(head, winner) for winner in winners):
            winners.append(head)
    locations = {head.location for head in winners}
    return [head for head in heads if head.location in locations]
