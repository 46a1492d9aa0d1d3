"""Saving a figure: as a page, as a drawing, as an image, and its data."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from or_eval.analysis.figures.drawing import Figure
from or_eval.analysis.figures.html_page import render_page
from or_eval.analysis.tables import spreadsheet_safe

_PIXELS_PER_INCH = 144


def save_figure(figure: Figure, folder: Path) -> list[Path]:
    """Save a figure as HTML (self-contained), SVG, PNG and CSV, each under the figure's name.

    altair's own pages would let a name with ``</script>`` in it end their script: ours don't.

    Returns:
        The paths of the four files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page, drawing, image, data = (
        folder / f"{figure.name}.{ending}" for ending in ("html", "svg", "png", "csv")
    )
    chart = {"chart": figure.chart.to_dict()}
    html = render_page(_template("figure.html"), _template("figure.js"), chart, figure=figure)
    page.write_text(html, encoding="utf-8")
    figure.chart.save(str(drawing))
    figure.chart.save(str(image), ppi=_PIXELS_PER_INCH)
    spreadsheet_safe(figure.data).to_csv(data, index=False, encoding="utf-8")
    return [page, drawing, image, data]


def _template(name: str) -> str:
    return (files("or_eval") / "analysis" / "figures" / "template" / name).read_text("utf-8")
