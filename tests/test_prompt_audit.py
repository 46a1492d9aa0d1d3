"""Are safe prompts safe? Rates by what people say of prompts, against numbers worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from made_logs import made_log, made_sample
from or_eval.analysis.corrections import corrections
from or_eval.analysis.material import Material
from or_eval.analysis.prompt_audit import labels_by_prompt, prompt_audit, read_prompt_labels
from or_eval.analysis.report.contents import ALSO
from or_eval.analysis.report.model_tables import model_tables
from or_eval.analysis.report.sentences import answers
from or_eval.analysis.responses import read_logs, with_families
from or_eval.sources import DataError


def responses(refused: int, of: int = 100) -> pd.DataFrame:
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(of)], "model": "m", "label": "safe"})
    frame["refused"] = pd.array([i < refused for i in range(of)], dtype="boolean")
    same = {"decided_by": "rules", "certain": True, "error": None, "epoch": 1}
    return with_families(frame.assign(**same, seed_id=None, pair_id=None))


def audit(said: dict[str, str], chance: float = 1.0) -> pd.DataFrame:
    frame = pd.DataFrame({"harm": pd.Series(said)})
    return frame.assign(consensus="all say harmless", chance=chance)


def corrected(frame: pd.DataFrame, said: pd.DataFrame, **more: Any) -> dict[str, Any]:
    prompts = frame.set_index("id")
    return dict(prompt_audit(frame, prompts, said, **more).corrected.iloc[0])


def test_a_rate_over_harmless_prompts_is_that_of_the_sample_by_verdict() -> None:
    # Twenty of a hundred are refused; of four refused ones asked about two are harmful, of sixteen
    # answered ones none: 20 * 2/4 refused of 20 * 2/4 + 80 harmless ones.
    said = {f"p{i}": "harmful" if i < 2 else "harmless" for i in (*range(4), *range(20, 36))}
    row = corrected(responses(20), audit(said, 0.2))
    assert row["as_labelled"] == 0.2
    assert row["rate"] == pytest.approx(10 / 90)
    assert row["right"] == pytest.approx(0.9)
    assert row["lower"] < 10 / 90 < row["upper"]
    of_more = audit({f"p{i}": "harmful" if i < 10 else "harmless" for i in range(100)})
    sure = corrected(responses(20), of_more)
    assert sure["rate"] == pytest.approx(10 / 90)
    assert sure["upper"] - sure["lower"] < row["upper"] - row["lower"]


def test_prompts_that_were_likelier_to_be_asked_about_count_less() -> None:
    said = audit({"p0": "harmful", "p1": "harmless", "p20": "harmless"})
    said["chance"] = [0.5, 0.1, 0.5]
    row = corrected(responses(20), said)
    # Of the refused, 10 of 12 parts are harmless.
    share = 0.2 * 10 / 12
    assert row["rate"] == pytest.approx(share / (share + 0.8))


def test_errors_of_verdicts_and_of_prompts_labels_are_both_corrected() -> None:
    frame = responses(20)
    truth = pd.Series([float(i < 20 or 20 <= i < 28) for i in range(100)])
    harmful = {*range(10), *range(90, 100)}
    said = audit({f"p{i}": "harmful" if i in harmful else "harmless" for i in range(100)})
    row = corrected(frame, said, found=corrections(frame, truth))
    # 28 are refused. A tenth of those that verdicts say are answered is refused, and 7/8 of these
    # are harmless: 0.1 * 1/2 + 0.9 * x = 7/8, where x of the really answered ones are.
    x = (7 / 8 - 0.1 / 2) / 0.9
    assert row["rate"] == pytest.approx(0.28 / 2 / (0.28 / 2 + 0.72 * x))


def test_toxic_prompts_are_right_where_people_call_them_harmful() -> None:
    frame = responses(60).assign(label="toxic")
    said = audit({f"p{i}": "harmful" if i < 50 else "harmless" for i in range(100)})
    row = corrected(frame, said)
    assert row["measure"] == "toxic_rejection"
    assert row["rate"] == pytest.approx(1.0)


def test_without_verdicts_labels_or_audited_refusals_there_is_less_to_tell() -> None:
    said = audit({f"p{i}": "harmless" for i in range(50, 100)})
    frame = responses(20)
    assert corrected(frame, said)["rate"] == pytest.approx(0.2)
    assert corrected(frame, said)["lower"] < 0.1, "no refused prompt was asked about"
    empty = corrected(frame.assign(refused=pd.array([pd.NA] * 100, dtype="boolean")), said)
    assert np.isnan(empty["rate"])
    none = frame.assign(label="unlabelled")
    assert prompt_audit(none, none.set_index("id"), said).corrected.empty
    assert np.isnan(corrected(frame, audit({}))["rate"])


def test_what_most_say_makes_the_consensus(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    words = {"h": "harmless", "x": "harmful", "u": "unclear", "-": ""}
    votes = {"hhh": "harmless", "hhx": "harmless", "hx-": "", "hxu": "", "xxu": "harmful"}
    rows = [
        {
            "id": f"p{i}",
            "harm": harm,
            **{f"by {n}": words[v] for n, v in zip("abc", said, strict=True)},
        }
        for i, (said, harm) in enumerate(votes.items())
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_prompt_labels(path)
    assert list(found["consensus"]) == [
        "all say harmless",
        "most say harmless",
        "split",
        "most say not",
        "all say not",
    ]
    assert list(found["harm"].isna()) == [False, False, True, True, False]


def test_labels_are_joined_by_id_or_text_and_none_is_an_error() -> None:
    prompts = pd.DataFrame({"prompt": ["one", "two"]}, index=["a", "b"])
    said = pd.DataFrame({"id": ["a", None], "prompt": [None, "two "], "harm": "harmless"})
    said["prompt"] = said["prompt"].str.strip()
    assert list(labels_by_prompt(said, prompts).index) == ["a", "b"]
    with pytest.raises(DataError, match="none matches a prompt in the logs"):
        labels_by_prompt(said.assign(id="c", prompt="three"), prompts)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "a", "harm": "fine"}', "line 2, column 'harm': 'fine' isn't one of harmless"),
        ('{"id": "a", "by x": "=1+1"}', "line 2, column 'by x': '=1\\+1' isn't one of"),
        ('{"id": "a", "harm": "harmful", "probability": 2}', "'2' isn't a probability"),
        ('{"id": "a\\u0000", "harm": "harmful"}', "contains a NUL"),
    ],
)
def test_a_row_changed_by_hand_is_told(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": "b", "harm": "harmless"}\n' + line + "\n")
    with pytest.raises(DataError, match=message):
        read_prompt_labels(path)


def test_the_report_tells_both_rates(tmp_path: Path) -> None:
    samples = [made_sample(f"p{i}", float(i < 20), prompt=f"Question {i}?") for i in range(60)]
    made_log(tmp_path / "m.eval", "m", samples)
    read = read_logs(tmp_path)
    rows = [
        {"id": None, "prompt": f"Question {i}?", "harm": "harmless" if i % 4 else "harmful"}
        for i in range(60)
    ]
    said = pd.DataFrame(rows).assign(consensus=lambda f: "all say " + f["harm"], chance=1.0)
    found = Material(read, audit=labels_by_prompt(said, read.prompts))
    sentences = answers(found)[ALSO]
    assert any("75.0 % (" in s and ") are labelled harmless" in s for s in sentences)
    tables = {table.name: table.frame for table in model_tables(found)}
    row = tables["corrected-for-labels"].iloc[0]
    assert (row["as_labelled"], row["rate"]) == (pytest.approx(1 / 3), pytest.approx(15 / 45))
    by_consensus = tables["rates-by-consensus"].set_index("consensus")["rate"]
    assert by_consensus["all say harmless"] == pytest.approx(15 / 45)


def asked(refusals: list[int], epochs: int) -> pd.DataFrame:
    """Make responses to prompts that were refused so often of so many times."""
    frame = pd.concat([responses(0, len(refusals)).assign(epoch=at) for at in range(epochs)])
    frame = frame.reset_index(drop=True)
    frame["refused"] = pd.array(
        [
            epoch < refusals[int(key[1:])]
            for key, epoch in zip(frame["id"], frame["epoch"], strict=True)
        ],
        dtype="boolean",
    )
    return frame


def by_id(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop_duplicates("id").set_index("id")


def test_a_prompt_refused_in_part_counts_in_part_for_either_verdict() -> None:
    # Twenty prompts are refused twice of five times, and half of these are harmful; eighty never.
    frame = asked([2] * 20 + [0] * 80, 5)
    said = audit({f"p{i}": "harmful" if i < 10 else "harmless" for i in range(100)})
    row = dict(prompt_audit(frame, by_id(frame), said).corrected.iloc[0])
    assert row["as_labelled"] == pytest.approx(0.08)
    assert row["right"] == pytest.approx(0.9)
    assert row["rate"] == pytest.approx(10 * 0.4 / 90)
    assert row["lower"] < row["rate"] < row["upper"]


@pytest.mark.parametrize("epochs", [2, 5])
def test_the_rate_over_harmless_prompts_covers_with_several_epochs(epochs: int) -> None:
    """Prompts split by the majority of their responses held the rate in 18 of 100 runs of five."""
    random, held = np.random.default_rng(5), 0
    for _ in range(40):
        harmless = random.random(400) > 1 / 7
        refused = random.binomial(epochs, np.where(harmless, 0.3, 0.8))
        frame = asked(refused.tolist(), epochs)
        of = random.choice(400, 150, replace=False)
        said = audit({f"p{i}": "harmless" if harmless[i] else "harmful" for i in of})
        row = prompt_audit(frame, by_id(frame), said).corrected.iloc[0]
        held += row["lower"] <= 0.3 <= row["upper"]
    assert held >= 35
