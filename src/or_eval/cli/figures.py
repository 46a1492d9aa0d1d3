"""``or-eval figures``: one figure, or all that logs have data for."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from or_eval.analysis.figures.in_language import languages
from or_eval.cli.options import classes_of_words, column_options, options, tell_missing_words

if TYPE_CHECKING:
    from or_eval.analysis.conflicts import OnConflict
    from or_eval.analysis.figures.saving import Format


FUNNEL_KIND = "funnel"
_BUILD = "the folder of a build in place of logs"
_FUNNEL_TABLE = "funnel.csv"
_ACROSS = {"source"}
"""Kinds drawn of all benchmarks together: each may be of a single source."""


def _list_kinds(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from or_eval.analysis.figures.kinds import KINDS

    width = max(map(len, KINDS))
    for name, kind in KINDS.items():
        click.echo(f"{name:<{width}}  {kind.about}; needs {kind.needs}")
    click.echo(
        f"{FUNNEL_KIND:<{width}}  what each stage of a build kept and dropped; needs {_BUILD}"
    )
    context.exit()


@click.command("figures")
@click.argument("logs", nargs=-1, required=True)
@options(
    "figures",
    list={"callback": _list_kinds},
    language={"choices": languages()},
    map={"callback": classes_of_words},
)
def figures(
    logs: tuple[str, ...],
    kinds: tuple[str, ...],
    out: Path,
    formats: tuple[Format, ...],
    language: str,
    labels_file: Path | None,
    label_column: str | None,
    mapping: dict[str, str],
    encoder: str | None,
    scorer: str,
    counting: str,
    on_conflict: OnConflict,
) -> None:
    """Draw figures from LOGS.

    LOGS are Inspect logs or folders of them. A line says what they lack for a figure. The
    folder of a build gives its funnel, and the balance of the data set it made.

    \b
    One figure for a paper:
      or-eval figures logs --kind trade_off --format pdf
    All of them, to look at:
      or-eval figures logs --format html --out figures
    What a build kept:
      or-eval figures out --kind funnel --kind balance
    In Chinese:
      or-eval figures logs --language zh
    How similar the prompts of rewriting methods are:
      or-eval figures logs --kind similarity --encoder sentence-transformers/all-MiniLM-L6-v2
    """
    from or_eval.analysis.figures.in_language import in_language
    from or_eval.analysis.figures.kinds import KINDS, ON_REQUEST
    from or_eval.analysis.figures.saving import save_figure
    from or_eval.analysis.figures.similarity import MULTILINGUAL_MODEL
    from or_eval.analysis.human_labels import read_labels
    from or_eval.analysis.material import material
    from or_eval.analysis.responses import read_logs

    if unknown := [name for name in kinds if name not in (*KINDS, FUNNEL_KIND)]:
        there = ", ".join([*KINDS, FUNNEL_KIND])
        raise click.UsageError(f"no figure kind {', '.join(unknown)}; there are: {there}")
    if len(logs) == 1 and (Path(logs[0]) / _FUNNEL_TABLE).is_file():
        with in_language(language) as without_words:
            drawn = _draw_build(Path(logs[0]), kinds or (FUNNEL_KIND, "balance"), out, formats)
        tell_missing_words(without_words, language)
        if not drawn:
            raise click.exceptions.Exit(1)
        return
    labels = None
    if labels_file is not None:
        labels = read_labels(
            labels_file, column=label_column, mapping=mapping, options=column_options("figures")
        )
        click.echo(f"labels: {labels.taken}", err=True)
    read = read_logs(list(logs), scorer=scorer, on_conflict=on_conflict)
    for note in read.notes:
        click.echo(f"note: {note}", err=True)
    missing, unsaid = False, dict[str, None]()
    # an embedding model is nothing to load, or to download, unasked
    unasked = ON_REQUEST if encoder else ON_REQUEST | {"similarity"}
    names = list(kinds) or [name for name in KINDS if name not in unasked]
    of_logs = partial(
        material,
        read,
        scorer=scorer,
        counting=counting,
        labels=labels,
        encoder=encoder or MULTILINGUAL_MODEL,
    )
    parts = of_logs(pool=False)
    several = len(parts) > 1
    drawings = [
        (f"{benchmark}: ", out / benchmark.replace("/", "-"), part, set(names) - _ACROSS)
        for benchmark, part in parts.items()
        if several
    ]
    [whole] = of_logs().values() if several else parts.values()
    drawings.append(("", out, whole, set(names) & _ACROSS if several else set(names)))
    for of, place, part, wanted in drawings:
        for name in [name for name in names if name in wanted]:
            if name == FUNNEL_KIND:
                missing = True
                click.echo(f"{of}{name}: not drawn, needs {_BUILD}", err=True)
                continue
            with in_language(language) as without_words:
                figure = KINDS[name].draw(part)
                written = [] if figure is None else save_figure(figure, place, formats)
            unsaid |= without_words
            if figure is not None:
                click.echo(f"{of}{name}: {', '.join(map(str, written))}")
                continue
            missing = missing or name in kinds
            click.echo(f"{of}{name}: not drawn, needs {KINDS[name].needs}", err=True)
    tell_missing_words(unsaid, language)
    if missing:
        raise click.exceptions.Exit(1)


def _draw_build(
    folder: Path, kinds: tuple[str, ...], out: Path, formats: tuple[Format, ...]
) -> bool:
    """Draw what a build's folder shows, and tell whether it was all; other kinds need logs."""
    import pandas as pd

    from or_eval.analysis.figures.of_cells import balance
    from or_eval.analysis.figures.of_rates import funnel
    from or_eval.analysis.figures.saving import save_figure
    from or_eval.dataset_builders.publishing.dataset_folder import read_dataset

    figures = {}
    if FUNNEL_KIND in kinds:
        figures[FUNNEL_KIND] = funnel(pd.read_csv(folder / _FUNNEL_TABLE))
    if "balance" in kinds:
        data = read_dataset(folder)
        rows = [data.table(name).to_pandas() for name in data.configurations]
        figures["balance"] = balance(pd.concat(rows).drop_duplicates("id"))
    for name in kinds:
        if figure := figures.get(name):
            written = save_figure(figure, out, formats)
            click.echo(f"{name}: {', '.join(map(str, written))}")
        else:
            click.echo(f"{name}: not drawn from a build's folder; name its logs", err=True)
    return all(figures.get(name) for name in kinds)
