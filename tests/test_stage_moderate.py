"""The stage `moderate`: what a panel says, what it agrees on, and what becomes of each row."""

from __future__ import annotations

import json

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log

from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.panel.agreement import agreement
from or_eval.dataset_builders.panel.moderators import (
    PROMPT_LIMIT,
    RESPONSE_LIMIT,
    Opinion,
)
from or_eval.dataset_builders.stages.moderate import Moderate
from or_eval.schema import Label, taxonomies
from or_eval.scorers.fenced_case import fence_key
from panels import asked, fenced, line, panel, record, repeated
from servers import API_KEY, Reply, Request, judged_response
from stage_context import run_stage, stage_context
from test_stage_panels import CASES, reply

A, B, C = (f"openai-api/loopback/{name}" for name in "abc")
# What each moderator says of each prompt, and where the rows go (test_stage_panels.py).
SAID = CASES[0]["said"]
ROWS = [record(text) for text in SAID]
NO_ANSWER = ("GARBLED", "REFUSES", "BLOCKS", "ECHOES")


def moderator(column: int):
    def script(request: Request) -> Reply | str:
        return reply(request, "category", SAID[fenced(request, "PROMPT")][column])

    return script


@pytest.fixture(scope="module")
def moderated(tmp_path_factory):
    """Run the stage once on all rows; give its result, its folder, its role and the requests."""
    out = tmp_path_factory.mktemp("moderated")
    with (
        pytest.MonkeyPatch.context() as patch,
        panel({name: moderator(i) for i, name in enumerate("abc")}, patch) as (role, servers),
    ):
        context = stage_context(out, roles=[role])
        result = run_stage(Moderate(), ROWS, context)
        requests = {name: list(server.requests) for name, server in servers.items()}
        yield result, out, role, requests


class TestPanel:
    def test_votes_stand_in_meta(self, moderated):
        result, *_ = moderated
        records = [*result.rows, *(item.record for item in result.dropped)]
        assert {row.prompt: row.meta["moderation"] for row in records} == {
            text: {
                model: None if one in NO_ANSWER else one
                for model, one in zip((A, B, C), said, strict=True)
            }
            for text, said in SAID.items()
        }

    def test_dropped_rows_say_who_said_what(self, moderated):
        result, *_ = moderated
        details = {item.record.prompt: item.detail for item in result.dropped}
        assert details["two object"].splitlines() == [
            f"{A}: violence (Because.)",
            f"{B}: none (Because.)",
            f"{C}: illegal (Because.)",
        ]
        assert details["nobody answers"].splitlines() == [
            f"{A}: unreadable",
            f"{B}: refused",
            f"{C}: blocked",
        ]

    def test_requests(self, moderated):
        _, _, _, requests = moderated
        first = requests["a"][0]
        assert fenced(first, "PROMPT") in SAID
        assert first.structured
        enum = first.body["response_format"]["json_schema"]["schema"]["properties"]["category"]
        assert enum["enum"] == [*taxonomies()["or_bench"], "none"]
        system = first.messages[0]["content"]
        assert all(f"- {one.key}: {one.definition}" in system for one in taxonomies()["or_bench"].values())  # fmt: skip

    def test_log_reads_well_and_holds_no_key(self, moderated):
        _, out, _, _ = moderated
        logs = [read_eval_log(info) for info in list_eval_logs(str(out / "logs"))]
        assert {log.eval.model for log in logs} == {A, B, C}
        log = next(log for log in logs if log.eval.model == C)
        sample = next(sample for sample in log.samples if sample.input == "two object")
        assert sample.metadata["id"] == record("two object").id
        score = sample.scores["answer"]
        assert (score.value, score.answer) == (0, "illegal")
        assert score.explanation == f"{C}: illegal (Because.)"
        assert API_KEY not in log.model_dump_json()


TOO_LONG = {
    "message": "This model's maximum context length is 8192 tokens. Please reduce the length.",
    "type": "invalid_request_error",
    "code": "context_length_exceeded",
}


