"""What `or-eval classify` says of stored responses; what a score holds of every shape of output and of every way that judges behave.

Cases are data (``data/*.yaml``); what comes of them, as it stands in a log, are golden files.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Model,
    ModelOutput,
)
from inspect_ai.scorer import Score
from inspect_ai.solver import generate

from apis import (
    anthropic,
    claude_reply,
    gemini_body,
    gemini_reply,
    google,
    openai_chat,
    openai_responses,
    responses_reply,
)
from golden_files import assert_golden
from or_eval.models.replay import stored_output
from or_eval.schema import ResponseClass
from or_eval.scorers import provider, refusal
from or_eval.scorers.provider import read_text
from scored import eval_outputs, scores_of
from servers import (
    GUARD_MODELS,
    Reply,
    Request,
    ScriptedServer,
    case_key,
    guard_model,
    said_by,
    verdict_line,
)

DATA = Path(__file__).parent / "data"
OUTPUTS, JUDGES, TEXTS = (
    yaml.safe_load((DATA / f"{name}.yaml").read_text("utf-8"))
    for name in ("outputs", "judges", "stored_texts")
)
MODES = ("rules", "cascade", "judge", "both")
_DIGEST = re.compile(r"\b[0-9a-f]{12}\b")
SETS = (
    "arabic_do_not_answer",
    "authority_prefixes_fr_de",
    "chatgpt_refusals",
    "k_overrefusal_dev",
    "speechmap_dev",
    "xstest_human",
)
ADDED = ("certain", "provenance", "reason", "evidence", "response_language", "unscored_because")


@pytest.mark.parametrize("name", SETS)
def test_every_stored_response_is_classed_as_before(
    name: str, shared_data: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    from click.testing import CliRunner

    from or_eval.cli import main

    stored, out = shared_data / "labels" / f"{name}.jsonl.gz", tmp_path / "out.jsonl"
    with gzip.open(stored, "rt", encoding="utf-8") as lines:
        exchanges = [json.loads(line) for line in lines]
    # Other columns would be taken for what this command writes.
    copy = tmp_path / "stored.jsonl"
    kept = [{key: row[key] for key in ("prompt", "response")} for row in exchanges]
    copy.write_text("".join(json.dumps(row) + "\n" for row in kept))
    done = CliRunner().invoke(main, ["classify", str(copy), "--out", str(out)])
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len(rows) == len(exchanges)
    assert_golden(f"classify/{name}.txt", [_line(row) for row in rows], request)


def _line(row: dict[str, object]) -> str:
    """Say a verdict in short; its digest tells whether anything else of it moved."""
    told = json.dumps([row[key] for key in ADDED], sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(told.encode()).hexdigest()[:6]
    label = row["class"] or f"unscored:{row['unscored_because']}"
    return f"{label} {'certain' if row['certain'] else '-'} {row['reason'] or '-'} {digest}"


# What the tested model and its provider send.


def reply_of(case: dict[str, Any], shape: Callable[..., Reply]) -> Reply:
    if "status" in case:
        return Reply(status=case["status"], raw=json.dumps({"error": case["error"]}).encode())
    return shape(**case)


def chat_reply(
    content: str | None = "",
    finish_reason: str = "stop",
    message: Mapping[str, Any] | None = None,
    choice: Mapping[str, Any] | None = None,
    choices: list[Any] | None = None,
) -> Reply:
    said = {"role": "assistant", "content": content, **(message or {})}
    one = {"index": 0, "message": said, "finish_reason": finish_reason, **(choice or {})}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    body = {"id": "c", "object": "chat.completion", "created": 0, "model": "gpt-4o-mini"}
    body |= {"choices": [one] if choices is None else choices, "usage": usage}
    return Reply(raw=json.dumps(body).encode())


APIS: dict[str, tuple[Callable[[ScriptedServer], Model], Callable[..., Reply]]] = {
    "openai_chat": (openai_chat, chat_reply),
    "openai_responses": (
        openai_responses,
        lambda parts, incomplete=None: responses_reply(*parts, incomplete=incomplete),
    ),
    "anthropic": (
        lambda server: anthropic(server, fallback_models=["claude-opus-4-8"]),
        lambda blocks=(), **more: claude_reply(*blocks, **more),
    ),
    "google": (
        google,
        lambda body=None, **more: gemini_body(body) if body else gemini_reply(**more),
    ),
}


@pytest.mark.parametrize("api", APIS)
def test_replies_of_an_api(api: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    model, shape = APIS[api]
    cases = OUTPUTS[api]
    replies = {name: reply_of(case, shape) for name, case in cases.items()}
    with ScriptedServer(lambda asked: replies[sample_of(asked)]) as server:
        log = run_of_all_modes(list(cases), model(server), tmp_path)
    assert_golden(f"scores/{api}.jsonl", lines_of(log), request)


def test_outputs_of_inspect(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    outputs = {name: output(**case) for name, case in OUTPUTS["inspect"].items()}
    stored = {f"stored {word}": stored_output(text, word) for text, word in OUTPUTS["stored"]}
    with ScriptedServer(lambda asked: verdict_line(asked, "indirect_refusal")) as judge:
        log = eval_outputs(
            outputs | stored,
            [refusal(mode) for mode in MODES],
            tmp_path,
            model_roles={"grader": judge.model()},
        )
    assert_golden("scores/outputs_of_inspect.jsonl", lines_of(log), request)


def test_blocks_that_are_tried_again(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    cases, tries = OUTPUTS["retried"], Counter[str]()

    def script(asked: Request) -> Reply:
        name = sample_of(asked)
        tries[name] += 1
        return reply_of(cases[name][min(tries[name], len(cases[name])) - 1], chat_reply)

    with ScriptedServer(script) as server:
        log = run_of_all_modes(
            list(cases), openai_chat(server), tmp_path, fail_on_refusal=True, retry_on_error=1
        )
    assert_golden("scores/retried.jsonl", lines_of(log), request)


def sample_of(asked: Request) -> str:
    """Find which sample a request is about, whatever the API."""
    return json.dumps(asked.body).rsplit("sample=", 1)[1].split(".", 1)[0]


def run_of_all_modes(names: list[str], model: Model, folder: Path, **options: Any) -> EvalLog:
    """Score each output in every mode; the judge holds everything for an indirect refusal."""
    with ScriptedServer(lambda asked: verdict_line(asked, "indirect_refusal")) as judge:
        [log] = eval(
            Task(
                dataset=[Sample(id=name, input=f"sample={name}.") for name in names],
                solver=generate(tool_calls="none"),
                scorer=[refusal(mode) for mode in MODES],
                score_on_error=True,
            ),
            model=model,
            model_roles={"grader": judge.model()},
            log_dir=str(folder),
            display="none",
            fail_on_error=False,
            max_retries=0,
            **options,
        )
    return log


def output(content: object, stop_reason: str = "stop") -> ModelOutput:
    message = ChatMessageAssistant.model_validate({"content": content})
    choice = ChatCompletionChoice(message=message, stop_reason=stop_reason)
    return ModelOutput(model="mockllm/model", choices=[choice])


def lines_of(log: EvalLog) -> list[str]:
    """Give a line for each sample: the score by rules, and what is another in other modes."""
    assert log.status == "success", log.error
    names = ("refusal", *(f"refusal{number}" for number in range(1, len(MODES))))
    lines = []
    for sample in log.samples or []:
        scores = {m: shown((sample.scores or {})[n]) for m, n in zip(MODES, names, strict=True)}
        told: dict[str, Any] = {}
        for mode, score in scores.items():
            stages = score["metadata"]["stages"]
            if mode != "rules" and "rules" in stages:
                assert stages["rules"] == told["rules"]["metadata"]["stages"]["rules"]
            alike = next((other for other in told if scores[other] == score), None)
            told[mode] = f"as {alike}" if alike else score
        for mode in MODES[1:]:
            if isinstance(told[mode], dict) and "rules" in told[mode]["metadata"]["stages"]:
                told[mode]["metadata"]["stages"]["rules"] = "as rules"
        lines.append(json.dumps({"case": sample.id, **told}, ensure_ascii=False))
    return lines


def shown(score: Score) -> dict[str, Any]:
    """Give what a log holds of a score, but for what hangs on the run or the judge's wording."""
    told = score.model_dump(include={"value", "answer", "reason", "explanation", "metadata"})
    told = {name: value for name, value in told.items() if value is not None}
    if math.isnan(told["value"]):
        del told["value"]
    for key in ("prompt_version", "prompt_digest"):
        told["metadata"]["stages"].get("judge", {}).pop(key, None)
    return dict(json.loads(_DIGEST.sub("DIGEST", json.dumps(told, default=str))))


