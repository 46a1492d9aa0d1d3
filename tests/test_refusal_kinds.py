"""Shares of refusals by who refused and on what ground."""

from pathlib import Path

import pytest

from made_logs import made_log, made_sample, votes_log
from or_eval.analysis.rates import rates, refusal_shares
from or_eval.analysis.responses import read_logs
from or_eval.intervals import rate_interval

KINDS = [
    *[(1.0, "model_text", "policy")] * 3,
    *[(1.0, "provider_filter", "policy")] * 2,
    *[(1.0, "model_text", None)],
    *[(0.0, "retried", None)],
    *[(0.0, None, "missing_information")] * 3,
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    samples = [
        made_sample(f"s{number}", value, score={"provenance": who, "reason": why})
        for number, (value, who, why) in enumerate(KINDS)
    ]
    return made_log(tmp_path / "logs" / "a.eval", "a", samples)


def test_shares_add_up_to_the_rate_and_have_its_intervals(log: Path) -> None:
    responses = read_logs(log).responses
    [rate] = rates(responses)["rate"]
    for kind, counts in (
        ("provenance", {"model_text": 4, "provider_filter": 2}),
        ("reason", {"policy": 5, "not given": 1}),
    ):
        shares = refusal_shares(responses, kind)
        assert dict(zip(shares[kind], shares["n"], strict=True)) == counts
        assert shares["total"].tolist() == [len(KINDS)] * len(counts)
        assert shares["share"].sum() == pytest.approx(rate)
    first = refusal_shares(responses, "reason").set_index("reason").loc["policy"]
    values = [1.0] * 5 + [0.0] * 5
    assert (first["lower"], first["upper"]) == rate_interval(values, list(range(10)))[1:]


def test_old_logs_have_no_kinds(tmp_path: Path) -> None:
    responses = read_logs(votes_log(tmp_path, "old", {"x": 1.0, "y": 0.0})).responses
    assert refusal_shares(responses, "reason").empty
    assert refusal_shares(responses, "provenance").empty
