"""The trade-off: numbers on points, axes, colours by maker, the fit."""

from __future__ import annotations

import json
import re
from itertools import combinations
from math import dist
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from figure_frames import (
    MEASURES,
    THIRTY,
    crowded,
    rate_rows,
    rows_drawn,
    spec,
)
from or_eval.analysis.figures.badge_places import RADIUS, place_badges
from or_eval.analysis.figures.by_group import by_group
from or_eval.analysis.figures.drawing import COLOURS, MOST_COLOURS, NEUTRAL
from or_eval.analysis.figures.model_names import maker
from or_eval.analysis.figures.saving import save_figure
from or_eval.analysis.figures.trade_off import quadratic_fit, trade_off
from pages import launched, opened


def discs(page: Any) -> list[tuple[float, float]]:
    """Measure where a browser has put the middles of the numbered discs of a chart."""
    found: list[list[float]] = page.evaluate(
        """() => [...document.querySelectorAll('.chart svg .mark-symbol.role-mark path')]
            .filter(mark => mark.getAttribute("stroke") === "white")
            .map(mark => {
                const { left, right, top, bottom } = mark.getBoundingClientRect();
                return [(left + right) / 2, (top + bottom) / 2];
            })"""
    )
    return [(x, y) for x, y in found]


def test_badges_of_thirty_crowded_points_do_not_collide() -> None:
    random = np.random.default_rng(3)
    points = [
        (float(x), float(y))
        for x, y in zip(random.normal(200, 50, 30), random.normal(150, 40, 30), strict=True)
    ]
    moves = place_badges(points, 400, 300)
    places = [(x + dx, y + dy) for (x, y), (dx, dy) in zip(points, moves, strict=True)]
    assert all(dist(one, other) > 2 * RADIUS for one, other in combinations(places, 2))
    for index, place in enumerate(places):
        assert all(dist(place, other) > RADIUS for at, other in enumerate(points) if at != index)
        assert moves[index] == (0.0, 0.0) or (0 <= place[0] <= 400 and 0 <= place[1] <= 300)
    assert place_badges([(100.0, 100.0), (200.0, 100.0)], 400, 300) == [(0.0, 0.0)] * 2


def test_figures_of_thirty_models_are_read_in_a_browser(tmp_path: Path) -> None:
    """No number covers another, and panels take the width that there is."""
    with launched() as browser:
        panels = by_group(rate_rows(THIRTY, category=["a", "b" * 40]), "category")
        assert panels is not None
        [page_file, _] = save_figure(panels, tmp_path, ["html"])
        with opened(browser, page_file, viewport={"width": 1440, "height": 900}) as (page, _):
            drawing = page.locator("svg.marks").bounding_box() or {}
            assert 1100 < drawing["width"] < 1440
        for models, width in ((1, 390), (5, 1280), (30, 390), (30, 1280)):
            figure = trade_off(crowded(THIRTY[:models]))
            assert figure is not None
            [page_file, _] = save_figure(figure, tmp_path, ["html"])
            screen = {"width": width, "height": 900}
            with opened(browser, page_file, viewport=screen) as (page, _):
                places = discs(page)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                frame = page.locator(".frame")
                assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth")
            assert len(places) == models
            assert all(dist(one, other) >= 2 * RADIUS - 1 for one, other in combinations(places, 2))


def test_models_are_numbered_from_the_lowest_over_refusal_on() -> None:
    figure = trade_off(crowded(THIRTY))
    assert figure is not None
    assert figure.data["number"].tolist() == list(range(1, 31))
    assert figure.data["over_refusal"].is_monotonic_increasing
    entries = {row["number"]: row["entry"] for row in rows_drawn(figure, "entry")}
    assert all(entry.startswith(f"{number}  ") for number, entry in entries.items())
    assert len(set(entries.values())) == 30


def test_axes_show_all_and_a_crowd_is_enlarged() -> None:
    whole, zoom = spec(trade_off(crowded(THIRTY)))["concat"]
    assert domains(whole) == {(-0.02, 1.02)}
    assert all(high - low < 0.75 for low, high in domains(zoom))
    spread = rate_rows(["a", "b"]).assign(rate=[0.05, 0.3, 0.9, 0.95])
    [alone] = spec(trade_off(spread.assign(lower=spread["rate"], upper=spread["rate"])))["concat"]
    assert domains(alone) == {(-0.02, 1.02)}
    for chart in (whole, alone):
        [diagonal] = [
            layer
            for layer in chart["layer"]
            if layer.get("mark", {}).get("strokeDash") == [6, 4]
            or "refuses regardless" in json.dumps(layer)
        ][:1]
        assert diagonal


