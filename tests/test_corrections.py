"""Rates and comparisons corrected by labels or an audit: against ppi-python, by hand, by trial.

Figures "of ppi-python" (0.2.3) were computed with it once, so that the tests don't need it.
"""

import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from inspect_ai import score
from inspect_ai.log import write_eval_log
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model
from scipy.stats import betabinom, hypergeom

from made_responses import responses
from or_eval.analysis.comparisons import compare_models
from or_eval.analysis.contrasts import contrasts
from or_eval.analysis.corrections import (
    PRIOR,
    Corrected,
    Corrections,
    audited_truth,
    corrected_mean,
    corrections,
    expected,
)
from or_eval.analysis.discrimination import discrimination
from or_eval.analysis.ranking import ranking
from or_eval.analysis.rates import class_shares, fourfold, rates
from or_eval.analysis.responses import read_logs
from or_eval.intervals import Estimate, rate_interval, wilson
from or_eval.scorers import refusal
from replayed import logs_of, run_replay

TOLERANCE = 1e-6


Y, RULES = np.array([1] * 9 + [0] * 31), np.array([1] * 7 + [0] * 2 + [1] * 3 + [0] * 28)
UNAUDITED = np.array([1] * 44 + [0] * 116)


def sampled(
    said: np.ndarray, truth: np.ndarray, **columns: object
) -> tuple[pd.DataFrame, Corrections]:
    frame = responses(
        [{"id": str(n), "refused": bool(value), **columns} for n, value in enumerate(said)]
    )
    found = corrections(frame, pd.Series(truth, frame.index))
    assert found is not None
    return frame, found


def test_the_corrected_rate_is_that_of_ppi_python() -> None:
    """PPI++ at the power that it finds best for these data: lambda = 0.506666666666667."""
    truth = np.concatenate([Y, np.full(160, np.nan)])
    found = corrected_mean(*sampled(np.concatenate([RULES, UNAUDITED]), truth))
    assert found.estimate.value == pytest.approx(0.2376666666666667, abs=TOLERANCE)
    assert (found.sampled, found.missed, found.false_alarms) == (40, 2, 3)


def test_the_corrected_interval_comes_to_that_of_ppi_python_when_the_sample_is_large() -> None:
    truth = np.repeat([0.0, 0, 1, 1], [1241, 136, 69, 554])
    rules = np.repeat([0, 1, 0, 1], [1241, 136, 69, 554])
    said = np.concatenate([rules, np.repeat([1, 0], [2753, 8000 - 2753])])
    frame, found = sampled(said, np.concatenate([truth, np.full(8000, np.nan)]))
    row = rates(frame, found=found).loc[0]
    assert row["rate"] == pytest.approx(0.31097439, abs=1e-4)
    assert row[["lower", "upper"]].tolist() == pytest.approx((0.29626205, 0.32568672), abs=1e-3)


def test_verdicts_of_kinds_that_were_not_sampled_stand_and_are_counted() -> None:
    said = np.array([1, 1, 1, 1, 0, 0])
    truth = np.array([0, 1, np.nan, np.nan, 0, np.nan])
    frame, found = sampled(said, truth)
    # Half of the four refusals are refusals, none of the answers.
    assert corrected_mean(frame, found).estimate.value == pytest.approx(2 / 6)
    judged = responses([{"id": f"j{n}", "refused": True, "decided_by": "judge"} for n in range(2)])
    both = pd.concat([frame, judged], ignore_index=True)
    found = corrections(both, pd.Series(truth).reindex(both.index))
    assert found is not None
    mean = corrected_mean(both, found)
    assert mean.estimate.value == pytest.approx((2 + 2) / 8)
    assert mean.uncorrected == 2
    assert corrections(both, pd.Series(np.nan, both.index)) is None


def test_a_sample_with_chances_of_its_own_is_weighed_by_them() -> None:
    said, truth = np.ones(8), np.array([1, 0, 0, 0, np.nan, np.nan, np.nan, np.nan])
    frame, _ = sampled(said, truth)
    chance = pd.Series([0.25, 0.75, 0.75, 0.75, *[0.5] * 4], frame.index)
    found = corrections(frame.assign(chance=chance), pd.Series(truth, frame.index))
    assert found is not None
    assert found.share[0] == pytest.approx(4 / (4 + 3 / 0.75))


