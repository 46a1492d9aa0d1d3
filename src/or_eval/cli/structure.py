"""``or-eval structure``: what the structure of prompts has to do with refusal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from or_eval.analysis.figures.in_language import languages
from or_eval.cli.options import options, tell_missing_words

if TYPE_CHECKING:
    from or_eval.analysis.conflicts import OnConflict
    from or_eval.analysis.figures.saving import Format


def _language_and_model(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    named = dict(item.partition("=")[::2] for item in given)
    if wrong := next((item for item in given if not all(item.partition("=")[::2])), None):
        raise click.BadParameter(f"{wrong}: say LANGUAGE=MODEL, as zh=chinese.udpipe")
    return named


@click.command("structure")
@click.argument("logs", nargs=-1, required=True)
@options("structure", parser={"callback": _language_and_model}, language={"choices": languages()})
def structure(
    logs: tuple[str, ...],
    out: Path,
    parsers: dict[str, str],
    surface: bool,
    formats: tuple[Format, ...],
    language: str,
    scorer: str,
    counting: str,
    on_conflict: OnConflict,
) -> None:
    """Measure the structure of prompts in LOGS, and how it relates to refusal.

    Writes tables (CSV) and figures: measures of each prompt (length, depth, variety of words),
    their distributions over refused and answered prompts, and their effects on refusal, alone
    and with category, language, method and the other measures held fixed.

    \b
    English prompts, with an installed spaCy pipeline:
      or-eval structure logs
    Chinese ones as well, with a UDPipe model:
      or-eval structure logs --parser zh=chinese.udpipe
    Any language, with what needs no parser:
      or-eval structure logs --surface
    """
    from or_eval.analysis.figures.differences import structure_boxes, structure_effects_figure
    from or_eval.analysis.figures.drawing import with_counting
    from or_eval.analysis.figures.in_language import in_language
    from or_eval.analysis.figures.saving import save_figure
    from or_eval.analysis.material import material
    from or_eval.analysis.report.forms import write_csv
    from or_eval.analysis.responses import read_logs, with_other
    from or_eval.analysis.structure.measures import MEASURES, SURFACE, distributions, measure
    from or_eval.analysis.structure.parsers import find_parsers
    from or_eval.analysis.structure.refusal_effects import samples, structure_effects

    read = read_logs(list(logs), scorer=scorer, on_conflict=on_conflict)
    found = {} if surface else find_parsers(read.prompts["language"].dropna().unique(), parsers)
    measured = measure(read.prompts, found)
    for note in [*read.notes, *([] if surface else measured.notes)]:
        click.echo(f"note: {note}", err=True)
    wanted = SURFACE if surface else tuple(MEASURES)
    benchmarks = material(read, scorer=scorer, counting=counting, pool=False)
    unsaid = dict[str, None]()
    for benchmark, of in benchmarks.items():
        part = of.logs  # prompts as they are, as in reports and figures
        place = out if len(benchmarks) == 1 else out / benchmark.replace("/", "-")
        values = measured.values.loc[part.prompts.index, ["language", *wanted]]
        place.mkdir(parents=True, exist_ok=True)
        write_csv(values.reset_index(), place / "measures.csv")
        spread = distributions(part.responses, values)
        write_csv(spread.assign(counting=counting), place / "distributions.csv")
        own, other = (
            structure_effects(samples(one.responses, part.prompts, values, wanted))
            for one in (of, of.other)
        )
        effects = with_other(own, other, counting, "difference", "rate", "verdict")
        write_csv(effects, place / "effects.csv")
        with in_language(language) as without_words:
            for figure in (structure_boxes(spread), structure_effects_figure(effects)):
                if figure is not None:
                    save_figure(with_counting(figure, counting), place, formats)
        unsaid |= without_words
        click.echo(f"{benchmark}: {place}")
    tell_missing_words(unsaid, language)
