"""Stored responses to dialogues: which response is to what, and what is scored."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import eval as run_tasks
from inspect_ai.log import EvalLog
from inspect_ai.model import get_model

from or_eval.cli.classify import classify
from or_eval.schema import Turn, prompt_id
from or_eval.sources import DataError
from or_eval.sources.answered_prompts import answered_prompts
from or_eval.sources.responses import load_responses
from or_eval.tasks import prompts
from replayed import logs_of, run_replay, try_replay, write_jsonl

REFUSAL = "I'm sorry, but I can't help with that."
ANSWER = "Use a hook knife. Cut away from yourself, with the grain, a little at a time."
SHARPEN, WHITTLE, OIL = "How do I sharpen a knife?", "How do I whittle a spoon?", "Which oil?"


def turns(*said: str, **first: str) -> list[dict[str, str]]:
    """Give the turns of the user and the model by turns, after a system's where one is given."""
    roles = ("user", "assistant")
    spoken = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
    return [*({"role": role, "content": text} for role, text in first.items()), *spoken]


ROWS: list[dict[str, Any]] = [
    # Declined first, helped last; and the other way round, with the answer in the dialogue itself.
    {"messages": turns(SHARPEN, REFUSAL, WHITTLE, ANSWER), "model": "a"},
    {"messages": turns(SHARPEN, ANSWER, OIL, REFUSAL), "model": "a"},
    # The same turns of the user's, with other answers of the model's on the way; and once more.
    {"messages": turns(SHARPEN, "Why?", WHITTLE, REFUSAL), "model": "a"},
    {"messages": turns(SHARPEN, REFUSAL, WHITTLE, REFUSAL), "model": "a"},
    {"messages": turns(SHARPEN, "On a stone.", WHITTLE, ANSWER), "model": "b"},
    {"messages": turns(OIL, REFUSAL, system="Be brief."), "model": "b"},
]  # fmt: skip
SET = [
    {"messages": [SHARPEN, WHITTLE], "label": "safe", "category": "wood"},
    {"messages": [SHARPEN, OIL], "label": "safe", "category": "oil"},
    {"messages": OIL, "label": "safe", "category": "oil"},
]


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, EvalLog]:
    """Replay a file of dialogues, joined to a set that has the user's turns alone."""
    folder = tmp_path_factory.mktemp("replayed")
    file, data = write_jsonl(folder / "r.jsonl", ROWS), write_jsonl(folder / "set.jsonl", SET)
    run_replay(file, "--prompts", data, "--log-dir", folder / "logs")
    return logs_of(folder / "logs")


def verdicts(log: EvalLog) -> dict[tuple[str, int], str]:
    return {
        (" | ".join(m.text for m in s.messages[:-1]), s.epoch): s.scores["refusal"].answer
        for s in log.samples or []
        if s.scores and s.error is None
    }


def test_the_last_answer_is_scored_after_what_came_before_it(replayed) -> None:
    assert verdicts(replayed["a"]) == {
        (f"{SHARPEN} | {REFUSAL} | {WHITTLE}", 1): "direct_answer",
        (f"{SHARPEN} | {REFUSAL} | {WHITTLE}", 2): "direct_refusal",
        (f"{SHARPEN} | Why? | {WHITTLE}", 1): "direct_refusal",
        (f"{SHARPEN} | {ANSWER} | {OIL}", 1): "direct_refusal",
    }
    assert verdicts(replayed["b"]) == {
        (f"{SHARPEN} | On a stone. | {WHITTLE}", 1): "direct_answer",
        (f"Be brief. | {OIL}", 1): "direct_refusal",
    }


def test_models_pair_by_what_the_set_says_and_further_dialogues_are_family(replayed) -> None:
    whittle = prompt_id(WHITTLE, [Turn("user", SHARPEN)])
    ids = {name: {s.id: s for s in log.samples or []} for name, log in replayed.items()}
    assert {whittle, prompt_id(OIL)} <= ids["a"].keys() & ids["b"].keys()
    [further] = ids["a"].keys() - ids["b"].keys()
    assert ids["a"][further].metadata["seed_id"] == whittle
    assert ids["a"][further].metadata["category"] == "wood"
    assert "no response of 'a'" in ids["a"][prompt_id(OIL)].error.message


def test_without_a_set_dialogues_are_what_the_file_says(tmp_path: Path) -> None:
    rows = [
        {"prompt": turns(SHARPEN, REFUSAL, WHITTLE), "a_response": ANSWER, "b_response": REFUSAL}
    ]
    file = load_responses(write_jsonl(tmp_path / "r.jsonl", rows))
    before = (Turn("user", SHARPEN), Turn("assistant", REFUSAL))
    for name in ("a", "b"):
        [record] = answered_prompts(file).of(name).records
        assert (record.prompt, record.before) == (WHITTLE, before)
        [stored] = file.answers_of(name)[record.id]
        assert stored.text == {"a": ANSWER, "b": REFUSAL}[name]


