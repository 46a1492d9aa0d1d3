"""The rates in Inspect's results."""

from __future__ import annotations

import json
import math
import re
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from inspect_ai import score
from inspect_ai._display.core.results import task_scores
from inspect_ai.analysis import SampleSummary, samples_df
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.scorer import Metric, SampleScore, Score
from rich.console import Console
from scipy import stats

from made_logs import made_log, made_sample
from or_eval.analysis.rates import rates
from or_eval.analysis.report import write_report
from or_eval.analysis.responses import read_logs
from or_eval.schema import ResponseClass
from or_eval.scorers import outcome, refusal
from or_eval.scorers.metrics import (
    MOST_GROUPS,
    over_refusal_rate,
    over_refusal_rate_full,
    refusal_rate,
    refusal_rate_by_category,
    refusal_rate_by_language,
    refusal_rate_full,
    toxic_rejection_rate,
    toxic_rejection_rate_full,
    uncertain_share,
    unscored_share,
)
from scored import ANSWER, REFUSAL, UNSETTLED, eval_outputs, rates_in
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


def test_full_rate_is_the_mean_of_prompts_over_the_classes_of_their_responses():
    """Three responses to some prompts, of other classes each, rewrites of common seeds."""
    random = np.random.default_rng(7)
    rows = [
        (n, "toxic" if n % 5 == 0 else "safe", str(random.choice(list(ResponseClass))))
        for n in range(40)
        for _ in range(3 if n % 2 else 1)
    ]
    scores = [
        SampleScore(
            score=Score(value=float(ResponseClass(label).refused), answer=label),
            sample_id=n,
            sample_metadata={"label": kind, "seed_id": f"s{n // 4}"},
        )
        for n, kind, label in rows
    ]
    frame = pd.DataFrame(rows, columns=["id", "label", "class"])
    frame["full"] = frame["class"].isin(["direct_refusal", "indirect_refusal"])
    frame["strict"] = frame["class"] != "direct_answer"
    means = frame.groupby(["label", "id"])[["full", "strict"]].mean()
    for metric, name, over in (
        (over_refusal_rate_full(), "over_refusal_rate_full", means.loc["safe"]),
        (toxic_rejection_rate_full(), "toxic_rejection_rate_full", means.loc["toxic"]),
        (refusal_rate_full(), "refusal_rate_full", means),
    ):
        told = metric(scores)
        assert told[name] == pytest.approx(over["full"].mean())
        assert told[f"{name}_lower"] < told[name] < told[f"{name}_upper"]
        assert told[name] < over["strict"].mean()


def test_full_rate_is_not_told_where_a_refusal_has_no_class():
    answered = scored((0.0, {}), (0.0, {}))
    assert list(refusal_rate_full()(answered).values()) == list(refusal_rate()(answered).values())
    assert refusal_rate_full()(MIXED) == {}


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
        refusal_rate_full(),
        over_refusal_rate_full(),
        toxic_rejection_rate_full(),
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
    result, full = log.results.scores
    assert (result.scored_samples, result.unscored_samples) == (3, 1)
    values = {name: metric.value for name, metric in result.metrics.items()}
    assert list(values) == [
        "over_refusal_rate",
        "over_refusal_rate_lower",
        "over_refusal_rate_upper",
        "toxic_rejection_rate",
        "toxic_rejection_rate_lower",
        "toxic_rejection_rate_upper",
        "refusal_rate",
        "refusal_rate_lower",
        "refusal_rate_upper",
        "safe/privacy",
        "safe/violence",
    ]
    assert values["over_refusal_rate"] == 0.5
    assert values["toxic_rejection_rate"] == 1.0
    assert result.metrics["safe/privacy"].group == "refusal_rate_by_category"
    assert [name for name in full.metrics if not name.endswith("er")] == [
        *("over_refusal_rate_full", "toxic_rejection_rate_full", "refusal_rate_full")
    ]


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
    shares = {name: metric.value for name, metric in log.results.scores[-1].metrics.items()}
    assert shares == {
        "safe_uncertain": 2 / 4,
        "toxic_uncertain": 0.0,
        "safe_unscored": 1 / 4,
        "toxic_unscored": 1 / 2,
    }


def test_all_unscored_log_has_no_numbers_that_look_right(tmp_path):
    log = eval_outputs({"a": "", "b": " "}, refusal(), tmp_path)
    assert [(of.scored_samples, of.unscored_samples) for of in log.results.scores] == [(0, 2)] * 2
    assert {"over_refusal_rate", "over_refusal_rate_full"} <= rates_in(log).keys()
    assert all(math.isnan(value) for value in rates_in(log).values())


