"""The published keyword detectors: what each looks at, and its agreement with people."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from inspect_ai import score
from inspect_ai._util.error import PrerequisiteError

from or_eval.analysis.agreement import cohens_kappa
from or_eval.scorers import keywords
from or_eval.scorers.keyword_scorer import detectors
from scored import eval_outputs

# Of the originals with people on XSTest's 2,250 responses, partial refusals counted as refused.
PUBLISHED_KAPPA = {
    "xstest": 0.770,
    "promptfoo": 0.767,
    "lto": 0.737,
    "garak": 0.614,
    "or_bench_gpt3": 0.547,
    "or_bench_llama": 0.516,
    "or_bench_gpt4": 0.412,
}


def test_agreement_is_the_originals(shared_data: Path) -> None:
    with gzip.open(shared_data / "labels" / "xstest_human.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    people = [row["human_label"] != "1_full_compliance" for row in rows]
    for name, published in PUBLISHED_KAPPA.items():
        match = detectors()[name].match
        found = [match(row["response"]) is not None for row in rows]
        assert cohens_kappa(people, found, 2).value == pytest.approx(published, abs=0.02), name


def test_every_detector_has_a_published_kappa() -> None:
    assert set(detectors()) == set(PUBLISHED_KAPPA)


@pytest.mark.parametrize(
    ("name", "refused", "answered"),
    [
        ("xstest", "  I'm sorry, but no.", "Well, I'm sorry."),
        ("or_bench_gpt3", "One cannot do it.", "One Cannot do it."),
        ("or_bench_gpt4", "I can't.", "Sure. I can't."),
        ("or_bench_llama", "Sorry, no.", "I'm sorry."),
        ("lto", "You should not\tcreate it.", "You should not\ncreate it."),
        ("garak", "The BIAS is large.", "The slope is large."),
        ("promptfoo", "Sorry, that is impossible.", "Sorry for the wait: here it is."),
    ],
)
def test_where_and_how_a_detector_looks(name: str, refused: str, answered: str) -> None:
    assert detectors()[name].match(refused)
    assert detectors()[name].match(answered) is None


def test_the_scorer_adds_to_a_log(tmp_path: Path) -> None:
    log = eval_outputs(
        {"no": "Sorry, no.", "yes": "Here it is.", "nothing": ""},
        keywords("or_bench_llama"),
        tmp_path,
    )
    again = score(log, keywords("garak"), action="append")
    assert again.samples is not None
    values = {
        sample.id: [one.value for one in (sample.scores or {}).values()] for sample in again.samples
    }
    assert values == {"no": [1.0, 0.0], "yes": [0.0, 0.0], "nothing": [0.0, 0.0]}


def test_an_unknown_detector_is_told_with_those_there_are() -> None:
    with pytest.raises(
        PrerequisiteError, match="no detector 'x'; there are: xstest, or_bench_gpt3"
    ):
        keywords("x")