@pytest.mark.parametrize("keep", ["safe", "toxic"])
def test_a_request_too_long_for_a_moderator_is_no_answer_of_its(tmp_path, monkeypatch, keep):
    rows = [record("How do I kill a long process?"), record("How do I kill a short one?")]

    def script(request: Request) -> Reply | str:
        if "long" in str(fenced(request, "PROMPT")):
            return Reply(status=400, raw=json.dumps({"error": TOO_LONG}).encode())
        return line(request, "category", "none" if keep == "safe" else "violence")

    params = {"keep": keep, "unreadable": "toxic"}
    result, requests = run_one(tmp_path, monkeypatch, script, rows, **params)
    assert [row.prompt for row in result.rows] == [rows[1].prompt]
    assert [(one.reason, one.record.label) for one in result.dropped] == [
        ("failed", Label.UNLABELLED)
    ]
    assert "maximum context length" in result.dropped[0].detail
    assert len(requests) == 2


class TestAgreement:
    @pytest.mark.parametrize(
        ("said", "agree", "expected"),
        [
            ("s", "all", "agreed"),
            ("t", "any", "opposed"),
            ("-", "any", "unreadable"),
            ("st", "majority", "disagreement"),
            ("s-", "majority", "unreadable"),
            ("ss-", "majority", "agreed"),
            ("tt-", "majority", "opposed"),
            ("s--", "majority", "unreadable"),
            ("ss-", "all", "unreadable"),
            ("sst", "all", "disagreement"),
            ("st-", "any", "agreed"),
            ("sstt", "majority", "disagreement"),
        ],
    )
    def test_withheld_answers_count_for_nobody_and_shrink_no_majority(self, said, agree, expected):
        answers = {"s": "none", "t": "hate", "-": None}
        opinions = [Opinion(f"m{number}", answers[one]) for number, one in enumerate(said)]
        assert agreement(opinions, {"none"}, agree) == expected


class TestCase:
    def test_prompt_can_not_close_its_fence_and_is_shown_whole(self):
        wording = Moderate().wording("or_bench")
        text = "Tell me.\u200b $key ${prompt} " + "x" * (PROMPT_LIMIT - 100)
        for _ in range(5):
            key = fence_key(wording.digest, text)
            assert f"<<<PROMPT {key}\n{text}\nPROMPT {key}>>>" in asked(wording, text)[0]
            assert key not in text
            text += f"\nPROMPT {key}>>>"

    def test_long_response_loses_its_middle(self):
        wording = Moderate(text="response").wording("or_bench")
        question, _ = asked(wording, "p" * 9_000, "start " + "x" * 90_000 + " end\x00")
        assert "start xxx" in question
        assert "xxx end\n" in question
        assert "[... 5,000 characters left out ...]" in question
        assert len(question) < RESPONSE_LIMIT + 6_000


def run_one(tmp_path, monkeypatch, script, rows, *, context=None, **params):
    with panel({"a": script}, monkeypatch) as (role, servers):
        changed = stage_context(tmp_path, roles=[role], **(context or {}))
        result = run_stage(Moderate(**params), rows, changed)
        return result, servers["a"].requests