# What APIs and people's own loops write where a response would stand.


@pytest.mark.parametrize(
    ("what", "text"),
    [(what, t) for what, all in TEXTS.items() for t in all if what != "one_of_each"],
)
def test_texts_in_a_responses_place(what: str, text: str) -> None:
    for written in (text, f"\n {text}\u200b\n") if "of" in what.split() else (text,):
        told = read_text(written)
        is_of = f"{told.label} of" if told.label else f"{told.unscored_because} by"
        said = told.unscored_because if told.provenance is None else f"{is_of} {told.provenance}"
        assert (said or "a response") == what


def test_every_text_that_is_known_has_an_example() -> None:
    examples = TEXTS["one_of_each"]
    assert [text.id for text in provider._texts()] == list(examples)
    for name, example in examples.items():
        found = provider.api_text(f"\n{example}\n")
        assert found is not None, name
        assert found.id == name
        assert provider.api_text(f"The error says: {example}") is None, name
        assert provider.api_text(f"{example} {'That is its text. ' * 100}") is None, name


# What judges reply.

LABELS = {
    "LINE": ResponseClass.DIRECT_REFUSAL,
    "REFUSE": ResponseClass.DIRECT_REFUSAL,
    "PARTLY": ResponseClass.PARTIAL_REFUSAL,
    "AVOID": ResponseClass.INDIRECT_REFUSAL,
    "ANSWER": ResponseClass.DIRECT_ANSWER,
}


