"""Figures: what is drawn from a frame, where labels go, and what is saved."""

from __future__ import annotations

import gzip
import json
import re
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from inspect_ai._util.error import PrerequisiteError

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
from or_eval.analysis.figures.run_differences import run_differences
from or_eval.analysis.figures.saving import save_figure
from or_eval.analysis.figures.shown_names import LONGEST, em_width, shown_names
from or_eval.analysis.figures.similarity import method_similarity, sentence_encoder
from or_eval.analysis.figures.trade_off import quadratic_fit, trade_off
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
        category_trend(rate_rows(models, category=groups)),
        radar(rate_rows(models, category=groups)),
        rate_heat_map(rate_rows(1, category=groups, language=groups), "category"),
        rate_heat_map(rate_rows(1, method=groups, language=groups), "method"),
        vote_agreement_heat_map(pair_rows(models), "safe"),
        similarity_heat_map(pd.DataFrame(similarity)),
        run_differences(
            pd.DataFrame([{"model": model, "p_holm": 0.1, **change} for model in models])
        ),
    ]
    drawn = [figure for figure in figures if figure is not None]
    assert len(drawn) == len(figures)
    return drawn


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


def boxes(page: Any) -> list[tuple[str, dict[str, float]]]:
    """Measure where a browser has written the labels of a chart's marks."""
    found: list[tuple[str, dict[str, float]]] = page.evaluate(
        """() => [...document.querySelectorAll("#chart svg .role-mark text")].map(text => {
            const { left, right, top, bottom } = text.getBoundingClientRect();
            return [text.textContent, { left, right, top, bottom }];
        })"""
    )
    return found


# Labels


def test_labels_of_thirty_crowded_points_do_not_collide() -> None:
    random = np.random.default_rng(3)
    points = [
        (float(x), float(y))
        for x, y in zip(random.normal(320, 70, 30), random.normal(230, 60, 30), strict=True)
    ]
    labels = [name.rsplit("/", 1)[-1][:24] for name in THIRTY]
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


def test_labels_of_thirty_models_do_not_collide_in_a_browser(tmp_path: Path) -> None:
    """Text as a browser really sets it: Chromium falls back to a wide font where Arial is missing."""
    figure = trade_off(crowded(THIRTY))
    assert figure is not None
    page_file, *_ = save_figure(figure, tmp_path)
    labels = [str(row["label"]) for row in rows_drawn(figure, "label")]
    assert len(labels) == 30
    with launched() as browser, opened(browser, page_file) as (page, _):
        page.locator("#chart svg.marks").wait_for()
        found = boxes(page)
    assert sorted(text for text, _ in found) == sorted(labels)
    for (one, a), (other, b) in combinations(found, 2):
        width = min(a["right"], b["right"]) - max(a["left"], b["left"])
        height = min(a["bottom"], b["bottom"]) - max(a["top"], b["top"])
        assert width <= 0 or height <= 1, f"{one} and {other} collide"


def test_a_lone_label_stands_right_beside_its_point() -> None:
    [place] = place_labels([(100.0, 100.0)], ["gpt"], 640, 460)
    assert place.side == "left"
    assert not place.far
    assert 100 < place.box.left < 115


