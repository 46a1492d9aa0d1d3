"""``or-eval classify``: class stored responses, by rules and where asked by a grader."""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from or_eval.cli.options import column_options, options
from or_eval.schema import FULL, STRICT, ResponseClass, countings

if TYPE_CHECKING:
    from or_eval.scorers.exchange import Exchange
    from or_eval.scorers.fusion import Stages
    from or_eval.sources.dialogues import Said
    from or_eval.sources.files import FileRows
    from or_eval.sources.tables import Row

_ADDED = (
    *("class", "refused", "refused_full", "certain", "provenance", "reason", "evidence"),
    *("response_language", "partial_kind", "unscored_because"),
)
_STANDARD_STREAM = "-"
_ROLES = ("response", "model", "prompt", "stop_reason")
_FIRST_ROWS = 2_000
_ASKED_AT_ONCE = 200
# Of a few, short ones mostly, the language can't be told.
_OTHERS_SHARE = 0.1


@click.command("classify")
@click.argument("file", metavar="FILE")
@options("classify")
def classify(
    file: str,
    out: str,
    graders: tuple[str, ...],
    language: str | None,
    form: str | None,
    **columns: str | None,
) -> None:
    """Classify every stored response in FILE: does it refuse?

    FILE is csv, tsv, jsonl or json (each also .gz), xlsx or parquet, or `-` for standard input;
    its columns, and the one that says why the model stopped, are found as or-eval replay finds
    them. The output (all of these but json and xlsx) holds
    the same rows with these columns added: class, refused (strict: any class but a direct answer),
    refused_full (partial refusals are answers), certain, provenance (who refused), reason (why it
    refused), evidence, response_language, partial_kind (what a partial refusal holds back) and
    unscored_because (why there is no class). Where each model has its own column, there is a
    row for each response, with the columns model and response. No model is called without
    --grader, which asks one about what the rules aren't certain of. A summary goes to standard
    error.

    \b
    Examples:
      or-eval classify responses.csv --out classified.csv
      or-eval classify responses.xlsx --out classified.csv --grader openai/gpt-5-mini
      zcat responses.jsonl.gz | or-eval classify - | jq .class
    """
    # Here and below imported on use: --help needs none of it.
    from or_eval.languages import detect_languages
    from or_eval.models.replay import stored_output
    from or_eval.scorers.exchange import Exchange
    from or_eval.scorers.provider import read_output
    from or_eval.scorers.rules.language_pack import head_starts, language_codes
    from or_eval.scorers.score_record import as_row
    from or_eval.sources.errors import DataError
    from or_eval.sources.files import FileRows, data_file
    from or_eval.sources.responses import response_columns
    from or_eval.sources.row_writer import write_rows
    from or_eval.sources.tables import table_of

    tags = {tag.partition("-")[0].lower() for tag in (language or "en").split("+")}
    if not tags <= set(language_codes()):
        raise click.BadParameter(
            f"'{language}' has no rules; there are: {', '.join(language_codes())}",
            param_hint="--language",
        )
    source = None if file == _STANDARD_STREAM else data_file(Path(file))
    target = None if out == _STANDARD_STREAM else Path(out)
    if source and target and target.exists() and source.exists() and target.samefile(source):
        raise DataError(f"--out {out}: is FILE itself; give another name")
    kind_out = _kind_out(source, target, form)
    named = {name.removesuffix("_column"): column for name, column in columns.items() if column}
    counts: Counter[tuple[str, bool]] = Counter()
    others: Counter[str] = Counter()
    models: defaultdict[str, Counter[str]] = defaultdict(Counter)
    opened = FileRows(source, form and f".{form}")
    rows = iter(opened)
    # The first rows tell the columns of the file.
    table = table_of(opened.name, opened.name, list(islice(rows, _FIRST_ROWS)))
    found = response_columns(table, named, column_options("classify"), _ROLES, ["response"])
    kept = [name for name in table.columns if name not in found.models]
    kept += [found.columns[role] for role in ("model", "response") if found.models]
    if taken := next((name for name in _ADDED if name in kept), None):
        raise DataError(
            f"{table.name}: already has a column '{taken}', which this command writes; rename it"
        )
    click.echo(found.taken, err=True)

    def read(row: Row) -> tuple[Row, Exchange]:
        asked, response, stop_word = _read(row, found.columns)
        provider = read_output(stored_output(response, stop_word))
        return row, Exchange(provider, response, asked.prompt, asked.dialogue, language)

    def classified(ask: Callable[[list[Exchange]], Iterable[Stages]]) -> Iterator[dict[str, Any]]:
        given = found.one_a_row(_with_progress(opened, chain(table.rows, rows)))
        while batch := list(map(read, islice(given, _ASKED_AT_ONCE))):
            for (row, exchange), stages in zip(batch, ask([e for _, e in batch]), strict=True):
                added = as_row(stages)
                counted = added["class"] or f"unscored: {added['unscored_because']}"
                counts[counted, added["certain"] is True] += 1
                models[str(row.cells.get(found.columns.get("model", "")))][counted] += 1
                if language is not None:
                    response = exchange.response
                    detected = detect_languages(response, head_starts(response))
                    if detected is not None and tags.isdisjoint(detected.split("+")):
                        others[detected] += 1
                yield {**row.cells, **added}

    with _asking(graders) as ask:
        write_rows(target, kind_out, (*kept, *_ADDED), classified(ask))
    _print_summary(counts)
    if "model" in found.columns:
        _print_models(models)
    if others.total() > _OTHERS_SHARE * counts.total():
        [(most, _)] = others.most_common(1)
        click.echo(
            f"note: {others.total():,} of {counts.total():,} responses aren't in '{language}' but "
            f"mostly in '{most}', which these rules can't read; leave --language out to read each "
            "in its own language",
            err=True,
        )