@pytest.mark.parametrize(("size", "least", "rate"), [(500, 100, 0.1), (500, 50, 0.3)])
def test_corrected_rates_cover_and_are_narrower_than_the_sample_alone(
    size: int, least: int, rate: float
) -> None:
    """Rules that are wrong on one response in ten."""
    random = np.random.default_rng(size + least)
    trials, hits, of_these, width, alone, raw_hits = 100, 0, 0, 0.0, 0.0, 0
    for _ in range(trials):
        real = random.random(size) < rate
        said = np.where(random.random(size) < 0.1, ~real, real)
        frame, found = sampled(said, np.where(np.arange(size) < least, real, np.nan))
        row = rates(frame, found=found).loc[0]
        hits += row["lower"] <= rate <= row["upper"]
        of_these += row["known_lower"] <= real.mean() <= row["known_upper"]
        width += row["upper"] - row["lower"]
        sample = wilson(real[:least].mean(), least)
        alone += sample.upper - sample.lower
        raw_hits += row["raw_lower"] <= rate <= row["raw_upper"]
    assert hits / trials >= 0.92
    assert of_these / trials >= 0.9
    assert width < alone
    if rate == 0.1:
        assert raw_hits / trials < 0.5


def test_bounds_for_these_responses_cover_over_all_samples_of_a_fifth() -> None:
    """Each kind of verdict has few errors: the middle of draws, ties left in, would hold 99.4 %."""
    sizes, refusals, sampled_of = (69, 153, 12, 16), (1, 0, 4, 16), (14, 31, 5, 5)
    said = np.repeat([0, 0, 1, 1], sizes)
    certain = np.repeat([False, True, False, True], sizes)
    frame = responses(
        [
            {"id": str(n), "refused": bool(value), "certain": bool(sure)}
            for n, (value, sure) in enumerate(zip(said, certain, strict=True))
        ]
    )
    starts = np.cumsum([0, *sizes[:-1]])
    covered = 0.0
    for seen in product(*(range(min(pair) + 1) for pair in zip(refusals, sampled_of, strict=True))):
        chance = np.prod(hypergeom.pmf(seen, sizes, refusals, sampled_of))
        if chance == 0:
            continue
        truth = pd.Series(np.nan, frame.index)
        for start, found, size in zip(starts, seen, sampled_of, strict=True):
            truth.iloc[start : start + size] = np.repeat([1.0, 0.0], [found, size - found])
        correction = corrections(frame, truth)
        assert correction is not None
        _, lower, upper = corrected_mean(frame, correction).estimate
        covered += float(chance) * (lower <= sum(refusals) / len(frame) + 1e-9 <= upper + 2e-9)
    assert 0.93 <= covered <= 0.97


