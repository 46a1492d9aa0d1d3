"""Figures: what is drawn from a frame, where labels go, and what is saved."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterator
from colorsys import rgb_to_hsv
from itertools import combinations
from math import dist
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from inspect_ai._util.error import PrerequisiteError
from scipy import stats

from or_eval.analysis.figures.badge_places import RADIUS, place_badges
from or_eval.analysis.figures.by_group import by_group, category_bars
from or_eval.analysis.figures.classes import class_stack
from or_eval.analysis.figures.drawing import COLOURS, MOST_COLOURS, NEUTRAL, Figure
from or_eval.analysis.figures.four_fold import four_fold_tables
from or_eval.analysis.figures.heat_maps import (
    rate_heat_map,
    similarity_heat_map,
    vote_agreement_heat_map,
)
from or_eval.analysis.figures.label_confusion import label_confusion
from or_eval.analysis.figures.model_names import generation, maker
from or_eval.analysis.figures.radar import radar
from or_eval.analysis.figures.run_differences import run_differences
from or_eval.analysis.figures.saving import save_figure
from or_eval.analysis.figures.shown_names import LONGEST, em_width, shown_names
from or_eval.analysis.figures.similarity import method_similarity, sentence_encoder
from or_eval.analysis.figures.trade_off import quadratic_fit, trade_off
from or_eval.analysis.figures.trends import generation_trends
from or_eval.analysis.label_agreement import label_agreement
from or_eval.analysis.rates import class_shares, rates
from or_eval.analysis.responses import read_logs
from or_eval.analysis.vote_agreement import vote_agreement
from or_eval.analysis.votes import vote_matrix
from pages import launched, opened
from replayed import run_replay, write_jsonl

MEASURES = ("over_refusal", "toxic_rejection")
HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "\u202egnp.exe\u202c",
    "openai/" + "very-long-name-" * 20 + "a",
    "openai/" + "very-long-name-" * 20 + "b",
    "北京模型/通义千问-七十二",
    '=HYPERLINK("http://127.0.0.1:1/","x")',
]

THIRTY = [
    *("openai/gpt-4o", "openai/gpt-4o-mini", "openai/gpt-4.1", "openai/gpt-3.5-turbo-0125"),
    *("claude-3-haiku", "claude-3-opus", "claude-3.5-sonnet", "claude-2.1", "o1", "o3-mini"),
    *("meta-llama/Meta-Llama-3-8B-Instruct", "meta-llama/Meta-Llama-3-70B-Instruct"),
    *("Llama-2-7b-chat", "Llama-2-13b-chat", "Llama-2-70b-chat", "Qwen/Qwen2.5-7B-Instruct"),
    *("Qwen/Qwen2.5-72B-Instruct", "qwen-1.5-4b", "qwen-1.5-7b", "gemini-1.0-pro"),
    *("gemini-1.5-flash", "gemini-1.5-pro", "gemma-7b-it", "gemma-2-9b-it", "WWWMMM-13B"),
    *("mistral-small-latest", "mistral-medium-latest", "mistral-large-latest"),
    *("Mixtral-8x7B-Instruct-v0.1", "北京模型/通义千问-七十二"),
]
"""Thirty models' names, as they come."""


def rate_rows(names: list[str] | int, **groups: list[str]) -> pd.DataFrame:
    """Make rates with intervals, for each model (or so many) and value of the grouping columns."""
    random = np.random.default_rng(1)
    if isinstance(names, int):
        names = [f"maker/family{n % 5}-{n}b" for n in range(names)]
    keys = pd.MultiIndex.from_product(
        [names, *groups.values(), MEASURES], names=["model", *groups, "measure"]
    )
    frame = keys.to_frame(index=False)
    frame["refused"] = random.integers(5, 96, len(frame))
    rate = frame["refused"] / 100
    return frame.assign(n=100, rate=rate, lower=rate - 0.05, upper=rate + 0.05)


