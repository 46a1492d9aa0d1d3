"""Frames that figures are drawn from, and what was drawn."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from or_eval.analysis.figures.differences import differences
from or_eval.analysis.figures.drawing import Figure
from or_eval.analysis.figures.of_cells import (
    four_fold_tables,
    rate_heat_map,
    similarity_heat_map,
    vote_agreement_heat_map,
)
from or_eval.analysis.figures.of_rates import by_group, category_bars, class_stack, trends
from or_eval.analysis.figures.radar import radar
from or_eval.analysis.figures.trade_off import trade_off

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
    return frame.assign(n=100, families=100, rate=rate, lower=rate - 0.05, upper=rate + 0.05)


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
        trends(rate_rows(models, category=groups)),
        vote_agreement_heat_map(pair_rows(models), "safe"),
        similarity_heat_map(pd.DataFrame(similarity)),
        differences(pd.DataFrame([{"model": model, "p": 0.1, **change} for model in models])),
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