def test_differences_and_ranks_are_corrected_as_rates_are() -> None:
    """Rules that miss half of one model's refusals call it the better of two equal ones."""
    rows = []
    truth = []
    for model, missed in (("plain", 0), ("lectures", 40)):
        for n in range(200):
            refuses = n % 5 < 2
            seen = refuses and not (model == "lectures" and n % 2 == 0 and n // 5 < missed)
            rows.append({"id": str(n), "model": model, "refused": seen})
            truth.append(float(refuses) if n % 4 < 2 else np.nan)
    frame = responses(rows)
    assert compare_models(frame).loc[0, "verdict"] == "more than chance"
    assert ranking(frame).set_index("model")["rank"].to_dict() == {"lectures": 1, "plain": 2}
    found = corrections(frame, pd.Series(truth, frame.index))
    row = compare_models(frame, found).loc[0]
    assert row["verdict"] == "may be chance"
    assert abs(row["difference"]) < 0.06
    assert row["rate_a"] - row["rate_b"] == pytest.approx(row["difference"])
    assert set(ranking(frame, "over_refusal", found)["rank"]) == {1}


def test_bounds_are_those_of_the_beta_binomial_distribution_of_what_is_not_sampled() -> None:
    frame = responses([{"id": str(n), "refused": True} for n in range(400)])
    truth = pd.Series([1.0] * 30 + [0.0] * 10 + [np.nan] * 360, frame.index)
    found = corrections(frame, truth)
    assert found is not None
    _, lower, upper = corrected_mean(frame, found).estimate
    left = betabinom.pmf(np.arange(361), 360, 30 + PRIOR, 10 + PRIOR)
    below = np.cumsum(left) - left / 2
    bounds = np.flatnonzero((below >= 0.025) & (below <= 0.975))[[0, -1]]
    assert [lower, upper] == pytest.approx((30 + bounds) / 400, abs=1 / 400)


def test_what_a_sample_leaves_open_on_one_side_counts_on_that_side() -> None:
    """Few errors found leave room for more: bounds lie farther off on one side than on the other."""
    refused = np.repeat([1.0, 0.0], [60, 140])
    means = pd.DataFrame({"a": refused, "b": np.roll(refused, 70)})
    wide, narrow = Estimate(0.3, 0.29, 0.45), Estimate(0.18, 0.17, 0.19)
    known = {"a": Corrected(0.0, wide, 9, 0, 0, 0), "b": Corrected(-0.12, narrow, 9, 0, 0, 0)}
    families = pd.Series(means.index.astype(str), means.index)
    above, below = (
        contrasts(
            means, families, corrected=lambda name, _: known[name], strata=np.full(200, sign)
        ).loc[0]
        for sign in (1, -1)
    )
    assert above["upper"] - above["difference"] > 1.2 * (above["difference"] - above["lower"])
    assert [below["lower"], below["upper"]] == pytest.approx([-above["upper"], -above["lower"]])


def test_classes_cells_and_pairs_are_corrected_as_rates_are() -> None:
    """Of the answers to toxic prompts a third are refusals that the rules missed."""
    rows = [
        {"id": f"{label}{n}", "label": label, "pair_id": f"t{n}", "refused": refused}
        | {"response_class": "direct_refusal" if refused else "direct_answer"}
        for n in range(120)
        for label, refused in (("safe", False), ("toxic", n < 60))
    ]
    frame = responses(rows)
    truth = pd.Series(np.nan, frame.index)
    for label, missed in (("safe", 0), ("toxic", 3)):
        answers = frame.index[(frame["label"] == label) & ~frame["refused"].astype(bool)]
        truth[answers[::2]] = [
            float(n % missed == 0) if missed else 0.0 for n in range(len(answers[::2]))
        ]
    found = corrections(frame, truth)
    assert found is not None
    rate = rates(frame, found=found).set_index("measure").loc["toxic_rejection"]
    assert rate["rate"] == pytest.approx(80 / 120)
    shares = class_shares(frame, found=found).set_index(["label", "response_class"])
    share = shares.loc[("toxic", "direct_refusal")]
    assert share["share"] == pytest.approx(80 / 120)
    assert share["lower"] < rate["lower"] + 0.02
    assert shares.loc["toxic", "share"].sum() == pytest.approx(1)
    [cells] = fourfold(frame, found=found).to_dict("records")
    assert cells["toxic refused"] == pytest.approx(80)
    assert cells["accuracy_lower"] < cells["accuracy"] < cells["accuracy_upper"]
    [pairs] = discrimination(frame, found=found).to_dict("records")
    assert pairs["right"] == pytest.approx(80)
    right = expected(frame, found)[frame["label"] == "toxic"]
    as_if_known = rate_interval(right, range(len(right)))
    assert pairs["lower"] < as_if_known.lower - 0.01
    assert pairs["upper"] > as_if_known.upper + 0.01


def test_audits_of_the_judge_are_such_a_sample() -> None:
    audited = {"audited": True, "judge_class": "direct_answer"}
    rows = [{"id": str(n), "refused": True, **(audited if n < 5 else {})} for n in range(10)]
    rows += [{"id": "unsure", "refused": True, "certain": False, **audited}]
    rows += [{"id": "judged", "refused": True, "decided_by": "judge", **audited}]
    truth = audited_truth(responses(rows))
    assert truth.dropna().tolist() == [0.0] * 5


def _strict_grader() -> Model:
    """Give a judge that calls everything a refusal."""

    def judge(messages: list[ChatMessage], *_: object) -> ModelOutput:
        [key] = set(re.findall(r'"key": "(\w+)"', messages[-1].text)) or {"none"}
        verdict = {"why": "Too strict." * 30, "verdict": "direct_refusal", "key": key}
        output = ModelOutput.from_content("mockllm/judge", json.dumps(verdict))
        output.usage = ModelUsage()
        return output

    return get_model("mockllm/judge", custom_outputs=judge)


def test_an_audit_by_the_real_scorer_corrects_the_rate_of_its_log(tmp_path: Path) -> None:
    answer = "Sure. Here is how to do that thing:\n1. Go there.\n2. Do it.\n3. You are done."
    rows = [
        {
            "model": "m",
            "label": "safe",
            "response": answer,
            "prompt": f"How do I do a thing{'?' * n}?",
        }
        for n in range(24)
    ]
    pd.DataFrame(rows).to_json(tmp_path / "r.jsonl", orient="records", lines=True)
    run_replay(tmp_path / "r.jsonl", "--log-dir", tmp_path, "--no-score")
    [log] = logs_of(tmp_path).values()
    roles = {"grader": _strict_grader()}
    write_eval_log(score(log, refusal(audit=0.5), model_roles=roles, display="none"))
    responses_of_log = read_logs(log.location).responses
    audited = int(responses_of_log["audited"].sum())
    assert 0 < audited < 24
    assert responses_of_log["judge_class"].value_counts().to_dict() == {"direct_refusal": audited}
    found = corrections(responses_of_log, audited_truth(responses_of_log))
    row = rates(responses_of_log, found=found).loc[0]
    assert row[["raw", "rate", "sampled", "missed"]].tolist() == [0, 1, audited, audited]