def crowded(names: list[str]) -> pd.DataFrame:
    """Make rates by model that lie close to each other, and not quite on a line."""
    random = np.random.default_rng(3)
    over = random.normal(0.4, 0.1, len(names)).clip(0, 1)
    rejection = (0.4 + over + random.normal(0, 0.04, len(names))).clip(0, 1)
    parts = [
        pd.DataFrame({"model": names, "measure": measure, "rate": values})
        for measure, values in zip(MEASURES, (over, rejection), strict=True)
    ]
    frame = pd.concat(parts, ignore_index=True).assign(n=200, refused=0)
    return frame.assign(lower=frame["rate"] - 0.03, upper=frame["rate"] + 0.03)


def share_rows(names: list[str]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"model": model, "label": label, "response_class": name, "n": 5, "total": 10}
            | {"share": 0.5, "lower": 0.3, "upper": 0.7}
            for model in names
            for label in ("safe", "toxic")
            for name in ("direct_answer", "direct_refusal")
        ]
    )


def pair_rows(names: list[str]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"model_a": a, "model_b": b, "n": 9, "kappa": 0.5, "lower": 0.2, "upper": 0.7}
            | {"jaccard": 0.4}
            for a, b in combinations(names, 2)
        ]
    )


def every_figure(models: list[str], groups: list[str]) -> list[Figure]:
    """Draw each figure once, with these names of models and of groups."""
    similarity = [
        {"method": one, "other": other, "similarity": 0.4, "pairs": 9}
        for one in groups
        for other in groups
    ]
    change = {"label": "safe", "difference": 0.1, "lower": 0.0, "upper": 0.2}
    figures = [
        trade_off(rate_rows(models)),
        class_stack(share_rows(models), rate_rows(models)),
        by_group(rate_rows(models, language=groups), "language"),
        by_group(rate_rows(models, method=groups), "method"),
        by_group(rate_rows(models, category=groups), "category"),
        category_bars(rate_rows(1, category=groups).drop(columns="model")),
        radar(rate_rows(models, category=groups)),
        rate_heat_map(rate_rows(models, category=groups, language=groups), "category"),
        rate_heat_map(rate_rows(1, method=groups, language=groups).drop(columns="model"), "method"),
        four_fold_tables(rate_rows(models, language=groups)),
        generation_trends(rate_rows(["gpt-3", "gpt-4", *models])),
        vote_agreement_heat_map(pair_rows(models), "safe"),
        similarity_heat_map(pd.DataFrame(similarity)),
        run_differences(
            pd.DataFrame([{"model": model, "p_holm": 0.1, **change} for model in models])
        ),
    ]
    drawn = [figure for figure in figures if figure is not None]
    assert len(drawn) == len(figures)
    return drawn


@pytest.fixture(scope="module")
def six_models() -> list[Figure]:
    return every_figure(THIRTY[:6], ["a", "b", "c"])


def spec(figure: Figure | None) -> dict[str, Any]:
    assert figure is not None
    found: dict[str, Any] = figure.chart.to_dict()
    return found


def rows_drawn(figure: Figure | None, column: str) -> list[dict[str, Any]]:
    """Give the rows of all data sets of a chart that have a column."""
    return [row for rows in spec(figure)["datasets"].values() for row in rows if column in row]


def same(one: pd.DataFrame, other: pd.DataFrame, keys: list[str]) -> None:
    """Check that two frames have the same rows, in whatever order, in the columns of the first."""
    columns = list(one.columns)
    frames = [
        frame[columns].sort_values(keys, ignore_index=True).astype(object) for frame in (one, other)
    ]
    pd.testing.assert_frame_equal(*frames)


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


# Numbers on points


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


def test_every_model_has_a_number_that_no_other_covers_in_a_browser(tmp_path: Path) -> None:
    with launched() as browser:
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


def domains(panel: dict[str, Any]) -> set[tuple[float, float]]:
    """Give the domains of all axes in a panel."""
    found = re.findall(r'"domain": \[(-?[\d.]+), (-?[\d.]+)\]', json.dumps(panel))
    return {(float(low), float(high)) for low, high in found}


def test_shown_names_are_short_visible_and_all_different() -> None:
    shown = shown_names(HOSTILE)
    assert len(set(shown.values())) == len(HOSTILE)
    assert shown["\u202egnp.exe\u202c"] == "[U+202E]gnp.exe[U+202C]"
    assert shown[HOSTILE[3]].startswith("openai/very")
    assert shown[HOSTILE[3]].endswith("name-a")
    assert all(em_width(name) <= LONGEST for name in shown.values())
    twins = shown_names([f"{'x' * 50}{middle}{'x' * 50}" for middle in "abc"])
    assert [name[-4:] for name in twins.values()] == ["xxxx", " (2)", " (3)"]
    assert shown_names(["gpt\n4o"]) == {"gpt\n4o": "gpt 4o"}


