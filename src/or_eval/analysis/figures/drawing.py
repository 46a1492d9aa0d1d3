"""What all figures share: the drawing library, colours, shapes, and how a rate is written."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from math import ceil
from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.extras import needed
from or_eval.analysis.figures.in_language import named, said
from or_eval.analysis.figures.shown_names import em_width, shown_names
from or_eval.analysis.responses import other_counting
from or_eval.analysis.wording import written
from or_eval.intervals import with_bounds
from or_eval.schema import countings

_NEEDED = "Figures and reports need altair"

# After Okabe and Ito (2008), the light ones darkened and the dark ones lightened, so that each has
# a contrast of 3 : 1 with light and with dark pages; every colour comes with a shape or a number
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b85c93", "#a87b00", "#8a63c9", "#8c6d46", "#0b8fa8")
NEUTRAL = "#7f7f7f"
"""Colour of what is no model's: lines that guide the eye, outlines."""
SHAPES = (
    *("circle", "square", "triangle-up", "diamond"),
    *("triangle-down", "cross", "triangle-right", "triangle-left"),
)
MOST_COLOURS = len(COLOURS)
"""More models than this can't be told apart by colour: they get a panel each."""

PLOT_WIDTH = 520
"""Width of a figure in files, in pixels; in pages it has the width that there is."""

alt: Any = needed("altair", "report", _NEEDED)
needed("vl_convert", "report", _NEEDED)  # without it nothing can be saved

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2)
_MOST_TICKS = 8
_LABEL_PIXELS = 280


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


def figure(
    name: str, chart: Any, data: pd.DataFrame, *more: str, note: str = "note", **values: Any
) -> Figure:
    """Make a figure with the words that ``figures.toml`` has for it, in the language of figures.

    Args:
        name: Short name, for files and anchors.
        chart: The chart.
        data: The figures behind it.
        more: What the note says besides, in that language already.
        note: Under which key its note stands.
        values: What stands for the names in the note's braces.
    """
    words = figure_words()[name]
    return Figure(
        name, said(words["title"]), " ".join([said(words[note], **values), *more]), chart, data
    )


def with_counting(found: Figure, counting: str) -> Figure:
    """Let a figure's note say what counts as refused."""
    return found._replace(
        note=f"{found.note} {said('Counting: {counting}.', counting=counting_name(counting))}"
    )


@cache
def figure_words() -> dict[str, Any]:
    """Give the English words of figures."""
    place = files("or_eval") / "analysis" / "figures" / "figures.toml"
    return tomllib.loads(place.read_text("utf-8"))


def with_interval(value: float, lower: float | None = None, upper: float | None = None) -> str:
    """Write a share as figures do, with its interval: ``34 % (28–41)``."""
    return written(value, lower, upper, kind="round")


def ends_of(text: str) -> str:
    """Give the interval within such a text, without its brackets."""
    return text.partition(" (")[2].rstrip(")")


def over_refusal(rates: pd.DataFrame) -> pd.DataFrame:
    """Give the rows of rates that are over-refusal rates of at least one response."""
    return rates[(rates["measure"] == "over_refusal") & (rates["n"] > 0)]


