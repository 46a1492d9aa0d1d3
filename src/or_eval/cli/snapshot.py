"""``or-eval snapshot``: verdicts and what they came from, for others to rely on and to redo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from or_eval.cli.options import options

if TYPE_CHECKING:
    from or_eval.analysis.conflicts import OnConflict
    from or_eval.dataset_builders.publishing.snapshot_folder import Texts


@click.command("snapshot")
@click.argument("logs", nargs=-1, required=True)
@options("snapshot")
def snapshot(
    logs: tuple[str, ...],
    out: Path,
    texts: Texts,
    licence: str,
    check: bool,
    scorer: str,
    on_conflict: OnConflict,
) -> None:
    """Write every verdict in LOGS with the settings and versions behind it.

    LOGS are Inspect logs or folders of them. The folder contains responses/train.parquet,
    snapshot.json and a card, README.md; texts are left out unless --texts includes them. or-eval
    push publishes it, or-eval leaderboard makes a page of several.

    \b
    For a leaderboard:
      or-eval snapshot logs --out snapshots/2026-03
    Is a snapshot whole, and are its rates those of its rows?
      or-eval snapshot --check snapshots/2026-03
    """
    if check:
        _check([Path(folder) for folder in logs])
        return
    from or_eval.analysis.responses import read_logs
    from or_eval.dataset_builders.publishing.snapshot_folder import write_snapshot

    read = read_logs(list(logs), scorer=scorer, on_conflict=on_conflict, audits=False)
    for note in read.notes:
        click.echo(f"note: {note}", err=True)
    folder = write_snapshot(read, out, scorer=scorer, texts=texts, licence=licence)
    _check([folder])


def _check(folders: list[Path]) -> None:
    from or_eval.analysis.snapshots import read_snapshot
    from or_eval.analysis.wording import counted
    from or_eval.cli.push import check_dataset
    from or_eval.dataset_builders.publishing.dataset_folder import read_dataset

    for folder in folders:
        check_dataset(read_dataset(folder))
        found = read_snapshot(folder)
        models = counted(found.responses["model"].nunique(), "model")
        click.echo(
            f"{folder}: {models}, {counted(len(found.responses), 'response')}; "
            "complete, and its rates are those of its rows"
        )
