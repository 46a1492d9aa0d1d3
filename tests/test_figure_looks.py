"""What all figures keep to: contrast, colours and shapes, axes, hollow points."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from figure_frames import (
    THIRTY,
    every_figure,
    rate_rows,
    rows_drawn,
    spec,
)
from or_eval.analysis.figures.drawing import COLOURS, NEUTRAL, Figure
from or_eval.analysis.figures.of_cells import rate_heat_map
from or_eval.analysis.figures.of_rates import by_group
from or_eval.analysis.figures.radar import radar


@pytest.fixture(scope="module")
def six_models() -> list[Figure]:
    return every_figure(THIRTY[:6], ["a", "b", "c"])


def test_every_mark_shows_on_light_and_on_dark_pages(six_models: list[Figure]) -> None:
    for figure in six_models:
        chart = spec(figure)
        bars = set()
        for mark, colours in marks(chart):
            if mark["type"] == "bar":
                bars |= colours
        assert chart["config"]["rule"]["color"] == NEUTRAL
        for mark, colours in marks(chart):
            assert mark.get("opacity", 1) == 1, (figure.name, mark)
            for colour in colours:
                if colour in ("white", "black"):  # on bars, points and discs
                    under = bars or set(COLOURS) | {NEUTRAL}
                    assert all(contrast(colour, other) >= 3 for other in under), figure.name
                else:
                    assert all(contrast(colour, page) >= 3 for page in PAGES), (figure.name, colour)
        for cell in rows_drawn(figure, "ink"):
            assert contrast(cell["ink"], cell["fill"]) >= 4.5, cell


PAGES = ("#ffffff", "#f6f7f9", "#14171b", "#1d2228")
"""What figures lie on: pages of figures and reports, light and dark."""


def marks(node: Any) -> Iterator[tuple[dict[str, Any], set[str]]]:
    """Give all marks of a chart with the colours that they are told by: of cells, the outline.

    Text without a colour takes the theme's, rules without one the configuration's.
    """
    if isinstance(node, list):
        for item in node:
            yield from marks(item)
    elif isinstance(node, dict):
        if isinstance(node.get("mark"), dict):
            mark, colour = node["mark"], node["encoding"].get("color", {})
            if mark["type"] == "rect":
                yield mark, {mark["stroke"]}
            elif colour.get("scale", {}) is not None:
                given = {colour["value"]} if "value" in colour else set()
                given |= set(colour.get("scale", {}).get("range", []))
                yield mark, given or {mark["color"]} if "color" in mark else given
        for key, item in node.items():
            if key != "datasets":
                yield from marks(item)


def contrast(one: str, other: str) -> float:
    """Give the contrast of two colours, as WCAG 2 has it."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Give the relative luminance of a colour, as WCAG 2 has it."""
    code = {"white": "#ffffff", "black": "#000000"}.get(colour, colour)
    parts = (int(code[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_models_are_told_apart_by_colour_and_shape() -> None:
    for figure in (
        by_group(rate_rows(8, language=["en", "zh"]), "language"),
        by_group(rate_rows(8, category=["a", "b"]), "category"),
    ):
        text = json.dumps(spec(figure))
        channels = [
            json.loads(found)["range"]
            for found in re.findall(
                r'"(?:color|shape)": {"field": "model", "scale": ({[^}]*})', text
            )
        ]
        assert channels
        assert all(len(set(channel)) == len(channel) for channel in channels)
        assert '"shape": {"field": "model"' in text


def test_lines_join_no_nominal_categories(six_models: list[Figure]) -> None:
    """But in a radar chart, which is made of them."""
    for figure in six_models:
        lines = [node for node in layers(spec(figure)) if node["mark"]["type"] == "line"]
        for line in lines:
            kinds = {line["encoding"][channel]["type"] for channel in ("x", "y")}
            assert kinds <= {"quantitative", "ordinal"}, figure.name
    assert not [
        node
        for node in layers(spec(by_group(rate_rows(3, category=["a", "b"]), "category")))
        if node["mark"]["type"] == "line"
    ]


def layers(node: Any) -> Iterator[dict[str, Any]]:
    """Give all layers of a chart that have a mark."""
    if isinstance(node, dict):
        if isinstance(node.get("mark"), dict):
            yield node
        for item in node.values():
            yield from layers(item)
    elif isinstance(node, list):
        for item in node:
            yield from layers(item)


def test_axes_have_round_ticks_and_none_beyond_0_and_100_percent() -> None:
    rates = rate_rows(3, category=["a", "b"]).assign(lower=0.0, upper=1.0)
    [ticks] = set(
        re.findall(r'"values": (\[[^]]*\])', json.dumps(spec(by_group(rates, "category"))))
    )
    assert json.loads(ticks) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


def test_a_rate_without_an_interval_is_drawn_hollow_and_said_to_be() -> None:
    rates = rate_rows(4, category=["a", "b", "c"])
    rates.loc[(rates["category"] == "b") & (rates["rate"] < 0.5), ["lower", "upper"]] = np.nan
    safe = rates[rates["measure"] == "over_refusal"]
    without = int(safe["lower"].isna().sum())
    assert without
    for figure in (by_group(rates, "category"), radar(rates)):
        assert figure is not None
        assert "hollow point" in figure.note
        assert '"filter": "!datum.bounded"' in json.dumps(spec(figure))
        assert sum(not row["bounded"] for row in rows_drawn(figure, "bounded")) == without
        assert figure.data["lower"].isna().sum() == without  # the data don't pretend
    whole = by_group(rate_rows(4, category=["a", "b", "c"]), "category")
    assert whole is not None
    assert "hollow" not in whole.note + json.dumps(spec(whole))
    cells = rows_drawn(rate_heat_map(safe.assign(language="en"), "category"), "range")
    assert sum(cell["range"] == "" for cell in cells) == without