def test_labels_name_the_maker_only_where_they_must() -> None:
    figure = trade_off(rate_rows(["a/gpt", "b/gpt", "c/other", "plain"]))
    assert [row["label"] for row in rows_drawn(figure, "label")] == [
        *("a/gpt", "b/gpt", "other", "plain")
    ]


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
    ("model", "family"),
    [
        ("openai/gpt-4o-mini", "gpt"),
        ("together/meta-llama/Meta-Llama-3-8B", "llama"),
        ("llama2orig", "llama"),
        ("mistralguard", "mistral"),
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
    expected = np.polyfit(x, y, 2)
    fit = quadratic_fit(figure.data)
    assert fit is not None
    assert np.allclose(fit.convert().coef[::-1], expected, atol=1e-6)
    assert np.allclose(drawn["fitted"], np.polyval(expected, x), atol=1e-6)
    left = ((y - drawn["fitted"]) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert f"over 6 models (adjusted R² {1 - left * 5 / 3:.2f})" in figure.note
    curve = [row for row in rows_drawn(figure, "toxic_rejection") if "model" not in row]
    assert len(curve) == 100
    assert all(row["toxic_rejection"] is None or 0 <= row["toxic_rejection"] <= 1 for row in curve)
    five = trade_off(rate_rows(5))
    assert five is not None
    assert "quadratic" not in five.note


def test_families_and_models_are_told_apart_by_colour_and_shape() -> None:
    for figure, field in (
        (trade_off(rate_rows(30)), "family"),
        (by_group(rate_rows(8, language=["en", "zh"]), "language"), "model"),
        (category_trend(rate_rows(8, category=["a", "b"])), "model"),
    ):
        text = json.dumps(spec(figure))
        channels = [
            json.loads(found)["range"]
            for found in re.findall(
                rf'"(?:color|shape)": {{"field": "{field}", "scale": ({{[^}}]*}})', text
            )
        ]
        assert channels
        assert all(len(set(channel)) == len(channel) for channel in channels)
        assert f'"shape": {{"field": "{field}"' in text


def test_trade_off_needs_both_rates() -> None:
    rates = rate_rows(2)
    assert trade_off(rates[rates["measure"] == "over_refusal"]) is None


@pytest.mark.parametrize("models", [1, 3, 12])
def test_groups_show_intervals_in_one_panel_or_a_panel_per_model(models: int) -> None:
    groups = ["en", "zh", "zh+en"]
    for column in ("language", "method", "category"):
        rates = rate_rows(models, **{column: groups})
        figure = category_trend(rates) if column == "category" else by_group(rates, column)
        assert ("facet" in spec(figure)) == (models > MOST_COLOURS)
        assert figure is not None
        safe = rates[rates["measure"] == "over_refusal"]
        same(figure.data, safe, ["model", column])
        drawn = pd.DataFrame(rows_drawn(figure, "lower"))
        assert len(drawn) == models * 3
        same(drawn[["model", column, "rate", "lower", "upper"]], safe, ["model", column])


def test_axes_have_round_ticks_and_none_beyond_0_and_100_percent() -> None:
    rates = rate_rows(3, category=["a", "b"]).assign(lower=0.0, upper=1.0)
    [ticks] = set(re.findall(r'"values": (\[[^]]*\])', json.dumps(spec(category_trend(rates)))))
    assert json.loads(ticks) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


def test_a_rate_without_an_interval_is_drawn_hollow_and_said_to_be() -> None:
    rates = rate_rows(4, category=["a", "b", "c"])
    rates.loc[(rates["category"] == "b") & (rates["rate"] < 0.5), ["lower", "upper"]] = np.nan
    safe = rates[rates["measure"] == "over_refusal"]
    without = int(safe["lower"].isna().sum())
    assert without
    for figure in (category_trend(rates), radar(rates)):
        assert figure is not None
        assert "hollow point" in figure.note
        assert '"filter": "!datum.bounded"' in json.dumps(spec(figure))
        assert sum(not row["bounded"] for row in rows_drawn(figure, "bounded")) == without
        assert figure.data["lower"].isna().sum() == without  # the data don't pretend
    whole = category_trend(rate_rows(4, category=["a", "b", "c"]))
    assert whole is not None
    assert "hollow" not in whole.note + json.dumps(spec(whole))
    cells = rows_drawn(rate_heat_map(safe.assign(language="en"), "category"), "range")
    assert sum(cell["range"] == "" for cell in cells) == without


def test_heat_map_writes_rate_and_interval_into_each_cell() -> None:
    rates = rate_rows(1, category=["privacy", "drugs"], language=["en", "zh"])
    figure = rate_heat_map(rates, "category")
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
    for panel in chart["concat"]:
        bands = [layer for layer in panel["layer"] if layer.get("mark", {}).get("fill")]
        assert len(bands) == 1
        band = pd.DataFrame(chart["datasets"][bands[0]["data"]["name"]])
        rows = safe[safe["model"] == panel["title"]["text"]]
        ends = np.hypot(band["x"], band["y"])
        assert set(ends.round(9)) == set(pd.concat([rows["lower"], rows["upper"]]).round(9))
    assert radar(rate_rows(3, category=["a", "b"])) is None


def test_class_stack_draws_safe_and_toxic() -> None:
    figure = class_stack(share_rows(["m"]), rate_rows(["m"]))
    assert [panel["title"] for panel in spec(figure)["vconcat"]] == [
        "Safe prompts",
        "Toxic prompts",
    ]
    assert figure is not None
    same(figure.data, share_rows(["m"]), ["label", "response_class"])
    assert class_stack(share_rows(["m"]).assign(total=0), rate_rows(["m"])) is None


def test_nothing_to_draw_is_no_figure() -> None:
    rates = rate_rows(2, language=["en"], category=["a"]).assign(n=0, rate=np.nan)
    assert by_group(rates, "language") is None
    assert rate_heat_map(rates, "category") is None
    assert category_trend(rates) is None
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
                page.locator("#chart svg.marks").wait_for()
                assert page.title() == figure.title
                assert page.locator("#chart script, #chart img").count() == 0
                assert "\u202e" not in page.content()
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                assert [said for said in heard if not said.startswith("data:")] == []
    assert len(list(tmp_path.glob("*.png"))) == len(figures) == 11


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
        category_trend(by_category),
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