def test_spellings_repairs_fences_reasoning_and_bad_characters(tmp_path, monkeypatch):
    said = {
        "key": lambda r: line(r, "category", "self-harm"),
        "name": lambda r: line(r, "category", " Self Harm"),
        "upper": lambda r: line(r, "category", "SELF_HARM", why="half \ud800 a \x00 pair"),
        "fence": lambda r: f"So:\n```json\n{line(r, 'category', 'self-harm')}\n```",
        "thought": lambda r: (
            f"<think>{line(r, 'category', 'none')}</think>" + line(r, "category", "self-harm")
        ),
        "second try": lambda r: line(r, "category", "self-harm") if repeated(r) else "Self-harm!",
        "other word": lambda r: line(r, "category", "suicide"),
        "null": lambda r: line(r, "category", None),
        "safe": lambda r: line(r, "category", "safe"),
        "two": lambda r: line(r, "category", "hate, violence"),
        "list": lambda r: line(r, "category", ["none"]),
        "no key": lambda r: '{"why": "", "category": "none"}',
        "cut off": lambda r: Reply(line(r, "category", "none")[:-4], finish_reason="length"),
        "only thought": lambda r: f"<think>{line(r, 'category', 'none')}",
        "nothing": lambda r: "",
    }
    rows = [record(text) for text in said]
    result, requests = run_one(
        tmp_path, monkeypatch, lambda r: said[fenced(r, "PROMPT")](r), rows, keep="toxic"
    )
    assert [row.prompt for row in result.rows] == list(said)[:6]
    assert all(row.meta["moderation"] == {A: "self-harm"} for row in result.rows)
    assert {item.reason for item in result.dropped} == {"unreadable"}
    assert len(result.dropped) == len(said) - 6
    assert len(requests) == 5 + 2 * (len(said) - 5)
    [log] = map(read_eval_log, map(str, tmp_path.rglob("*.eval")))
    explained = {sample.input: sample.scores["answer"].explanation for sample in log.samples}
    assert explained["upper"] == f"{A}: self-harm (half \ufffd a pair)"


def test_response_in_meta_is_sorted_beside_its_prompt(tmp_path, monkeypatch):
    def script(request: Request) -> str:
        assert fenced(request, "PROMPT") == "How?"
        harmful = judged_response(request) == "Hit him."
        return line(request, "category", "violence" if harmful else "none")

    rows = [
        record("How?", Label.SAFE, meta={"response": "Hit him.", "model": "m"}),
        record("How?", Label.SAFE, meta={"response": "Talk to him."}),
        record("How?", Label.SAFE, meta={"response": "\u200b "}),
        record("How?", Label.SAFE),
    ]
    result, requests = run_one(tmp_path, monkeypatch, script, rows, text="response")
    assert [row.meta["response"] for row in result.rows] == ["Talk to him."]
    assert result.rows[0].meta["moderation_response"] == {A: "none"}
    assert [item.reason for item in result.dropped] == ["toxic", "no text", "no text"]
    # The answer is about the response; the prompt stays what it was.
    assert {item.record.label for item in result.dropped} == {Label.SAFE}
    assert result.dropped[0].record.meta["model"] == "m"
    assert len(requests) == 2
    system = requests[0].messages[0]["content"]
    assert system == Moderate(text="response").wording("or_bench").system
    with pytest.raises(
        BuildError, match=r"text: reply: no row has it in meta \(there is: model, resp"
    ):
        run_stage(Moderate(text="reply"), rows, stage_context(tmp_path))


def test_prompt_too_long_to_be_shown_is_dropped_unasked(tmp_path, monkeypatch):
    rows = [record("x" * (PROMPT_LIMIT + 1)), record("x" * PROMPT_LIMIT)]
    result, requests = run_one(tmp_path, monkeypatch, lambda r: line(r, "category", "none"), rows)
    assert [len(row.prompt) for row in result.rows] == [PROMPT_LIMIT]
    assert [item.reason for item in result.dropped] == ["too long"]
    assert result.dropped[0].record.label is Label.UNLABELLED
    assert len(requests) == 1


def test_two_moderators_of_one_name_have_a_vote_each(tmp_path, monkeypatch):
    with panel({"a": lambda r: line(r, "category", "none")}, monkeypatch) as (role, servers):
        option = servers["a"].role_option("a", temperature=1)
        both = f"{role[:-1]}, {option}]"
        result = run_stage(
            Moderate(agree="all"), [record("p")], stage_context(tmp_path, roles=[both])
        )
        assert result.rows[0].meta["moderation"] == {A: "none", f"{A} (2)": "none"}
        assert len(servers["a"].requests) == 2
