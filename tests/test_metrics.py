"""The rates in Inspect's results."""

from __future__ import annotations

import math
from typing import Any

import pytest
from inspect_ai.scorer import Metric, SampleScore, Score

from or_eval.scorers import outcome, refusal
from or_eval.scorers.metrics import (
    MOST_GROUPS,
    over_refusal_rate,
    refusal_rate,
    refusal_rate_by_category,
    refusal_rate_by_language,
    toxic_rejection_rate,
    uncertain_share,
    unscored_share,
)
from scored import ANSWER, REFUSAL, eval_outputs
from servers import ScriptedServer, verdict_line


def scored(*rows: tuple[float, dict[str, Any] | None]) -> list[SampleScore]:
    return [
        SampleScore(score=Score(value=value), sample_id=number, sample_metadata=metadata)
        for number, (value, metadata) in enumerate(rows)
    ]


def prompt(label: str, category: str = "privacy", language: str = "en") -> dict[str, Any]:
    return {"label": label, "category": category, "language": language}


MIXED = scored(
    (1.0, prompt("safe", "privacy")),
    (0.0, prompt("safe", "privacy")),
    (0.0, prompt("safe", "violence")),
    (0.0, prompt("safe", "violence", "zh")),
    (1.0, prompt("toxic", "privacy")),
    (1.0, prompt("toxic", "privacy")),
    (0.0, prompt("unlabelled", "other")),
)


def wilson(refused: int, n: int) -> tuple[float, float]:
    """Wilson (1927), at 95 %."""
    z = 1.959963984540054
    p = refused / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return centre - half, centre + half


@pytest.mark.parametrize(
    ("metric", "name", "refused", "n"),
    [
        (refusal_rate(), "refusal_rate", 3, 7),
        (over_refusal_rate(), "over_refusal_rate", 1, 4),
        (toxic_rejection_rate(), "toxic_rejection_rate", 2, 2),
    ],
)
def test_rate_with_wilson_interval(metric: Metric, name: str, refused: int, n: int):
    lower, upper = wilson(refused, n)
    assert metric(MIXED) == pytest.approx(
        {name: refused / n, f"{name}_lower": lower, f"{name}_upper": upper}, abs=1e-9
    )


def test_groups_stay_within_a_label():
    assert refusal_rate_by_category()(MIXED) == {"safe/privacy": 0.5, "safe/violence": 0.0}
    assert list(refusal_rate_by_language()(MIXED)) == ["safe/en", "safe/zh"]
    assert refusal_rate_by_language()(MIXED)["safe/en"] == pytest.approx(1 / 3)


def test_both_labels_of_a_category_are_told_apart():
    rates = refusal_rate_by_category()(
        scored(
            (0.0, prompt("safe", "a")),
            (0.0, prompt("safe", "b")),
            (1.0, prompt("toxic", "a")),
            (1.0, prompt("toxic", "b")),
        )
    )
    assert rates == {"safe/a": 0.0, "safe/b": 0.0, "toxic/a": 1.0, "toxic/b": 1.0}


def test_too_many_groups_are_left_to_the_report():
    rows = [(0.0, prompt("safe", f"c{i:02}")) for i in range(MOST_GROUPS)]
    assert len(refusal_rate_by_category()(scored(*rows))) == MOST_GROUPS
    rows.append((0.0, prompt("safe", "one more")))
    assert refusal_rate_by_category()(scored(*rows)) == {}


def test_logs_of_other_tasks():
    foreign = scored(
        (1.0, None), (0.0, {}), (0.0, {"label": 3, "category": 7}), (1.0, {"label": "C"})
    )
    assert refusal_rate()(foreign)["refusal_rate"] == 0.5
    assert over_refusal_rate()(foreign) == {}
    assert toxic_rejection_rate()(foreign) == {}
    assert refusal_rate_by_category()(foreign) == {
        "unlabelled/7": 0.0,
        "unlabelled/unknown": pytest.approx(2 / 3),
    }
    assert refusal_rate_by_language()(foreign) == {}


@pytest.mark.parametrize(
    "metric",
    [
        refusal_rate(),
        over_refusal_rate(),
        toxic_rejection_rate(),
        refusal_rate_by_category(),
        refusal_rate_by_language(),
        uncertain_share(),
        unscored_share(),
    ],
)
def test_nothing_scored(metric: Metric):
    assert metric([]) == {}


def test_results_of_an_eval(tmp_path):
    outputs = {"s1": REFUSAL, "s2": ANSWER, "s3": "", "t1": REFUSAL}
    log = eval_outputs(
        outputs,
        refusal(),
        tmp_path,
        metadata={
            "s1": prompt("safe", "privacy"),
            "s2": prompt("safe", "violence"),
            "s3": prompt("safe", "violence"),
            "t1": prompt("toxic"),
        },
    )
    [result] = log.results.scores
    assert (result.scored_samples, result.unscored_samples) == (3, 1)
    values = {name: metric.value for name, metric in result.metrics.items()}
    assert list(values) == [
        "refusal_rate",
        "refusal_rate_lower",
        "refusal_rate_upper",
        "over_refusal_rate",
        "over_refusal_rate_lower",
        "over_refusal_rate_upper",
        "toxic_rejection_rate",
        "toxic_rejection_rate_lower",
        "toxic_rejection_rate_upper",
        "safe/privacy",
        "safe/violence",
    ]
    assert values["over_refusal_rate"] == 0.5
    assert values["toxic_rejection_rate"] == 1.0
    assert result.metrics["safe/privacy"].group == "refusal_rate_by_category"


def test_shares_that_could_change_a_rate_count_every_response(tmp_path):
    # The judge takes all for answers, so that a refusal certain to the rules is in dispute.
    outputs = {"s1": REFUSAL, "s2": ANSWER, "s3": "", "s4": REFUSAL, "t1": ANSWER, "t2": " "}
    with ScriptedServer(lambda request: verdict_line(request, "direct_answer")) as server:
        log = eval_outputs(
            outputs,
            [refusal(fusion="both"), outcome()],
            tmp_path,
            metadata={id: prompt("safe" if id[0] == "s" else "toxic") for id in outputs},
            epochs=2,
            model_roles={"grader": server.model()},
        )
    shares = {name: metric.value for name, metric in log.results.scores[1].metrics.items()}
    assert shares == {
        "safe_uncertain": 2 / 4,
        "toxic_uncertain": 0.0,
        "safe_unscored": 1 / 4,
        "toxic_unscored": 1 / 2,
    }


def test_all_unscored_log_has_no_numbers_that_look_right(tmp_path):
    log = eval_outputs({"a": "", "b": " "}, refusal(), tmp_path)
    [result] = log.results.scores
    assert (result.scored_samples, result.unscored_samples) == (0, 2)
    assert "over_refusal_rate" in result.metrics
    assert all(math.isnan(metric.value) for metric in result.metrics.values())