def test_models_in_the_enlarged_frame_stand_clear_of_its_edge() -> None:
    rates = crowded([f"m{number}" for number in range(10)])
    over = [0.06, 0.25, 0.27, 0.31, 0.33, 0.41, 0.43, 0.47, 0.50, 0.555]
    rejection = [0.454, 0.563, 0.636, 0.693, 0.60, 0.604, 0.758, 0.68, 0.82, 0.765]
    for measure, values in zip(MEASURES, (over, rejection), strict=True):
        rates.loc[rates["measure"] == measure, "rate"] = values
    figure = trade_off(rates.assign(lower=rates["rate"] - 0.05, upper=rates["rate"] + 0.05))
    _, zoom = spec(figure)["concat"]
    (left, right), (bottom, top) = sorted(domains(zoom))
    held = [(x, y) for x, y in zip(over, rejection, strict=True) if x > left and y > bottom]
    assert len(held) == 9
    for x, y in held:
        assert 0.04 < (x - left) / (right - left) < 0.96
        assert 0.04 < (y - bottom) / (top - bottom) < 0.96


def domains(panel: dict[str, Any]) -> set[tuple[float, float]]:
    """Give the domains of all axes in a panel."""
    found = re.findall(r'"domain": \[(-?[\d.]+), (-?[\d.]+)\]', json.dumps(panel))
    return {(float(low), float(high)) for low, high in found}


def test_models_are_coloured_by_maker_or_not_at_all() -> None:
    def colours(models: list[str]) -> dict[str, str]:
        rows = rows_drawn(trade_off(rate_rows(models)), "entry")
        return {row["model"]: row["colour"] for row in rows}

    by_maker = colours(["gpt-4", "o1", "claude-3-opus", "olive"])
    assert by_maker["gpt-4"] == by_maker["o1"] != by_maker["claude-3-opus"]
    assert by_maker["olive"] == NEUTRAL
    assert set(colours(["olive", "almond"]).values()) == {COLOURS[0]}
    models = ["gpt-4", "claude-3-opus", "gemini-2.5-pro", "deepseek-chat", "grok-4", "glm-4.5"]
    models += ["meta-llama/Llama-3.3-70B-Instruct", "Qwen/Qwen2.5-72B-Instruct", "mistral"]
    assert len({maker(model) for model in models}) > MOST_COLOURS
    assert set(colours(models).values()) == {COLOURS[0]}


def test_trade_off_has_a_point_per_model_and_a_fit_from_six() -> None:
    rates = rate_rows(6)
    figure = trade_off(rates)
    assert figure is not None
    wide = rates.pivot(index="model", columns="measure", values=["rate", "lower", "upper"])
    drawn = figure.data.set_index("model")
    for measure in MEASURES:
        for part, end in (("rate", ""), ("lower", "_lower"), ("upper", "_upper")):
            assert drawn[measure + end].to_dict() == wide[part, measure].to_dict()
    x, y = drawn["over_refusal"], drawn["toxic_rejection"]
    expected, covariance = np.polyfit(x, y, 2, cov=True)
    fit = quadratic_fit(x, y)
    assert fit is not None
    along = fit.curve["over_refusal"]
    assert np.allclose(fit.curve["fitted"], np.polyval(expected, along), atol=1e-6)
    left = ((y - np.polyval(expected, x)) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert f"over 6 models (adjusted R² {1 - left * 5 / 3:.2f})" in figure.note
    powers = np.vander(along, 3)
    half = stats.t.ppf(0.975, 3) * np.sqrt(np.diag(powers @ covariance @ powers.T))
    assert np.allclose(fit.curve["upper"] - fit.curve["fitted"], half, rtol=1e-4)
    assert np.allclose(fit.curve["fitted"] - fit.curve["lower"], half, rtol=1e-4)
    assert len(rows_drawn(figure, "fitted")) == len(fit.curve)
    five = trade_off(rate_rows(5))
    assert five is not None
    assert "quadratic" not in five.note


def test_trade_off_needs_both_rates() -> None:
    rates = rate_rows(2)
    assert trade_off(rates[rates["measure"] == "over_refusal"]) is None
