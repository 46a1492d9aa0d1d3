"""The trade-off: numbers on points, axes, colours by maker, the fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import stats

from figure_frames import (
    MEASURES,
    THIRTY,
    crowded,
    rate_rows,
    rows_drawn,
)
from or_eval.analysis.figures.drawing import COLOURS, MOST_COLOURS, NEUTRAL
from or_eval.analysis.figures.saving import save_figure
from or_eval.analysis.figures.trade_off import maker, quadratic_fit, trade_off
from pages import launched, opened


def test_figures_of_thirty_models_are_read_in_a_browser(tmp_path: Path) -> None:
    """Every model has a number."""
    with launched() as browser:
        for models, width in ((1, 390), (5, 1280), (30, 390), (30, 1280)):
            figure = trade_off(crowded(THIRTY[:models]))
            assert figure is not None
            [page_file, _] = save_figure(figure, tmp_path, ["html"])
            screen = {"width": width, "height": 900}
            with opened(browser, page_file, viewport=screen) as (page, _):
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                frame = page.locator(".frame")
                assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth")
                numbers = page.locator(".chart svg .role-mark text").all_text_contents()
                assert set(map(str, range(1, models + 1))) <= set(numbers)


def test_models_are_numbered_from_the_lowest_over_refusal_on() -> None:
    figure = trade_off(crowded(THIRTY))
    assert figure is not None
    assert figure.data["number"].tolist() == list(range(1, 31))
    assert figure.data["over_refusal"].is_monotonic_increasing
    entries = {row["number"]: row["entry"] for row in rows_drawn(figure, "entry")}
    assert all(entry.startswith(f"{number}  ") for number, entry in entries.items())
    assert len(set(entries.values())) == 30


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


def test_trade_off_has_a_point_per_model_and_a_fit_where_it_explains() -> None:
    rates = crowded(THIRTY[:9])
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
    assert f"over 9 models (adjusted R² {1 - left * 8 / 6:.2f})" in figure.note
    powers = np.vander(along, 3)
    half = stats.t.ppf(0.975, 6) * np.sqrt(np.diag(powers @ covariance @ powers.T))
    assert np.allclose(fit.curve["upper"] - fit.curve["fitted"], half, rtol=1e-4)
    assert np.allclose(fit.curve["fitted"] - fit.curve["lower"], half, rtol=1e-4)
    assert len(rows_drawn(figure, "fitted")) == len(fit.curve)
    five = trade_off(rate_rows(5))
    assert five is not None
    assert "quadratic" not in five.note


def test_trade_off_needs_both_rates() -> None:
    rates = rate_rows(2)
    assert trade_off(rates[rates["measure"] == "over_refusal"]) is None


def test_a_fit_is_drawn_where_it_explains_more_than_chance() -> None:
    """As the F test says, by scipy."""
    random = np.random.default_rng(2)
    for _ in range(20):
        x, y = random.random((2, 8))
        fit = quadratic_fit(x, y)
        assert fit is not None
        explained = 1 - (1 - fit.explained) * 5 / 7
        assert np.isclose(fit.chance, stats.f.sf(explained / (1 - explained) * 5 / 2, 2, 5))


def test_a_fit_that_explains_nothing_is_not_drawn() -> None:
    rates = rate_rows(8)
    over = rates[rates["measure"] == "over_refusal"].reset_index()["rate"]
    high = (over.rank() % 2).to_numpy()
    rates.loc[rates["measure"] == "toxic_rejection", "rate"] = 0.2 + 0.6 * high
    figure = trade_off(rates)
    assert figure is not None
    assert "quadratic" not in figure.note