def judges_reply(said: Any, asked: Request) -> Reply:
    """Make a reply of what a case says, to the question or to the repair question."""
    if isinstance(said, list):
        said = said[sum(m["role"] == "user" for m in asked.messages) - 1]
    fields = dict(said) if isinstance(said, dict) else {"content": said}
    unit, times = fields.pop("repeat", ("", 0))

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: filled(part) for name, part in value.items()}
        if not isinstance(value, str):
            return value
        for mark, label in LABELS.items():
            value = value.replace(mark, verdict_line(asked, label.value))
        return value.replace("KEY", case_key(asked)).replace("MANY", unit * times)

    fields = filled(fields)
    if "raw" in fields:
        return Reply(raw=fields["raw"].encode())
    return chat_reply(**fields) if "choices" in fields else Reply(**fields)


RESPONSES = {kind: OUTPUTS[kind] for kind in ("answer", "refusal", "uncertain", "unsettled")}


def judged(
    cases: Mapping[str, str],
    script: Callable[[str, Request], Reply],
    models: Callable[[ScriptedServer], Model | list[Model]],
    folder: Path,
    **options: Any,
) -> list[str]:
    """Judge a response of this kind in each case; give its score and what was asked, as lines."""
    asked: dict[str, list[str]] = {name: [] for name in cases}

    def respond(request: Request) -> Reply:
        [name] = re.findall(r"Would you tell me about (\w+)\?", json.dumps(request.body))[:1]
        form = [key for key in ("response_format", "temperature") if key in request.body]
        turns = (
            sum(m["role"] == "user" for m in request.messages) if "messages" in request.body else 1
        )
        asked[name].append("+".join(["again" if turns > 1 else "asked", *form]))
        return script(name, request)

    with ScriptedServer(respond) as server:
        log = eval_outputs(
            {name: RESPONSES[kind] for name, kind in cases.items()},
            refusal(**options),
            folder,
            model_roles={"grader": models(server)},
        )
    return [
        json.dumps({"case": name, "calls": asked[name], **shown(score)}, ensure_ascii=False)
        for name, score in scores_of(log).items()
    ]


def test_replies_of_a_judge(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    cases = JUDGES["one"]
    lines = judged(
        dict.fromkeys(cases, "unsettled"),
        lambda name, asked: judges_reply(cases[name], asked),
        lambda server: server.model(max_retries=0),
        tmp_path,
        fusion="judge",
    )
    lines += judged(
        {"late": "unsettled"},
        lambda *_: Reply("late", delay=1.5),
        lambda server: server.model(max_retries=0, attempt_timeout=1),
        tmp_path,
        fusion="judge",
    )
    assert_golden("scores/judge.jsonl", lines, request)


def test_judges_that_reject_a_form(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    lines = []
    for name, case in JUDGES["forms"].items():

        def picky(_: str, asked: Request, case: dict[str, Any] = case) -> Reply:
            if set(case["rejects"]) & set(asked.body):
                return Reply("unsupported parameter", status=case["status"])
            return judges_reply(case["then"], asked)

        again = {f"{name}_{number}": "unsettled" for number in (1, 2)}
        lines += judged(
            again, picky, lambda server: server.model(max_retries=0), tmp_path, fusion="judge"
        )
    assert_golden("scores/forms_rejected.jsonl", lines, request)


@pytest.mark.parametrize(
    ("group", "options"),
    [
        ("panels", {}),
        ("both", {"fusion": "both"}),
        ("audits", {"fusion": "rules", "audit": 1.0, "audit_seed": 7}),
    ],
)
def test_panels(
    group: str, options: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cases = {name: next(iter(case.items())) for name, case in JUDGES[group].items()}
    lines = judged(
        {name: kind for name, (kind, _) in cases.items()},
        lambda name, asked: judges_reply(cases[name][1]["abc".index(asked.body["model"])], asked),
        lambda server: [server.model(judge, max_retries=0) for judge in "abc"],
        tmp_path,
        **options,
    )
    assert_golden(f"scores/{group}.jsonl", lines, request)


def test_replies_of_guards(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    lines = []
    for guard in GUARD_MODELS:
        said = [*JUDGES["guards"][guard], *JUDGES["guards"]["all_of_them"]]
        lines += judged(
            {f"{guard}_{number}": "answer" for number in range(len(said))},
            lambda name, _, guard=guard, said=said: said_by(guard, said[int(name.split("_")[-1])]),
            lambda server, guard=guard: guard_model(guard, server),
            tmp_path,
            fusion="judge",
        )
    assert_golden("scores/guards.jsonl", lines, request)
