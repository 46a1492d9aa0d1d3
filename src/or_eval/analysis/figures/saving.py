"""Saving a figure: as a page, as a drawing, as an image, and its data."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from or_eval.analysis.figures.drawing import Figure
from or_eval.analysis.figures.html_page import render_page
from or_eval.analysis.tables import spreadsheet_safe

Format: TypeAlias = Literal["html", "svg", "png", "pdf"]
FORMATS: tuple[Format, ...] = get_args(Format)

_PIXELS_PER_INCH = 144


def save_figure(
    figure: Figure, folder: Path, formats: Sequence[Format] = ("html", "svg", "png")
) -> list[Path]:
    """Save a figure and its data (as CSV), each under the figure's name.

    altair's own pages would let a name with ``</script>`` in it end their script: ours don't.

    Args:
        figure: The figure.
        folder: Folder to write to; made where there is none.
        formats: ``html`` (a page that needs no network), ``svg``, ``png``, ``pdf``.

    Returns:
        The paths of the files, the data's last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{figure.name}.{ending}" for ending in (*formats, "csv")]
    for path in written[:-1]:
        if path.suffix == ".html":
            path.write_text(_page(figure), encoding="utf-8")
        else:
            figure.chart.save(str(path), ppi=_PIXELS_PER_INCH)
    spreadsheet_safe(figure.data).to_csv(written[-1], index=False, encoding="utf-8")
    return written


def _page(figure: Figure) -> str:
    template = files("or_eval") / "analysis" / "figures" / "template" / "figure.html"
    charts = {figure.name: figure.chart.to_dict()}
    return render_page(template.read_text("utf-8"), "", {"charts": charts}, figure=figure)
