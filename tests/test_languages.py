"""Every language's own cases: refusals of each class, and answers that nearly look like them."""

import json
import tomllib
from pathlib import Path

import pytest

from or_eval.schema import ResponseClass
from or_eval.scorers.rules import classify_response
from or_eval.scorers.rules.language_pack import language_codes, language_pack

CASES = Path(__file__).parent / "languages"
FEWEST_CASES = 30


def cases_of(code: str) -> list[dict[str, str]]:
    lines = (CASES / f"{code}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def test_each_language_has_a_file_of_cases() -> None:
    assert list(language_codes()) == sorted(file.stem for file in CASES.glob("*.jsonl"))


@pytest.mark.parametrize("code", language_codes())
def test_language_has_cases_of_every_kind(code: str) -> None:
    cases = cases_of(code)
    assert len(cases) >= FEWEST_CASES
    labels = [case["label"] for case in cases]
    for label in ResponseClass:
        assert labels.count(label) >= 3, f"{code} has too few cases of {label}"
    assert labels.count(ResponseClass.DIRECT_ANSWER) >= FEWEST_CASES // 3
    assert len({case["response"] for case in cases}) == len(cases)


@pytest.mark.parametrize("code", language_codes())
def test_cases_are_read_right(code: str) -> None:
    wrong, certain_wrong = [], []
    cases = cases_of(code)
    for case in cases:
        verdict = classify_response(case["response"], prompt=case.get("prompt"))
        if verdict.label != case["label"]:
            line = (
                f"{verdict.label} ({verdict.certain=}) for {case['label']}: {case['response'][:90]}"
            )
            wrong.append(line)
            if verdict.certain and verdict.refused != ResponseClass(case["label"]).refused:
                certain_wrong.append(line)
    assert not certain_wrong, "certain and wrong:\n" + "\n".join(certain_wrong)
    assert len(wrong) <= 0.05 * len(cases), f"{code}: {len(wrong)}/{len(cases)}\n" + "\n".join(
        wrong
    )


@pytest.mark.parametrize("code", language_codes())
def test_language_of_cases_is_detected(code: str) -> None:
    wrong = []
    for case in cases_of(code):
        detected = classify_response(case["response"], prompt=case.get("prompt")).language
        if detected is not None and detected.split("+")[0] != case.get("language", code):
            wrong.append((detected, case["response"][:90]))
    # A short line that quotes another language, or is one word.
    assert len(wrong) <= max(1, 0.01 * len(cases_of(code))), wrong


@pytest.mark.parametrize("code", language_codes())
def test_we_and_would_decline_only_where_they_refuse_the_request(code: str) -> None:
    file = Path(__file__).parent / "data" / "we_and_would.toml"
    texts = tomllib.loads(file.read_text("utf-8"))[code]
    for refused, kind in ((False, "answers"), (True, "refusals")):
        read = {text: classify_response(text, language=code).refused for text in texts[kind]}
        assert [text for text in read if read[text] is not refused] == []


def test_packs_name_themselves() -> None:
    assert {language_pack(code).name for code in language_codes()} >= {"English", "Chinese", "Thai"}
