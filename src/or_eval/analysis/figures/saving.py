"""Saving a figure: as a page, as a drawing, as an image, and its data."""

from __future__ import annotations

from pathlib import Path

from or_eval.analysis.figures.drawing import Figure
from or_eval.analysis.tables import spreadsheet_safe

_PIXELS_PER_INCH = 144


def save_figure(figure: Figure, folder: Path) -> list[Path]:
    """Save a figure as HTML (self-contained), SVG, PNG and CSV, each under the figure's name.

    Returns:
        The paths of the four files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page, drawing, image, data = (
        folder / f"{figure.name}.{ending}" for ending in ("html", "svg", "png", "csv")
    )
    # the expression interpreter needs no eval, so that the page also works where that is forbidden
    figure.chart.save(str(page), inline=True, embed_options={"ast": True})
    figure.chart.save(str(drawing))
    figure.chart.save(str(image), ppi=_PIXELS_PER_INCH)
    spreadsheet_safe(figure.data).to_csv(data, index=False, encoding="utf-8")
    return [page, drawing, image, data]