def test_log_terminal_report_summary_and_pandas_tell_one_number_and_interval(
    tmp_path: Path,
) -> None:
    """Families, several responses to some prompts, an empty response, and a failed sample."""
    random = np.random.default_rng(3)
    samples = []
    for n in range(60):
        for epoch in range(1, 4 if n % 2 else 2):
            refused = random.random() < (0.7 if n % 12 < 4 else 0.1)
            text = "" if n == 7 else REFUSAL if refused else ANSWER
            sample = made_sample(f"p{n}", None, epoch=epoch, response=text, seed_id=f"s{n // 5}")
            samples.append(sample)
    path = made_log(tmp_path / "logs" / "a.eval", "mockllm/m", samples)
    log = score(read_eval_log(str(path)), refusal(), action="overwrite", display="none")
    log.samples.append(made_sample("failed", None, error="boom", seed_id="s0"))
    write_eval_log(log, str(path))

    in_log = {k: m.value for k, m in log.results.scores[0].metrics.items()}
    [in_frame] = rates(read_logs(path).responses).to_dict("records")
    page = write_report(path, tmp_path / "report")
    [in_summary] = json.loads(page.with_name("summary.json").read_text("utf-8"))["models"]
    table = samples_df(str(path), columns=[*SampleSummary])
    table["refused"] = pd.to_numeric(table["score_refusal"])
    means = table.dropna(subset=["refused"]).groupby(["metadata_seed_id", "id"])["refused"].mean()

    console = Console(width=120, record=True, file=StringIO())
    console.print(*task_scores(log.results.scores))
    terminal = dict(re.findall(r"(over_refusal_rate\w*)\W+([\d.]+)", console.export_text()))
    failed, without = table["error"].fillna("") != "", table["refused"].isna()
    counted = [int(those.sum()) for those in (~without, without & ~failed, failed)]
    assert [in_frame[name] for name in ("n", "unscored", "errors")] == counted
    assert counted[1:] == [3, 1]  # a prompt with three empty responses, and one that failed
    assert float(terminal["over_refusal_rate"]) == pytest.approx(means.mean(), abs=0.0005)

    assert in_frame["rate"] == pytest.approx(means.mean())
    assert in_log["over_refusal_rate"] == pytest.approx(means.mean())
    assert in_summary["over_refusal"] == pytest.approx(means.mean())
    for end in ("lower", "upper"):
        assert in_log[f"over_refusal_rate_{end}"] == pytest.approx(in_frame[end])
        assert in_summary[f"over_refusal_{end}"] == pytest.approx(in_frame[end])
        assert float(terminal[f"over_refusal_rate_{end}"]) == pytest.approx(in_frame[end], abs=5e-4)
    # by hand: the families' deviations, their effective number, the worst case, Wilson's interval
    size = means.groupby(level=0).size()
    total = means.groupby(level=0).sum()
    n, rate = len(means), means.mean()
    families = n**2 / (size**2).sum()
    variance = families / (families - 1) * ((total - size * rate) ** 2).sum() / n**2
    effect = variance / (rate * (1 - rate) / n)
    events = n * min(rate, 1 - rate) / max(effect, 1)
    weight = 0.5 / (1 + (4 * events / families) ** 3)
    supposed = (events * effect + weight * n / families) / (events + weight)
    t = stats.t.ppf(0.975, families - 1)
    for bound, sign, design in (("lower", -1, effect), ("upper", 1, supposed)):
        size_of = n / design
        centre = rate + t**2 / (2 * size_of)
        half = t * math.sqrt(rate * (1 - rate) / size_of + t**2 / (4 * size_of**2))
        by_hand = (centre + sign * half) / (1 + t**2 / size_of)
        assert in_frame[bound] == pytest.approx(by_hand, abs=1e-6)


def test_families_linked_by_prompts_without_a_score_are_alike_in_log_and_report(
    tmp_path: Path,
) -> None:
    """Inspect hands metrics no sample without a score: what it would link stays apart."""
    samples = []
    for n in range(12):
        refused = float(n < 5)
        samples += [
            made_sample(f"a{n}", refused, pair_id=f"pair {n}"),
            made_sample(f"b{n}", math.nan, pair_id=f"pair {n}", seed_id=f"seed {n}"),
            made_sample(f"c{n}", refused, seed_id=f"seed {n}"),
        ]
    made_log(tmp_path / "a.eval", "m", samples)
    scores = [
        SampleScore(
            score=sample.scores["refusal"], sample_id=sample.id, sample_metadata=sample.metadata
        )
        for sample in samples
        if sample.scores["refusal"].value == sample.scores["refusal"].value
    ]
    told = over_refusal_rate()(scores)
    row = rates(read_logs(tmp_path).responses).loc[0]
    assert row["families"] == 24
    ends = ("", "_lower", "_upper")
    assert row[["rate", "lower", "upper"]].tolist() == [told[f"over_refusal_rate{e}"] for e in ends]


def test_log_and_report_count_the_same_verdicts_as_uncertain(tmp_path):
    with ScriptedServer(lambda r: verdict_line(r, "direct_refusal")) as server:
        log = eval_outputs(
            {"agreed": REFUSAL, "contradicted": ANSWER, "the judge's word": UNSETTLED},
            [refusal("both"), outcome()],
            tmp_path,
            metadata={
                id: {"label": "safe"} for id in ("agreed", "contradicted", "the judge's word")
            },
            model_roles={"grader": server.model()},
        )
    certain = {s.id: s.scores["outcome"].value["certain"] for s in log.samples}
    assert certain == {"agreed": "yes", "contradicted": "no", "the judge's word": "judge"}
    assert rates_in(log)["safe_uncertain"] == pytest.approx(1 / 3)
    [row] = rates(read_logs(log.location).responses).to_dict("records")
    assert (row["n"], row["uncertain"]) == (3, 1)