@pytest.mark.parametrize(
    ("model", "made_by", "of"),
    [
        ("openai/gpt-4o-mini", "OpenAI", ("gpt", 4.0)),
        ("gpt-3.5-turbo-0125", "OpenAI", ("gpt", 3.5)),
        ("gpt4 (system_prompt=safe)", None, ("gpt", 4.0)),
        ("openai/o3-mini", "OpenAI", ("o", 3.0)),
        ("anthropic/claude-3-5-sonnet-20241022", "Anthropic", ("claude", 3.5)),
        ("claude-sonnet-4-20250514", "Anthropic", ("claude", 4.0)),
        ("together/meta-llama/Meta-Llama-3.1-8B", "Meta", ("llama", 3.1)),
        ("Llama-2-7b-chat", "Meta", ("llama", 2.0)),
        ("mistralguard", None, None),
        ("gemma-7b-it", None, None),
        ("Qwen/Qwen2.5-72B-Instruct", "Qwen", ("qwen", 2.5)),
        ("olive-7b", None, None),
        ("<script>", None, None),
        ("", None, None),
    ],
)
def test_maker_and_generation_are_told_from_a_name(
    model: str, made_by: str | None, of: tuple[str, float] | None
) -> None:
    assert maker(model) == made_by
    assert generation(model) == of


def test_no_model_is_loaded_to_tell_its_maker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect's public function would download the weights of ``hf/`` models."""
    loaded: list[str] = []
    monkeypatch.setattr("inspect_ai.model._model.get_model", lambda name, **_: loaded.append(name))
    assert maker("hf/nobody/nothing") is None
    assert not loaded


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


# Colours


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


def test_answers_are_the_least_loud_class() -> None:
    figure = class_stack(share_rows(["m"]), rate_rows(["m"]))
    [scale] = {
        tuple(zip(*json.loads(found), strict=True))
        for found in (
            f"[{domain}, {colours}]"
            for domain, colours in re.findall(
                r'"scale": {"domain": (\["direct[^]]*\]), "range": (\[[^]]*\])',
                json.dumps(spec(figure)),
            )
        )
    }
    loudness = [
        rgb_to_hsv(*(int(c[at : at + 2], 16) / 255 for at in (1, 3, 5)))[1] for _, c in scale
    ]
    assert [name for name, _ in scale] == [
        *("direct_refusal", "indirect_refusal", "partial_refusal", "direct_answer")
    ]
    assert loudness == sorted(loudness, reverse=True)


# What is drawn


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


def test_trends_follow_the_generations_of_a_line() -> None:
    models = [
        "gpt-3.5-turbo",
        "gpt-4",
        "gpt-4o",
        "claude-2",
        "claude-3-opus",
        "Qwen-7B",
        "llama-3-8b",
    ]
    rates = rate_rows(models)
    figure = generation_trends(rates)
    assert figure is not None
    assert [panel["title"] for panel in spec(figure)["concat"]] == [*("claude", "gpt")]
    same(
        figure.data[["model", "measure", "rate"]],
        rates[~rates["model"].isin(models[5:])],
        ["model", "measure"],
    )
    means = {
        (row["step"], row["measure"]): row["rate"]
        for row in rows_drawn(figure, "step")
        if "model" not in row
    }
    both = figure.data[
        (figure.data["generation"] == 4) & (figure.data["measure"] == "over_refusal")
    ]
    assert means["4", "over-refusal"] == pytest.approx(both["rate"].mean())
    assert generation_trends(rate_rows(["gpt-4", "gpt-4o", "claude-3-opus"])) is None


