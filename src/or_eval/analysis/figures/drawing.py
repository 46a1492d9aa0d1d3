"""What all figures share: the drawing library, colours, shapes, and how a rate is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
from inspect_ai._util.error import PrerequisiteError
from rich.markup import escape

# Okabe and Ito (2008), without yellow, which is lost on white; every colour comes with a shape
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f", "#000000")
SHAPES = (
    *("circle", "square", "triangle-up", "diamond"),
    *("triangle-down", "cross", "triangle-right", "triangle-left"),
)
MOST_COLOURS = len(COLOURS)
"""More models than this can't be told apart by colour: they get a panel each."""

MEASURE_TITLES = {"over_refusal": "Over-refusal rate", "toxic_rejection": "Toxic rejection rate"}


class Figure(NamedTuple):
    """A figure with its words and its data.

    Attributes:
        name: Short name, for files and anchors.
        title: What it shows.
        note: How to read it, in a sentence or two.
        chart: The altair chart.
        data: The figures behind it.
    """

    name: str
    title: str
    note: str
    chart: Any
    data: pd.DataFrame


def altair() -> Any:
    """Give the module ``altair``.

    Raises:
        PrerequisiteError: It isn't installed.
    """
    try:
        import altair
        import vl_convert  # noqa: F401  # without it nothing can be saved
    except ImportError as missing:
        raise PrerequisiteError(
            escape("Figures and reports need altair: pip install 'or-eval[report]'")
        ) from missing
    return altair


def javascript_bundle() -> str:
    """Give the scripts that draw charts in a page: Vega, Vega-Lite and vega-embed."""
    altair()
    import vl_convert

    bundle: Any = vl_convert.javascript_bundle  # its stub asks for an argument that has a default
    return str(bundle())


def percent(value: float) -> str:
    """Write a share as a percentage, or a dash where there is none."""
    return "—" if pd.isna(value) else f"{100 * value:.0f} %"


def with_interval(value: float, lower: float, upper: float) -> str:
    """Write a share with its interval, as ``34 % (28–41)``."""
    if pd.isna(lower) or pd.isna(upper):
        return percent(value)
    return f"{percent(value)} ({100 * lower:.0f}–{100 * upper:.0f})"


def with_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Add ``interval``: rate and interval as a person reads them."""
    bounds = zip(frame["rate"], frame["lower"], frame["upper"], strict=True)
    return frame.assign(interval=[with_interval(*estimate) for estimate in bounds])


def rate_axis(title: str) -> Any:
    """Give an axis of percentages."""
    return altair().Axis(title=title, format=".0%", tickCount=6)


def shares(lower: pd.Series[float], upper: pd.Series[float]) -> tuple[float, float]:
    """Give the domain of an axis that shows shares and their intervals, within 0 and 1."""
    low, high = float(lower.min()), float(upper.max())
    margin = max(0.04, 0.06 * (high - low))
    return max(0.0, low - margin), min(1.0, high + margin)


def scales(names: Sequence[str]) -> tuple[Any, Any]:
    """Give the scales of colour and of shape for at most :data:`MOST_COLOURS` names."""
    alt = altair()
    domain = list(names)
    return (
        alt.Scale(domain=domain, range=list(COLOURS[: len(domain)])),
        alt.Scale(domain=domain, range=list(SHAPES[: len(domain)])),
    )


def finished(chart: Any) -> Any:
    """Give a chart the look of all figures: a light grid, no frame, room for long labels."""
    return (
        chart.configure_view(stroke=None)
        .configure_axis(labelLimit=220, titleFontWeight="normal", gridOpacity=0.6)
        .configure_legend(labelLimit=220, titleFontWeight="normal", symbolSize=70, symbolOpacity=1)
        .configure_header(labelLimit=220, labelFontWeight="bold", title=None)
        .configure_title(anchor="start", fontWeight="normal")
    )
