"""``or-eval crawl``: what people ask on the web, as candidate prompts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from or_eval.cli.options import options

_INTERRUPTED = 130


@click.command("crawl")
@click.argument("sources", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@options("crawl")
def crawl(sources: Path, out: Path, again: bool) -> None:
    """Crawl the sources that the file SOURCES declares, and find the questions and requests there.

    The crawl obeys robots.txt, sends requests slowly and names you as the sender. It fetches pages
    from declared hosts only, and none from private networks. Run the same command to resume a
    crawl that was stopped; a finished one is kept, and only its candidates are found again.

    \b
      or-eval crawl sources.yaml --out crawls
      or-eval crawl sources.yaml --out crawls --again      # months later
    """
    from or_eval.analysis.wording import counted
    from or_eval.dataset_builders.crawling.candidates import LONG, SHORT, write_candidates
    from or_eval.dataset_builders.crawling.crawl import crawled

    try:
        snapshot = crawled(sources, out, click.echo, again=again)
    except KeyboardInterrupt:
        click.echo(
            "Interrupted. What was fetched is kept: run the same command to resume.", err=True
        )
        raise SystemExit(_INTERRUPTED) from None
    found = write_candidates(snapshot)
    said = snapshot.sources
    bounds = {SHORT: f"under {said.shortest} words", LONG: f"over {said.longest} words"}
    dropped = Counter(
        {f"{why} ({bounds[why]})" if why in bounds else why: n for why, n in found.dropped.items()}
    )
    for thing, counts in (("page", found.failed), ("text", dropped)):
        if counts:
            click.echo(f"{counted(counts.total(), thing)} skipped: {_listed(counts)}")
    of = f" ({_listed(found.languages)})" if found.languages else ""
    click.echo(f"{found.path}: {found.languages.total()} candidates{of}")


def _listed(counts: Counter[str]) -> str:
    one = len(counts) == 1
    return ", ".join(name if one else f"{name} ({n:,})" for name, n in counts.most_common())