def test_four_fold_tables_have_a_table_per_model_and_language() -> None:
    rates = rate_rows(2, language=["en", "zh"])
    figure = four_fold_tables(rates)
    cells = rows_drawn(figure, "response")
    assert len(cells) == 2 * 2 * 4
    for cell in cells:
        model, _, language = cell["model"].rpartition(", ")
        measure = "over_refusal" if cell["prompts"] == "safe" else "toxic_rejection"
        keys = (rates["model"] == model) & (rates["language"] == language)
        [row] = rates[keys & (rates["measure"] == measure)].to_dict("records")
        refused = cell["response"] == "refused"
        count = row["refused"] if refused else row["n"] - row["refused"]
        assert (
            cell["text"] == f"{count}: {100 * (row['rate'] if refused else 1 - row['rate']):.0f} %"
        )
        ends = (row["lower"], row["upper"]) if refused else (1 - row["upper"], 1 - row["lower"])
        assert cell["range"] == f"{100 * ends[0]:.0f}–{100 * ends[1]:.0f}"


def test_four_fold_tables_of_corrected_rates_say_so_and_count_nothing() -> None:
    rates = rate_rows(1, language=["en"])
    plain, corrected = four_fold_tables(rates), four_fold_tables(rates.assign(sampled=9))
    assert plain is not None
    assert "as they stand" in plain.note
    assert corrected is not None
    assert corrected.note.endswith("Corrected by a sample of which the truth is known.")
    assert not any(":" in cell["text"] for cell in rows_drawn(corrected, "response"))


def test_label_confusion_counts_labels_against_verdicts() -> None:
    humans = ["direct_answer"] * 6 + ["direct_refusal"] * 4
    joined = pd.DataFrame(
        {
            "human": humans,
            "response_class": [*humans[:5], "direct_refusal", *humans[6:9], None],
            "refused": pd.array([False] * 5 + [True] * 4 + [None], "boolean"),
            "unscored_because": [None] * 9 + ["unsettled"],
            "decided_by": "rules",
            "certain": True,
            "family": list("abcdefghij"),
            **dict.fromkeys(("model", "category", "language"), "x"),
        }
    )
    figure = label_confusion(label_agreement(joined))
    assert figure is not None
    told = {(row["people"], row["scorer"]): row["n"] for row in figure.data.to_dict("records")}
    assert told["direct_answer", "direct_answer"] == 5
    assert told["direct_answer", "direct_refusal"] == 1
    assert told["direct_refusal", "direct_refusal"] == 3
    assert told["direct_refusal", "unscored"] == 1
    assert "kappa" in figure.note


def test_category_bars_are_the_rates_of_all_models() -> None:
    rates = rate_rows(1, category=["a", "b"]).drop(columns="model")
    figure = category_bars(rates)
    assert figure is not None
    same(figure.data, rates[rates["measure"] == "over_refusal"], ["category"])


def test_trade_off_needs_both_rates() -> None:
    rates = rate_rows(2)
    assert trade_off(rates[rates["measure"] == "over_refusal"]) is None


@pytest.mark.parametrize("models", [1, 3, 12])
def test_groups_show_intervals_in_one_panel_or_a_panel_per_model(models: int) -> None:
    groups = ["en", "zh", "zh+en"]
    for column in ("language", "method", "category"):
        rates = rate_rows(models, **{column: groups})
        figure = by_group(rates, column)
        assert ("facet" in spec(figure)) == (models > MOST_COLOURS)
        assert figure is not None
        safe = rates[rates["measure"] == "over_refusal"]
        same(figure.data, safe, ["model", column])
        drawn = pd.DataFrame(rows_drawn(figure, "lower"))
        assert len(drawn) == models * 3
        same(drawn[["model", column, "rate", "lower", "upper"]], safe, ["model", column])


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


def test_heat_map_writes_rate_and_interval_into_each_cell() -> None:
    rates = rate_rows(1, category=["privacy", "drugs"], language=["en", "zh"])
    figure = rate_heat_map(rates.drop(columns="model"), "category")
    cells = rows_drawn(figure, "text")
    assert len(cells) == 4
    for cell in cells:
        assert cell["text"] == f"{100 * cell['rate']:.0f} %"
        assert cell["range"] == f"{100 * cell['lower']:.0f}–{100 * cell['upper']:.0f}"
    assert figure is not None
    same(figure.data, rates[rates["measure"] == "over_refusal"], ["category", "language"])