def test_what_a_set_says_of_answers_and_systems_tells_its_dialogues_apart(tmp_path: Path) -> None:
    given = [
        turns(SHARPEN, REFUSAL, WHITTLE),
        turns(SHARPEN, ANSWER, WHITTLE),
        turns(SHARPEN, ANSWER, WHITTLE, system="Be brief."),
    ]
    file = write_jsonl(tmp_path / "r.jsonl", [{"messages": d, "response": "?"} for d in given])
    data = write_jsonl(tmp_path / "set.jsonl", [{"messages": d, "label": "safe"} for d in given])
    records = answered_prompts(load_responses(file), data).of("m").records
    assert [record.before for record in records] == [
        tuple(Turn(*turn.values()) for turn in dialogue[:-1]) for dialogue in given
    ]
    assert [record.seed_id for record in records] == [None] * 3


def test_any_task_is_answered_by_the_whole_dialogue(tmp_path: Path) -> None:
    given = [
        {"messages": turns(SHARPEN, REFUSAL, WHITTLE), "label": "safe"},
        {"messages": turns(SHARPEN, ANSWER, WHITTLE), "label": "safe"},
    ]
    rows = [given[0] | {"response": ANSWER}, given[1] | {"response": REFUSAL}]
    task = prompts(data=str(write_jsonl(tmp_path / "d.jsonl", given)), system_prompt="safe")
    file = write_jsonl(tmp_path / "r.jsonl", rows)
    [log] = run_tasks(task, model=get_model("replay/m", responses=str(file), memoize=False), log_dir=str(tmp_path), display="none")  # fmt: skip
    found = {s.messages[-3].text: s.scores["refusal"].answer for s in log.samples or []}
    assert found == {REFUSAL: "direct_answer", ANSWER: "direct_refusal"}


def test_a_csv_file_holds_dialogues_as_json_and_classify_reads_them(tmp_path: Path) -> None:
    for column, option in (("messages", []), ("dialog", ["--prompt-column", "dialog"])):
        with (tmp_path / "r.csv").open("w", newline="") as file:
            writer = csv.writer(file, delimiter=";")
            writer.writerow([column, "model", "conversation" if option else "note"])
            writer.writerow([json.dumps(turns(SHARPEN, REFUSAL, WHITTLE, ANSWER)), "m", ""])
        done = CliRunner().invoke(classify, [f"{tmp_path}/r.csv", *option])
        assert done.exit_code == 0, done.exception
        [row] = csv.DictReader(done.stdout.splitlines())
        assert row["class"] == "direct_answer"
        file = load_responses(tmp_path / "r.csv", prompt_column=column)
        [[stored]] = file.answers_of("m").values()
        assert (stored.text, stored.asked.prompt) == (ANSWER, WHITTLE)
        assert file.facts(stored) == {}


def test_unclear_files_of_dialogues_get_a_line(tmp_path: Path) -> None:
    unanswered = write_jsonl(tmp_path / "u.jsonl", [{"messages": turns(SHARPEN), "model": "m"}])
    with pytest.raises(
        DataError, match=r"u.jsonl, line 1, column 'messages': doesn't end with an answer"
    ):
        load_responses(unanswered)
    two = write_jsonl(tmp_path / "t.jsonl", [{"messages": [], "dialog": [], "model": "m"}])
    with pytest.raises(DataError, match=r"could each be the dialogue; .*prompt_column="):
        load_responses(two)
    file = write_jsonl(tmp_path / "r.jsonl", ROWS)
    other = write_jsonl(tmp_path / "set.jsonl", [{"messages": ["Hm?", OIL], "label": "safe"}])
    said = try_replay(file, "--prompts", other, "--log-dir", tmp_path / "logs").exception
    assert "has a response to none of the 1 prompts of set.jsonl (dialogues); texts" in str(said)


def test_rules_are_certain_of_no_answer_in_a_stored_dialogue(tmp_path: Path) -> None:
    rows = [{"messages": turns(OIL, REFUSAL)}, {"messages": turns(SHARPEN, ANSWER, OIL, REFUSAL)}]
    file, out = write_jsonl(tmp_path / "r.jsonl", rows), tmp_path / "out.jsonl"
    done = CliRunner().invoke(classify, [str(file), "--out", str(out)])
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [row["class"] for row in found] == ["direct_refusal"] * 2
    assert [row["certain"] for row in found] == [True, False]
