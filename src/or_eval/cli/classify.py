"""``or-eval classify``: read stored responses by rules alone."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import click

if TYPE_CHECKING:
    from or_eval.scorers.fusion import Decision
    from or_eval.scorers.verdict import Verdict
    from or_eval.sources.tables import Row

_ADDED = (
    *("class", "refused", "certain", "provenance", "reason", "evidence", "response_language"),
    "unscored_because",
)
_RESPONSE_COLUMNS = ("response", "completion", "output", "answer", "generation")
_PROMPT_COLUMNS = ("prompt", "question", "instruction", "input", "request", "goal")


@click.command("classify")
@click.argument("file", metavar="FILE")
@click.option(
    "--out", default="-", show_default=True, help="Where to write; `-` is standard output."
)
@click.option(
    "--response-column",
    help=f"Column of the responses.  [default: {' or '.join(_RESPONSE_COLUMNS)}]",
)
@click.option(
    "--prompt-column",
    help=f"Column of the prompts, if there is one.  [default: {' or '.join(_PROMPT_COLUMNS)}]",
)
@click.option("--language", help="Language of all responses, such as `ko`.  [default: detected]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "tsv", "jsonl", "parquet"]),
    help="Format of FILE and the output, where endings don't tell.  [default: jsonl for `-`]",
)
def classify(
    file: str,
    out: str,
    response_column: str | None,
    prompt_column: str | None,
    language: str | None,
    form: str | None,
) -> None:
    """Say of every stored response in FILE whether it refuses.

    FILE is csv, tsv, jsonl (each also .gz) or parquet, or `-` for standard input. The output holds
    the same rows with these columns added: class, refused, certain, provenance (who refused),
    reason (on what ground), evidence, response_language and unscored_because (why there is no
    class). No model is called. A summary goes to standard error.

    \b
    Examples:
      or-eval classify responses.csv --out classified.csv
      zcat responses.jsonl.gz | or-eval classify - | jq .class
    """  # noqa: D301
    from or_eval.scorers.fusion import Stages, fuse
    from or_eval.scorers.provider import read_text
    from or_eval.scorers.rules import classify_response
    from or_eval.scorers.rules.language_pack import language_codes
    from or_eval.sources import DataError
    from or_eval.sources.row_stream import STANDARD_STREAM, format_of, open_rows, row_writer

    if language is not None and not set(language.lower().split("+")) <= set(language_codes()):
        raise click.BadParameter(
            f"'{language}' has no rules; there are: {', '.join(language_codes())}",
            param_hint="--language",
        )
    form_in = form or ("jsonl" if file == STANDARD_STREAM else format_of(file))
    form_out = form or form_in if out == STANDARD_STREAM else form or format_of(out)
    counts: Counter[tuple[str, bool]] = Counter()
    with open_rows(file, form_in) as (raw, rows), row_writer(out, form_out) as write:
        columns: tuple[str, str | None] | None = None
        for row in _with_progress(file, raw, rows):
            if columns is None:
                columns = _columns(file, row.cells, response_column, prompt_column)
            response, prompt = _texts(file, row, *columns)
            verdict = classify_response(response, prompt=prompt, language=language)
            decision = fuse(Stages(read_text(response), verdict))
            counted = decision.label or f"unscored: {decision.unscored_because}"
            counts[counted, decision.certain] += 1
            write({**row.cells, **_added_cells(decision, verdict)})
        if columns is None:
            raise DataError(f"{'standard input' if file == STANDARD_STREAM else file}: has no rows")
    _print_summary(counts)


def _columns(
    file: str, cells: Mapping[str, Any], response: str | None, prompt: str | None
) -> tuple[str, str | None]:
    """Settle which columns hold the responses and the prompts."""
    from or_eval.sources import DataError

    for name in (response, prompt):
        if name is not None and name not in cells:
            raise DataError(f"{file}: has no column '{name}'; it has: {', '.join(cells)}")
    taken = next((name for name in _ADDED if name in cells), None)
    if taken is not None:
        raise DataError(
            f"{file}: already has a column '{taken}', which this command writes; rename it"
        )
    lowered = {name.strip().casefold(): name for name in cells}
    found = response or next((lowered[n] for n in _RESPONSE_COLUMNS if n in lowered), None)
    if found is None:
        raise DataError(
            f"{file}: has no column {' or '.join(_RESPONSE_COLUMNS)}; it has: {', '.join(cells)}; "
            "name the right one with --response-column"
        )
    return found, prompt or next((lowered[n] for n in _PROMPT_COLUMNS if n in lowered), None)


def _texts(file: str, row: Row, response: str, prompt: str | None) -> tuple[str, str | None]:
    from or_eval.sources import DataError

    texts = [row.cells.get(name) for name in (response, prompt) if name is not None]
    for name, text in zip((response, prompt), texts, strict=False):
        if text is not None and not isinstance(text, str):
            raise DataError(
                f"{file}, row {row.number}, column '{name}': is no text but a {type(text).__name__}"
            )
    return texts[0] or "", texts[1] if len(texts) > 1 else None


def _added_cells(decision: Decision, verdict: Verdict) -> dict[str, Any]:
    return {
        "class": decision.label and decision.label.value,
        "refused": None if decision.label is None else decision.label.refused,
        "certain": decision.certain,
        "provenance": decision.provenance and decision.provenance.value,
        "reason": decision.reason and decision.reason.value,
        "evidence": [
            {"pattern": e.pattern, "act": e.act, "text": e.text, "start": e.start, "end": e.end}
            for e in verdict.evidence
        ],
        "response_language": verdict.language,
        "unscored_because": decision.unscored_because and decision.unscored_because.value,
    }


def _with_progress(file: str, raw: BinaryIO, rows: Iterator[Row]) -> Iterator[Row]:
    """Show how much of the file has been read, on a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    if not sys.stderr.isatty():
        yield from rows
        return
    size = os.fstat(raw.fileno()).st_size if file != "-" else None
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("Classifying", total=size)
        for count, row in enumerate(rows):
            if count % 200 == 0:
                done = raw.tell() if size else count
                progress.update(bar, completed=done, description=f"Classifying {count:,}")
            yield row


def _print_summary(counts: Counter[tuple[str, bool]]) -> None:
    from rich.console import Console
    from rich.table import Table

    total = sum(counts.values())
    table = Table("class", "responses", "share", "certain")
    for label in sorted({label for label, _ in counts}):
        certain, all_of = counts[label, True], counts[label, True] + counts[label, False]
        table.add_row(label, f"{all_of:,}", f"{all_of / total:.1%}", f"{certain / all_of:.1%}")
    Console(stderr=True).print(table)