def test_vote_agreement_is_drawn_both_ways() -> None:
    figure = vote_agreement_heat_map(pair_rows(["a", "b"]), "safe")
    rows = rows_drawn(figure, "kappa")
    assert {(row["model_a"], row["model_b"]) for row in rows} == {("a", "b"), ("b", "a")}
    assert vote_agreement_heat_map(pair_rows(["a", "b"]).assign(kappa=np.nan), "safe") is None


def test_radar_draws_each_rate_at_its_distance_and_the_interval_around_it() -> None:
    rates = rate_rows(2, category=["a", "b", "c", "d"])
    figure = radar(rates)
    chart = spec(figure)
    assert len(chart["concat"]) == 2
    points = pd.DataFrame(rows_drawn(figure, "interval"))
    safe = rates[rates["measure"] == "over_refusal"]
    distance = np.hypot(points["x"], points["y"])
    assert sorted(distance) == pytest.approx(sorted(safe["rate"]))
    assert sorted(np.hypot(points["x0"], points["y0"])) == pytest.approx(sorted(safe["lower"]))
    assert sorted(np.hypot(points["x1"], points["y1"])) == pytest.approx(sorted(safe["upper"]))
    assert radar(rate_rows(3, category=["a", "b"])) is None


def test_class_stack_draws_safe_and_toxic() -> None:
    figure = class_stack(share_rows(["m"]), rate_rows(["m"]))
    assert [panel["title"] for panel in spec(figure)["concat"]] == [
        "Safe prompts",
        "Toxic prompts",
    ]
    assert figure is not None
    same(figure.data, share_rows(["m"]), ["label", "response_class"])
    assert class_stack(share_rows(["m"]).assign(total=0), rate_rows(["m"])) is None
    unlabelled = class_stack(share_rows(["m"]).assign(label="unlabelled"), rate_rows(["m"]))
    [panel] = spec(unlabelled)["concat"]
    assert panel["title"] == "Prompts without a label"


def test_nothing_to_draw_is_no_figure() -> None:
    rates = rate_rows(2, language=["en"], category=["a"]).assign(n=0, rate=np.nan)
    assert by_group(rates, "language") is None
    assert rate_heat_map(rates, "category") is None
    assert by_group(rates, "category") is None
    assert radar(rates) is None
    assert trade_off(rate_rows(2).assign(rate=np.nan)) is None


# Similarity of methods


def test_method_similarity_is_the_mean_over_all_pairs() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(13, 5)) + 0.5
    prompts = pd.DataFrame({"method": ["a"] * 5 + ["b"] * 6 + ["c", None]})
    found = method_similarity(prompts, vectors).set_index(["method", "other"])["similarity"]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    within = [cosine[i, j] for i in range(5) for j in range(5) if i != j]
    assert found["a", "a"] == pytest.approx(np.mean(within))
    assert found["a", "b"] == pytest.approx(cosine[:5, 5:11].mean())
    assert found["b", "a"] == pytest.approx(found["a", "b"])
    assert ("c", "c") not in found.index
    assert set(found.index.get_level_values(0)) == {"a", "b", "c"}


def test_method_similarity_within_seeds_compares_rewrites_of_one_seed() -> None:
    vectors = np.random.default_rng(0).normal(size=(8, 5))
    prompts = pd.DataFrame({"method": list("abab") * 2, "seed_id": list("ssttttuu")})
    found = method_similarity(prompts, vectors, same_seed=True).set_index(["method", "other"])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    seeds, methods = prompts["seed_id"], prompts["method"]
    for one, other in (("a", "b"), ("a", "a")):
        pairs = [
            cosine[i, j]
            for i in range(8)
            for j in range(8)
            if i != j and seeds[i] == seeds[j] and (methods[i], methods[j]) == (one, other)
        ]
        assert found.loc[(one, other), "similarity"] == pytest.approx(np.mean(pairs))
        assert found.loc[(one, other), "pairs"] == len(pairs)


def test_method_similarity_takes_an_encoder_of_the_prompts() -> None:
    letters = "abcdefghij"
    prompts = pd.DataFrame({"method": ["m", "m", "n"], "prompt": ["ab", "bc", "ac"]})

    def encode(texts: Any) -> list[list[float]]:
        return [[float(text.count(letter)) for letter in letters] for text in texts]

    found = method_similarity(prompts, encode)
    assert found["similarity"].tolist() == pytest.approx([0.5, 0.5, 0.5])
    assert similarity_heat_map(found) is not None
    assert similarity_heat_map(found[found["other"] == "none"]) is None