def drawn(rates: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Make rates ready for a chart.

    Args:
        rates: Columns ``rate``, ``lower`` and ``upper``, and those named.
        names: Columns of names to show.

    Returns:
        The rates with their names as figures show them; ``interval``, the rate and its interval
        as a person reads them; ``bounded``, whether there is an interval; and bounds at the rate
        itself where there is none. Where another counting stands beside theirs, ``other`` is the
        rate by it, and ``other_text`` what a person reads.
    """
    if other := other_of(rates):
        told = (rates[name] for name in with_bounds(f"rate_{other}"))
        texts = list(map(with_interval, *told))
        rates = rates.assign(other=rates[f"rate_{other}"], other_text=texts)
    return with_shown_names(rates, *names).assign(
        interval=list(map(with_interval, rates["rate"], rates["lower"], rates["upper"])),
        bounded=rates["lower"].notna() & rates["upper"].notna(),
        lower=rates["lower"].fillna(rates["rate"]),
        upper=rates["upper"].fillna(rates["rate"]),
    )


def other_of(rates: pd.DataFrame) -> str:
    """Give the counting that stands beside that of rates; empty where they are told by one."""
    if "counting" not in rates or rates.empty:
        return ""
    return other_counting(str(rates["counting"].iloc[0]))


def other_data(rates: pd.DataFrame) -> list[str]:
    """Give the columns of rates that tell them by the other counting."""
    other = other_of(rates)
    return ["counting", f"refused_{other}", *with_bounds(f"rate_{other}")] if other else []


def small_dots(data: pd.DataFrame, value: str, **channels: Any) -> list[Any]:
    """Give a layer of small dots where figures are by the other counting, if any differ."""
    if "other" not in data or (data["other"] == data[value]).all():
        return []
    return [alt.Chart(data).mark_point(filled=True, size=26, opacity=1).encode(**channels)]


def small_dots_note(rates: pd.DataFrame, value: str = "rate") -> list[str]:
    """Say by which counting small dots are, where there are any."""
    other = other_of(rates)
    if not other or (rates[value] == rates[f"{value}_{other}"]).all():
        return []
    return [said("Small dots: the same, counted {other}.", other=counting_name(other))]


def with_shown_names(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Put in the form in which figures show them the names in some columns."""
    frame = frame.assign(
        **{name: frame[name].map(lambda value, kind=name: named(kind, value)) for name in columns}
    )
    names = shown_names(name for column in columns for name in frame[column].unique())
    return frame.assign(**{column: frame[column].map(names) for column in columns})


def tooltips(*columns: str, other: str = "") -> list[Any]:
    """Give what pointing at a mark shows.

    Args:
        columns: Columns of names and texts; with ``interval``, also ``n``.
        other: The counting whose rates are shown as well, if any.
    """
    titles = {name: name.removesuffix("_text").replace("_", " ").capitalize() for name in columns}
    titles |= {"interval": "Value"} if "interval" in columns else {}
    return [
        *(alt.Tooltip(f"{name}:N", title=said(title)) for name, title in titles.items()),
        *([alt.Tooltip("other_text:N", title=counting_name(other))] if other else []),
        *([alt.Tooltip("n:Q", title=said("Responses"))] if "interval" in columns else []),
    ]


def counting_name(counting: str) -> str:
    """Name a counting in the language of figures."""
    return named("counting", countings()[counting].name)


def hollow(points: Any, data: pd.DataFrame, **place: Any) -> list[Any]:
    """Give a layer that hollows the points that have no interval; none where all have one."""
    if data["bounded"].all():
        return []
    dots = points.transform_filter("!datum.bounded")
    return [dots.mark_point(filled=True, color="white", size=14).encode(**place)]


def hollow_note(data: pd.DataFrame) -> list[str]:
    """Say what hollow points mean, where there are any."""
    if data["bounded"].all():
        return []
    return [said("A hollow point has no interval: all its prompts are of one family.")]


def corrected_note(rates: pd.DataFrame) -> str:
    """Say whether rates are corrected by what is known of a sample."""
    if "sampled" in rates and (rates["sampled"] > 0).any():
        return said("Corrected by human labels or an audit of a sample.")
    return said("Uncorrected verdicts.")


def rate_axis(title: str | None, domain: tuple[float, float]) -> Any:
    """Give an axis of percentages with round ticks, none of them beyond 0 and 100 %."""
    low, high = max(domain[0], 0.0), min(domain[1], 1.0)
    step = next((step for step in _STEPS if (high - low) / step < _MOST_TICKS), _STEPS[-1])
    first = ceil(low / step - 1e-9)
    count = int((high - first * step) / step + 1e-9) + 1
    ticks = [round((first + index) * step, 2) for index in range(count)]
    # without a count of its own, Vega leaves every other tick out of a small panel
    return alt.Axis(
        title=title, format=".0%", values=ticks, tickCount=len(ticks), labelOverlap=False
    )


def shares(lower: pd.Series[float], upper: pd.Series[float]) -> tuple[float, float]:
    """Give the domain of an axis that shows shares and their intervals.

    It goes a little beyond 0 and 1 where shares come near them, so that no point is cut.
    """
    low, high = float(lower.min()), float(upper.max())
    span = max(high - low, 0.1)
    return max(-0.03 * span, low - 0.06 * span), min(1 + 0.03 * span, high + 0.06 * span)


def scales(names: Sequence[str]) -> tuple[Any, Any]:
    """Give the scales of colour and of shape for at most :data:`MOST_COLOURS` names."""
    domain = list(names)
    return (
        alt.Scale(domain=domain, range=list(COLOURS[: len(domain)])),
        alt.Scale(domain=domain, range=list(SHAPES[: len(domain)])),
    )


def name_room(names: Iterable[str]) -> float:
    """Give how many pixels wide a column of names gets beside a chart."""
    return min(_LABEL_PIXELS, 11 * max(map(em_width, names), default=0.0)) + 40


def finished(
    chart: Any,
    *,
    least: float,
    panels: int = 0,
    margin: float | None = 60,
    legend: Iterable[str] = (),
    square: bool = False,
    most: float | None = None,
) -> Any:
    """Give a chart the look of all figures, and say what its page has to know of its width.

    Args:
        chart: The chart.
        least: Least width in pixels of the chart, or of each of its panels; what has less room is
            to be scrolled to.
        panels: Number of panels that may stand side by side; 0 for a chart that is one.
        margin: What axes take of a panel's width; None for panels of a fixed size.
        legend: What the legend beside the panels names.
        square: Whether panels are as high as they are wide.
        most: Width in pixels beyond which a chart doesn't grow.
    """
    room = _LABEL_PIXELS
    beside = name_room(legend) if (legend := list(legend)) else 0
    needs = {"least": least, "panels": panels, "margin": margin, "beside": beside}
    needs |= {"square": square, "most": most}
    return (
        chart.properties(usermeta=needs)
        .configure_view(stroke=None)
        .configure_axis(labelLimit=room, titleFontWeight="normal", gridOpacity=0.6)
        .configure_legend(labelLimit=room, titleFontWeight="normal", symbolSize=70, symbolOpacity=1)
        .configure_header(labelLimit=room, labelFontWeight="bold", title=None)
        .configure_title(anchor="start", fontWeight="normal")
        .configure_rule(color=NEUTRAL)
        .configure_point(opacity=1)
    )
