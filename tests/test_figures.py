"""Figures: what is drawn from a frame, where labels go, and what is saved."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from or_eval.analysis.figures.by_group import by_group, category_trend
from or_eval.analysis.figures.classes import class_stack
from or_eval.analysis.figures.drawing import MOST_COLOURS, Figure
from or_eval.analysis.figures.heat_maps import (
    rate_heat_map,
    similarity_heat_map,
    vote_agreement_heat_map,
)
from or_eval.analysis.figures.label_places import place_labels
from or_eval.analysis.figures.model_families import model_families, model_family
from or_eval.analysis.figures.radar import radar
from or_eval.analysis.figures.saving import save_figure
from or_eval.analysis.figures.similarity import method_similarity
from or_eval.analysis.figures.trade_off import quadratic_fit, trade_off

MEASURES = ("over_refusal", "toxic_rejection")


def rate_rows(models: int, **groups: list[str]) -> pd.DataFrame:
    """Make rates with intervals, for so many models and each value of the grouping columns."""
    random = np.random.default_rng(1)
    keys = pd.MultiIndex.from_product(
        [[f"maker/family{n % 5}-{n}b" for n in range(models)], *groups.values(), MEASURES],
        names=["model", *groups, "measure"],
    )
    frame = keys.to_frame(index=False)
    frame["rate"] = random.uniform(0.05, 0.95, len(frame))
    return frame.assign(
        n=100,
        refused=(100 * frame["rate"]).astype(int),
        lower=frame["rate"] - 0.05,
        upper=frame["rate"] + 0.05,
    )


def spec(figure: Figure | None) -> dict[str, Any]:
    assert figure is not None
    found: dict[str, Any] = figure.chart.to_dict()
    return found


def test_labels_of_thirty_crowded_models_do_not_collide() -> None:
    random = np.random.default_rng(3)
    points = [
        (float(x), float(y))
        for x, y in zip(random.normal(320, 70, 30), random.normal(230, 60, 30), strict=True)
    ]
    labels = [f"some-model-{n}-instruct"[: random.integers(6, 24)] for n in range(30)]
    places = place_labels(points, labels, 640, 460)
    for one, other in combinations(places, 2):
        assert one.box.overlap(other.box) == 0
    assert all(place.box.inside(640, 460) for place in places)
    for place in places:
        assert not any(
            place.box.left < x < place.box.right and place.box.top < y < place.box.bottom
            for x, y in points
        )
    assert places == place_labels(points, labels, 640, 460)


def test_a_lone_label_stands_right_beside_its_point() -> None:
    [place] = place_labels([(100.0, 100.0)], ["gpt"], 640, 460)
    assert place.side == "left"
    assert not place.far
    assert 100 < place.box.left < 115


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("openai/gpt-4o-mini", "gpt"),
        ("together/meta-llama/Meta-Llama-3-8B", "llama"),
        ("llama2orig", "llama"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen"),
        ("openai/o1", "other"),
        ("<script>", "script"),
        ("", "other"),
    ],
)
def test_model_family(model: str, family: str) -> None:
    assert model_family(model) == family


def test_small_families_become_other_when_there_are_too_many_to_tell_apart() -> None:
    letters = "abcdefghijkl"
    models = [f"{letter * 3}-{n}" for letter in letters for n in range(3 if letter < "c" else 1)]
    families = model_families(models)
    assert families["aaa-0"] == "aaa"
    assert families["lll-0"] == "other"
    assert len(set(families.values())) == MOST_COLOURS


def test_trade_off_has_a_point_per_model_and_a_fit_from_four() -> None:
    rates = rate_rows(4)
    figure = trade_off(rates)
    assert figure is not None
    assert len(figure.data) == 4
    wide = rates.pivot(index="model", columns="measure", values="rate")
    drawn = figure.data.set_index("model")
    assert drawn["over_refusal"].to_dict() == wide["over_refusal"].to_dict()
    fit = quadratic_fit(figure.data)
    assert fit is not None
    x, y = drawn["over_refusal"], drawn["toxic_rejection"]
    expected = np.polyval(np.polyfit(x, y, 2), fit["over_refusal"])
    assert np.allclose(fit["toxic_rejection"], expected, atol=1e-6)
    assert "quadratic" in figure.note
    three = trade_off(rate_rows(3))
    assert three is not None
    assert "quadratic" not in three.note


def test_trade_off_tells_families_by_colour_and_shape() -> None:
    text = json.dumps(spec(trade_off(rate_rows(30))))
    assert '"shape": {"field": "family"' in text
    assert '"color": {"field": "family"' in text


def test_trade_off_needs_both_rates() -> None:
    rates = rate_rows(2)
    assert trade_off(rates[rates["measure"] == "over_refusal"]) is None


@pytest.mark.parametrize("models", [3, 12])
def test_groups_show_intervals_in_one_panel_or_a_panel_per_model(models: int) -> None:
    groups = ["en", "zh", "zh+en"]
    for figure in (
        by_group(rate_rows(models, language=groups), "language"),
        by_group(rate_rows(models, method=groups), "method"),
        category_trend(rate_rows(models, category=groups)),
    ):
        chart = spec(figure)
        assert ("facet" in chart) == (models > MOST_COLOURS)
        assert '"lower"' in json.dumps(chart)
        assert figure is not None
        assert len(figure.data) == models * 3
        assert {"rate", "lower", "upper", "n"} <= set(figure.data)


def test_heat_map_writes_rate_and_interval_into_each_cell() -> None:
    rates = rate_rows(1, category=["privacy", "drugs"], language=["en", "zh"])
    figure = rate_heat_map(rates, "category")
    [rows] = spec(figure)["datasets"].values()
    cell = next(row for row in rows if row["category"] == "drugs" and row["language"] == "zh")
    assert cell["text"] == f"{100 * cell['rate']:.0f} %"
    assert cell["range"] == f"{100 * cell['lower']:.0f}–{100 * cell['upper']:.0f}"


def test_vote_agreement_is_drawn_both_ways() -> None:
    pair = {"model_a": "a", "model_b": "b", "n": 9, "kappa": 0.5, "lower": 0.2, "upper": 0.7}
    figure = vote_agreement_heat_map(pd.DataFrame([pair | {"jaccard": 0.4}]))
    [rows] = spec(figure)["datasets"].values()
    assert {(row["model_a"], row["model_b"]) for row in rows} == {("a", "b"), ("b", "a")}


def test_radar_has_a_panel_per_model_and_closed_polygons() -> None:
    chart = spec(radar(rate_rows(3, category=["a", "b", "c", "d"])))
    assert len(chart["concat"]) == 3
    assert radar(rate_rows(3, category=["a", "b"])) is None


def test_class_stack_draws_safe_and_toxic() -> None:
    shares = pd.DataFrame(
        [
            {"model": "m", "label": label, "response_class": name, "n": 5, "total": 10}
            | {"share": 0.5, "lower": 0.3, "upper": 0.7}
            for label in ("safe", "toxic")
            for name in ("direct_answer", "direct_refusal")
        ]
    )
    chart = spec(class_stack(shares, rate_rows(1).assign(model="m")))
    assert [panel["title"] for panel in chart["vconcat"]] == ["Safe prompts", "Toxic prompts"]
    assert class_stack(shares.assign(total=0), rate_rows(1)) is None


def test_method_similarity_is_the_mean_over_all_pairs() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(12, 5)) + 0.5
    methods = ["a"] * 5 + ["b"] * 6 + ["c"]
    found = method_similarity(vectors, methods).set_index(["method", "other"])["similarity"]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    within = [cosine[i, j] for i in range(5) for j in range(5) if i != j]
    assert found["a", "a"] == pytest.approx(np.mean(within))
    assert found["a", "b"] == pytest.approx(cosine[:5, 5:11].mean())
    assert found["b", "a"] == pytest.approx(found["a", "b"])
    assert ("c", "c") not in found.index


def test_saved_in_four_forms_that_need_no_network(tmp_path: Path) -> None:
    rates = rate_rows(4).replace("maker/family0-0b", "=SUM(A1)")
    figure = trade_off(rates)
    assert figure is not None
    page, drawing, image, data = save_figure(figure, tmp_path / "figures")
    html = page.read_text("utf-8")
    assert "<script src" not in html
    assert "vegaEmbed" in html
    assert drawing.read_text("utf-8").startswith("<svg")
    assert image.read_bytes().startswith(b"\x89PNG")
    assert "'=SUM(A1)" in data.read_text("utf-8")


def test_similarity_figure() -> None:
    vectors = np.random.default_rng(0).normal(size=(9, 4))
    assert similarity_heat_map(method_similarity(vectors, list("aaabbbccc"))) is not None
    assert similarity_heat_map(method_similarity(vectors, ["a"] * 9)) is None