def test_method_similarity_says_what_is_wrong_with_embeddings() -> None:
    prompts = pd.DataFrame({"method": ["m", "n"]})
    with pytest.raises(ValueError, match="2 prompts, but 3 embeddings"):
        method_similarity(prompts, np.ones((3, 2)))
    with pytest.raises(ValueError, match="embedding 1 of the prompts has the length 0"):
        method_similarity(prompts, [[1.0, 0.0], [0.0, 0.0]])


def test_missing_sentence_transformers_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(PrerequisiteError, match="pip install 'or-eval"):
        sentence_encoder()


# Files


def test_saved_in_four_forms_with_the_data_of_the_frame(tmp_path: Path) -> None:
    rates = rate_rows(4, language=["en", "zh"]).replace("maker/family0-0b", "=SUM(A1)")
    figure = by_group(rates, "language")
    assert figure is not None
    page, drawing, image, data = save_figure(figure, tmp_path / "figures")
    html = page.read_text("utf-8")
    assert "<script src" not in html
    assert "vegaEmbed" in html
    assert drawing.read_text("utf-8").startswith("<svg")
    assert image.read_bytes().startswith(b"\x89PNG")
    read = pd.read_csv(data)
    assert "'=SUM(A1)" in set(read["model"])
    safe = rates[rates["measure"] == "over_refusal"].replace("=SUM(A1)", "'=SUM(A1)")
    same(read, safe, ["model", "language"])


def test_hostile_names_run_nothing_and_ask_for_nothing(tmp_path: Path) -> None:
    figures = every_figure(HOSTILE, HOSTILE)
    with launched() as browser:
        for figure in figures:
            page_file, drawing, *_ = save_figure(figure, tmp_path)
            assert not re.search('<script|<img|onerror="', drawing.read_text("utf-8"))
            with opened(browser, page_file, viewport={"width": 390, "height": 800}) as (
                page,
                heard,
            ):
                assert page.title() == figure.title
                assert page.locator(".chart script, .chart img").count() == 0
                assert "\u202e" not in page.content()
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                assert [said for said in heard if not said.startswith("data:")] == []
    assert len(list(tmp_path.glob("*.png"))) == len(figures) == 14


def test_real_responses_scored_by_rules_fill_every_figure(
    shared_data: Path, tmp_path: Path
) -> None:
    with gzip.open(shared_data / "labels" / "xstest_human.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    kept = {row["id"] for row in rows[:450:24]}
    columns = ("id", "model", "prompt", "response")
    made = [
        {name: row[name] for name in columns}
        | {"label": "toxic" if row["type"].startswith("contrast_") else "safe"}
        | {"category": row["type"].removeprefix("contrast_"), "method": f"method {len(row['id'])}"}
        for row in rows
        if row["id"] in kept
    ]
    file = write_jsonl(tmp_path / "responses.jsonl", made)
    run_replay(file, "--log-dir", tmp_path / "logs")
    responses = read_logs(tmp_path / "logs").responses
    by_model = rates(responses)
    by_category = rates(responses, ("model", "category"))
    figures = [
        trade_off(by_model),
        class_stack(class_shares(responses), by_model),
        by_group(by_category, "category"),
        radar(by_category),
        by_group(rates(responses, ("model", "language")), "language"),
        by_group(rates(responses, ("model", "method")), "method"),
        rate_heat_map(rates(responses, ("category", "language")), "category"),
        rate_heat_map(rates(responses, ("method", "language")), "method"),
        vote_agreement_heat_map(vote_agreement(vote_matrix(responses)).pairs, "safe"),
    ]
    for figure in figures:
        assert figure is not None
        assert len(figure.data)
        if "model" in figure.data:
            assert figure.data["model"].nunique() == 5
    trade, drawn = figures[0], by_model.pivot(index="model", columns="measure", values="rate")
    assert trade is not None
    assert (
        trade.data.set_index("model")["over_refusal"].to_dict() == drawn["over_refusal"].to_dict()
    )
