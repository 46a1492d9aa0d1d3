"""``or-eval leaderboard``: one page over many snapshots and dates."""

from __future__ import annotations

from pathlib import Path

import click

from or_eval.cli.options import options


@click.command("leaderboard")
@click.argument("snapshots", nargs=-1, required=True, type=click.Path(path_type=Path))
@options("leaderboard")
def leaderboard(snapshots: tuple[Path, ...], out: Path) -> None:
    """Make a static page of SNAPSHOTS: rates, ranks and what changed between dates.

    SNAPSHOTS are folders that or-eval snapshot wrote, or folders of such folders. The page,
    index.html, is one file that opens offline; beside it are figures/, tables/ and
    summary.json. It shows each model's newest rates.

    \b
    Update the page when a snapshot is added:
      or-eval leaderboard snapshots --out site
    """
    from or_eval.analysis.report import write_leaderboard

    click.echo(f"Page: {write_leaderboard(snapshots, out)}")
