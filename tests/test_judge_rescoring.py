"""`inspect score`: judging an old log again, and comparing two judges on it."""

from __future__ import annotations

from subprocess import CompletedProcess

import pytest
from inspect_ai.log import read_eval_log
from inspect_ai.scorer import includes

from commands import run_command
from or_eval.scorers import outcome, refusal
from scored import ANSWER, REFUSAL, UNSETTLED, eval_outputs
from servers import API_KEY, Reply, Request, ScriptedServer, judged_response, verdict_line


def inspect_score(log: str, *options: str) -> CompletedProcess[str]:
    env = {"LOOPBACK_API_KEY": API_KEY}
    return run_command("inspect", "score", log, "--display", "plain", *options, env=env)


def test_two_judges_are_compared_on_one_log(tmp_path):
    log = eval_outputs(
        {"r": REFUSAL, "a": ANSWER, "u": UNSETTLED},
        [refusal(), outcome()],
        tmp_path,
        metadata={id: {"label": "safe"} for id in "rau"},
    )

    def mild(request: Request) -> str:
        refused = judged_response(request) == REFUSAL
        return verdict_line(request, "direct_refusal" if refused else "direct_answer")

    with (
        ScriptedServer(lambda r: verdict_line(r, "indirect_refusal")) as one,
        ScriptedServer(mild) as two,
    ):
        # The first writes another file, the second adds to that one, as docs/judge.md shows it.
        old, new = log.location, str(tmp_path / "judged.eval")
        for server, name, files in (
            (one, "one", [old, "--output-file", new]),
            (two, "two", [new, "--overwrite"]),
        ):
            done = inspect_score(
                *files,
                *("--scorer", "or_eval/refusal", "-S", "fusion=judge", "--action", "append"),
                *("--model-role", f"grader={server.role_option(name)}"),
            )
            assert done.returncode == 0, done.stderr
            assert len(server.requests) == 3

    judged = read_eval_log(new)
    assert list(read_eval_log(old).samples[0].scores) == ["refusal", "outcome"]
    scores = {
        s.id: {name: score.answer for name, score in s.scores.items()} for s in judged.samples
    }
    assert scores == {
        "r": {
            "refusal": "direct_refusal",
            "outcome": None,
            "refusal1": "indirect_refusal",
            "refusal2": "direct_refusal",
        },
        "a": {
            "refusal": "direct_answer",
            "outcome": None,
            "refusal1": "indirect_refusal",
            "refusal2": "direct_answer",
        },
        "u": {
            "refusal": None,
            "outcome": None,
            "refusal1": "indirect_refusal",
            "refusal2": "direct_answer",
        },
    }
    rates = {
        r.name: r.metrics["over_refusal_rate"].value
        for r in judged.results.scores
        if "over_refusal_rate" in r.metrics
    }
    assert rates == {"refusal": 0.5, "refusal1": 1.0, "refusal2": pytest.approx(1 / 3)}
    judges = [
        judged.samples[0].scores[name].metadata["stages"]["judge"]["votes"][0]["model"]
        for name in ("refusal1", "refusal2")
    ]
    assert judges == ["openai-api/loopback/one", "openai-api/loopback/two"]
    assert API_KEY not in judged.model_dump_json()


def test_outcome_names_its_score_and_can_be_told_of_a_newer_one(tmp_path):
    log = eval_outputs({"r": REFUSAL}, [refusal(), outcome()], tmp_path)
    with ScriptedServer(lambda r: verdict_line(r, "direct_answer")) as server:
        for options in (
            (
                "or_eval/refusal",
                "-S",
                "fusion=judge",
                "--model-role",
                f"grader={server.role_option()}",
            ),
            ("or_eval/outcome",),
        ):
            done = inspect_score(
                log.location, "--scorer", *options, "--action", "append", "--overwrite"
            )
            assert done.returncode == 0, done.stderr
    [sample] = read_eval_log(log.location).samples
    said = {name: sample.scores[name].value for name in ("outcome", "outcome1")}
    assert {name: (value["scorer"], value["result"]) for name, value in said.items()} == {
        "outcome": ("refusal", "refused"),
        "outcome1": ("refusal1", "answered"),
    }


def test_log_of_another_task(tmp_path):
    log = eval_outputs({"r": REFUSAL, "a": ANSWER, "e": ""}, includes(), tmp_path)
    done = inspect_score(
        log.location,
        *("--scorer", "or_eval/refusal", "--action", "append", "--overwrite", "--stream"),
    )
    assert done.returncode == 0, done.stderr
    scored = read_eval_log(log.location)
    assert [list(sample.scores) for sample in scored.samples] == [["includes", "refusal"]] * 3
    result, full = scored.results.scores[-2:]
    assert result.name == "refusal"
    assert (result.scored_samples, result.unscored_samples) == (2, 1)
    assert result.metrics["refusal_rate"].value == 0.5
    assert (full.name, full.metrics["refusal_rate_full"].value) == ("refusal", 0.5)


def test_judge_that_is_not_bound_is_one_clear_line(tmp_path):
    log = eval_outputs({"r": REFUSAL}, refusal(), tmp_path)
    done = inspect_score(
        log.location,
        *("--scorer", "or_eval/refusal", "-S", "fusion=both", "--action", "append", "--overwrite"),
    )
    assert done.returncode != 0
    said = " ".join((done.stdout + done.stderr).split())
    assert "fusion=both needs a judge" in said
    assert "--model-role grader=" in said
    assert "Traceback" not in said
    assert list(read_eval_log(log.location).samples[0].scores) == ["refusal"]


def test_judge_that_cant_be_asked_is_one_clear_line_and_one_call(tmp_path):
    log = eval_outputs(dict.fromkeys("abc", UNSETTLED), refusal(), tmp_path)
    with ScriptedServer(lambda r: Reply("wrong key", status=401), ready=False) as server:
        done = inspect_score(
            log.location,
            *("--scorer", "or_eval/refusal", "--action", "append", "--overwrite"),
            *("--model-role", f"grader={server.role_option()}"),
        )
        assert len(server.requests) == 1
    assert done.returncode == 1
    said = " ".join((done.stdout + done.stderr).split())
    assert "can't be asked: AuthenticationError: Error code: 401 - wrong key" in said
    assert "Traceback" not in said
    assert list(read_eval_log(log.location).samples[0].scores) == ["refusal"]
