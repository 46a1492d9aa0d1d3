"""A judge that is missing or can't be asked ends a run before the tested model is asked anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from inspect_ai import Task, eval, eval_set
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog
from inspect_ai.model import Model

from commands import MODEL, loopback, start_inspect
from or_eval import tasks
from scored import ANSWER, UNSETTLED
from servers import API_KEY, CHECK, Reply, Request, ScriptedServer, judged_response, verdict_line

LIMIT = 3
OPTIONS = [{"fusion": "judge"}, {"fusion": "both"}, {"audit": 0.5}]


def starter(**options: object) -> Task:
    return tasks.starter(language="en", **options)


def run(some: Task | list[Task], tested: Model, tmp_path: Path, **options: object) -> list[EvalLog]:
    return eval(some, model=tested, limit=LIMIT, log_dir=str(tmp_path), display="none", **options)


def agreeing(request: Request) -> str:
    return verdict_line(
        request, "direct_refusal" if "no" in judged_response(request) else "direct_answer"
    )


class TestMissing:
    @pytest.mark.parametrize("command", ["eval", "eval-set"])
    @pytest.mark.parametrize("option", ["fusion=judge", "audit=0.5"])
    def test_a_command_ends_in_one_line_and_asks_nothing(self, command, option, tmp_path):
        with ScriptedServer(lambda r: ANSWER) as server:
            done = start_inspect(
                *(command, "or_eval/starter", "-T", option, "--limit", LIMIT, "--model", MODEL),
                *("--log-dir", tmp_path / "logs"),
                cwd=tmp_path,
                env=loopback(server),
            )
            said = [line for line in "".join(done.communicate()).splitlines() if line.strip()]
            assert done.returncode == 1
            assert server.requests == []
        assert len(said) == 1, said
        assert f"{option} needs a judge" in said[0]
        assert "--model-role grader=" in said[0]

    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_a_task_made_in_python_ends_before_the_first_prompt(self, options, tmp_path):
        with ScriptedServer(lambda r: ANSWER) as server:
            [log] = run(starter(**options), server.model(), tmp_path)
            assert server.requests == []
        assert log.status == "error"
        assert "needs a judge" in log.error.message
        assert "\n" not in log.error.message

    def test_what_an_earlier_eval_set_was_bound_to_says_nothing_of_a_task_made_later(
        self, tmp_path
    ):
        with ScriptedServer(lambda r: ANSWER) as server:
            done, _ = eval_set(
                [starter(fusion="rules")],
                model=server.model(),
                limit=1,
                log_dir=str(tmp_path / "set"),
                display="none",
            )
        assert done
        starter(fusion="judge")

    def test_a_cascade_and_rules_do_without(self, tmp_path):
        with ScriptedServer(lambda r: ANSWER) as server:
            logs = run([starter(), starter(fusion="rules")], server.model(), tmp_path)
        assert [log.status for log in logs] == ["success"] * 2


class TestUnreachable:
    @pytest.mark.parametrize(
        ("reply", "says"),
        [
            (Reply(f"no such key: {API_KEY}", status=401), "401"),
            (Reply("no such model", status=404), "404 - no such model"),
            (Reply("no such model", status=400), "400 - no such model"),
            (Reply("late", delay=30), "attempt_timeout"),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("options", [{}, {"fusion": "both"}], ids=str)
    def test_a_run_ends_before_the_first_prompt(self, reply, says, options, tmp_path):
        with (
            ScriptedServer(lambda r: ANSWER) as tested,
            ScriptedServer(lambda r: reply, ready=False) as judge,
        ):
            grader = judge.model(attempt_timeout=1, max_retries=0)
            [log] = run(
                starter(**options), tested.model(), tmp_path, model_roles={"grader": grader}
            )
            assert tested.requests == []
            assert {request.question for request in judge.requests} == {CHECK}
        assert log.status == "error"
        assert "the judge openai-api/loopback/judge can't be asked" in log.error.message
        assert says in log.error.message
        assert API_KEY not in log.model_dump_json()

    def test_one_of_a_panel_ends_a_run_as_well(self, tmp_path):
        with (
            ScriptedServer(lambda r: ANSWER) as tested,
            ScriptedServer(agreeing) as judge,
            ScriptedServer(lambda r: Reply("gone", status=404), ready=False) as gone,
        ):
            panel = [judge.model("a"), gone.model("b")]
            [log] = run(starter(), tested.model(), tmp_path, model_roles={"grader": panel})
            assert tested.requests == []
        assert "loopback/b can't be asked" in log.error.message


class TestReachable:
    def test_it_is_called_once_for_all_tasks_and_in_short(self, tmp_path):
        with (
            ScriptedServer(lambda r: UNSETTLED) as tested,
            ScriptedServer(
                lambda r: "yes" if r.question == CHECK else agreeing(r), ready=False
            ) as judge,
        ):
            logs = run(
                [starter(), starter(fusion="judge"), starter(system_prompt="safe")],
                tested.model(),
                tmp_path,
                model_roles={"grader": judge.model()},
                max_tasks=1,
            )
        assert [log.status for log in logs] == ["success"] * 3
        assert [request.question for request in judge.requests].count(CHECK) == 1
        assert judge.requests[0].question == CHECK
        assert judge.requests[0].body["max_tokens"] <= 64
        assert len(judge.requests) == 1 + 3 * LIMIT

    def test_one_that_takes_no_such_setting_is_reached_all_the_same(self, tmp_path):
        def picky(request: Request) -> Reply | str:
            if "max_tokens" in request.body:
                return Reply("max_tokens is not supported", status=400)
            return "yes" if request.question == CHECK else agreeing(request)

        with (
            ScriptedServer(lambda r: UNSETTLED) as tested,
            ScriptedServer(picky, ready=False) as judge,
        ):
            [log] = run(starter(), tested.model(), tmp_path, model_roles={"grader": judge.model()})
        assert log.status == "success"

    def test_no_judge_is_called_where_none_is_asked(self, tmp_path):
        with ScriptedServer(lambda r: ANSWER) as server:
            with ScriptedServer(lambda r: Reply(status=401), ready=False) as judge:
                [log] = run(
                    starter(fusion="rules"),
                    server.model(),
                    tmp_path,
                    model_roles={"grader": judge.model()},
                )
            assert judge.requests == []
        assert log.status == "success"

    def test_wrong_options_are_told_as_before(self):
        with pytest.raises(PrerequisiteError, match="fusion is one of"):
            starter(fusion="perhaps")
