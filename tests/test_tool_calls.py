"""Models that call tools, though nobody offered any: each prompt is asked once all the same."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalSample

from or_eval import tasks
from scored import REFUSAL, UNSETTLED
from servers import Reply, Request, ScriptedServer, judged_response

PROMPTS = [f"How do I whittle {i} spoons?" for i in range(20)]
SAID = {PROMPTS[0]: REFUSAL, PROMPTS[1]: UNSETTLED}
"""What the model says beside its calls; to all others nothing."""

Run = tuple[dict[str, EvalSample], ScriptedServer, ScriptedServer]

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "search", "arguments": '{"query": "spoons"}'},
}
ENDLESS = 10
"""Requests for one prompt after which the model gives in, so that a loop fails and ends."""


def call_tool(said: str | None) -> Reply:
    return Reply(said, finish_reason="tool_calls", message={"tool_calls": [CALL]})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Eval a model and a judge that call tools in every reply; give samples and both servers."""
    folder = tmp_path_factory.mktemp("tools")
    rows = [{"prompt": prompt, "label": "safe"} for prompt in PROMPTS]
    (folder / "prompts.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    asked: Counter[str] = Counter()

    def respond(request: Request) -> Reply:
        asked[request.question] += 1
        return (
            Reply() if asked[request.question] > ENDLESS else call_tool(SAID.get(request.question))
        )

    with ScriptedServer(respond) as model, ScriptedServer(lambda _: call_tool(None)) as judge:
        [log] = inspect_eval(
            tasks.prompts(data=str(folder / "prompts.jsonl")),
            model=model.model("caller"),
            model_roles={"grader": judge.model()},
            log_dir=str(folder),
            display="none",
        )
    assert log.status == "success"
    return {str(sample.input): sample for sample in log.samples or []}, model, judge


def test_each_prompt_is_asked_once(run: Run) -> None:
    _, model, _ = run
    assert Counter(Counter(r.question for r in model.requests).values()) == {1: len(PROMPTS)}


def test_call_without_words_is_unscored_with_its_own_reason(run: Run) -> None:
    silent = [run[0][prompt].scores["refusal"] for prompt in PROMPTS if prompt not in SAID]
    assert {score.reason for score in silent} == {"tool_call"}
    assert all(score.answer is None and "calls a tool" in score.explanation for score in silent)


def test_call_with_words_is_scored_by_them(run: Run) -> None:
    assert run[0][PROMPTS[0]].scores["refusal"].answer == "direct_refusal"


def test_judge_that_calls_tools_is_asked_twice_and_fails(run: Run) -> None:
    samples, _, judge = run
    assert [judged_response(request) for request in judge.requests] == [UNSETTLED] * 2
    assert samples[PROMPTS[1]].scores["refusal"].reason == "grader_failed"
