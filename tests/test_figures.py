"""Figures: what each draws from a frame, and what is saved."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from figure_frames import (
    HOSTILE,
    every_figure,
    pair_rows,
    rate_rows,
    rows_drawn,
    same,
    share_rows,
    spec,
)
from or_eval.analysis.figures.drawing import MOST_COLOURS
from or_eval.analysis.figures.of_cells import (
    four_fold_tables,
    label_confusion,
    rate_heat_map,
    vote_agreement_heat_map,
)
from or_eval.analysis.figures.of_rates import by_group, class_stack
from or_eval.analysis.figures.radar import radar
from or_eval.analysis.figures.saving import save_figure
from or_eval.analysis.label_agreement import label_agreement
from pages import launched, opened


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
    assert "Uncorrected" in plain.note
    assert corrected is not None
    assert corrected.note.endswith("Corrected by human labels or an audit of a sample.")
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


@pytest.mark.parametrize("models", [1, 3, 12])
def test_groups_show_intervals_as_dots_or_in_cells_of_many_models(models: int) -> None:
    groups = ["en", "zh", "zh+en"]
    for column in ("language", "method", "category"):
        rates = rate_rows(models, **{column: groups})
        figure = by_group(rates, column)
        assert bool(rows_drawn(figure, "fill")) == (models > MOST_COLOURS)
        assert figure is not None
        safe = rates[rates["measure"] == "over_refusal"]
        same(figure.data, safe, ["model", column])
        drawn = pd.DataFrame(rows_drawn(figure, "lower"))
        assert len(drawn) == models * 3
        same(drawn[["model", column, "rate", "lower", "upper"]], safe, ["model", column])


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
    few = rates.drop(columns="model").assign(families=[5 if at < 4 else 6 for at in rates.index])
    grey = {
        cell["pale"]: cell["fill"] for cell in rows_drawn(rate_heat_map(few, "category"), "fill")
    }
    assert grey[True] == "#d9d9d9" != grey[False]


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
            page_file, drawing, *_ = save_figure(figure, tmp_path, ("html", "svg"))
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
    assert len(list(tmp_path.glob("*.svg"))) == len(figures) == 14
