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

    robots.txt is obeyed, each host is asked slowly, and told who asks. Pages come from declared
    hosts alone, and from no private network. The same command goes on with a crawl that was
    stopped; one that is finished stays as it is, and its candidates are found again.

    \b
      or-eval crawl sources.yaml --out crawls
      or-eval crawl sources.yaml --out crawls --again      # months later
    """
    from or_eval.dataset_builders.crawling.candidates import LONG, SHORT, write_candidates
    from or_eval.dataset_builders.crawling.crawl import crawled

    try:
        snapshot = crawled(sources, out, click.echo, again=again)
    except KeyboardInterrupt:
        click.echo("Interrupted. What was fetched is kept: the same command goes on.", err=True)
        raise SystemExit(_INTERRUPTED) from None
    found = write_candidates(snapshot)
    said = snapshot.sources
    bounds = {SHORT: f"under {said.shortest} words", LONG: f"over {said.longest} words"}
    dropped = Counter(
        {f"{why} ({bounds[why]})" if why in bounds else why: n for why, n in found.dropped.items()}
    )
    for title, counts in (("Pages not had", found.failed), ("Texts left out", dropped)):
        if counts:
            click.echo(f"{title}: {_listed(counts)}")
    of = f" ({_listed(found.languages)})" if found.languages else ""
    click.echo(f"{found.path}: {found.languages.total()} candidates{of}")


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
