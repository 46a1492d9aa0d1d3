"""Saving a figure: as a page, as a drawing, as an image, and its data."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

from or_eval.analysis.figures.drawing import Figure
from or_eval.analysis.figures.html_page import render_page
from or_eval.analysis.figures.in_language import language
from or_eval.analysis.tables import spreadsheet_safe

Format: TypeAlias = Literal["html", "svg", "png", "pdf"]

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
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{figure.name}.{ending}" for ending in (*formats, "csv")]
    chart = figure.chart.to_dict()
    drawing = vl_convert.vegalite_to_svg(chart) if set(formats) != {"html"} else ""
    for path, form in zip(written, formats, strict=False):
        match form:
            case "html":
                path.write_text(_page(figure, chart), encoding="utf-8")
            case "svg":
                path.write_text(drawing, encoding="utf-8")
            case "png":
                path.write_bytes(vl_convert.svg_to_png(drawing, ppi=_PIXELS_PER_INCH))
            case "pdf":
                path.write_bytes(vl_convert.svg_to_pdf(drawing))
    spreadsheet_safe(figure.data).to_csv(written[-1], index=False, encoding="utf-8")
    return written


def _page(figure: Figure, chart: dict[str, Any]) -> str:
    template = files("or_eval") / "analysis" / "figures" / "template" / "figure.html"
    charts = {"charts": {figure.name: chart}}
    return render_page(template.read_text("utf-8"), "", charts, figure=figure, language=language())