@contextmanager
def _asking(graders: Sequence[str]) -> Iterator[Callable[[list[Exchange]], Iterable[Stages]]]:
    """Give what reads responses by rules, and asks graders of those the rules aren't certain of."""
    from or_eval.scorers.exchange import judged, read_exchange

    if not graders:
        yield partial(map, read_exchange)
        return
    import anyio.from_thread
    from inspect_ai.model import get_model
    from inspect_ai.util import collect
    from rich.text import Text

    from or_eval.inspect_private import PrerequisiteError
    from or_eval.key_like import without_keys
    from or_eval.scorers.fusion import Fusion
    from or_eval.scorers.judge.panel import check_answering

    judges = []
    for grader in graders:
        try:
            judges.append(get_model(grader))
        except (ValueError, ImportError, PrerequisiteError) as error:
            said = " ".join(Text.from_markup(without_keys(str(error))).plain.split())
            said = said.removeprefix("ERROR: ")
            raise click.ClickException(f"--grader {grader}: {said}") from None

    async def read(exchanges: list[Exchange]) -> list[Stages]:
        read = ((one, read_exchange(one, Fusion.CASCADE)) for one in exchanges)
        return await collect(*(judged(*one, Fusion.CASCADE, judges) for one in read))

    # One event loop for all: what calls a model belongs to the loop of its first call.
    with anyio.from_thread.start_blocking_portal() as portal:
        portal.call(check_answering, judges, (), "--grader")
        yield partial(portal.call, read)


def _kind_out(source: Path | None, target: Path | None, form: str | None) -> str:
    """Give the format of the output: by its ending, by `--format`, else as FILE's."""
    from or_eval.sources.errors import DataError
    from or_eval.sources.files import data_suffix
    from or_eval.sources.row_writer import WRITTEN_KINDS

    kind = (data_suffix(target) if target else None) or (form and f".{form}")
    if kind is None and target is None:
        own = data_suffix(source) if source else None
        kind = own if own in WRITTEN_KINDS else ".jsonl"
    if kind not in WRITTEN_KINDS:
        raise DataError(
            f"--out {target}: can't tell the format by its ending; give one of "
            f"{', '.join(WRITTEN_KINDS)}, or --format"
        )
    return kind


def _read(row: Row, columns: dict[str, str]) -> tuple[Said, str, str]:
    """Read what was asked, the response and the word for why the model stopped."""
    from or_eval.sources.dialogues import Said
    from or_eval.sources.responses import asked_and_answered, loggable_cell

    stop_word = loggable_cell(row, columns.get("stop_reason"))
    if "dialogue" in columns:
        return *asked_and_answered(row, columns), stop_word
    prompt, response = (loggable_cell(row, columns.get(role)) for role in ("prompt", "response"))
    return Said((), prompt), response, stop_word


def _with_progress(file: FileRows, rows: Iterable[Row]) -> Iterator[Row]:
    """Show how much of the file has been read, on a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    if not sys.stderr.isatty():
        yield from rows
        return
    raw = file.raw
    going = raw is not None and not raw.closed and raw.seekable()
    size = os.fstat(raw.fileno()).st_size if raw is not None and going else None
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("Classifying", total=size)
        for count, row in enumerate(rows):
            if count % 200 == 0:
                done = count if raw is None or size is None else raw.tell()
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
    classes: Counter[str] = Counter()
    for (label, _), number in counts.items():
        classes[label] += number
    known, rates = _rates(classes)
    if known:
        shares = (f"{rate} {key} ({countings()[key].definition})" for key, rate in rates.items())
        click.echo(f"refused: {'; '.join(shares)}; of {known:,} with a class", err=True)


def _rates(classes: Counter[str]) -> tuple[int, dict[str, str]]:
    """Give how many responses have a class, and the share refused by each of both countings."""
    known = sum(classes[label] for label in ResponseClass)
    refused = {
        key: sum(map(classes.__getitem__, countings()[key].refused)) for key in (STRICT, FULL)
    }
    return known, {key: f"{n / known:.1%}" if known else "—" for key, n in refused.items()}


def _print_models(models: Mapping[str, Counter[str]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from or_eval.hostile_text import visible

    table = Table("model", "with a class", f"refused, {STRICT}", f"refused, {FULL}")
    for model, classes in models.items():
        known, rates = _rates(classes)
        table.add_row(escape(visible(model)), f"{known:,}", *rates.values())
    Console(stderr=True).print(table)
