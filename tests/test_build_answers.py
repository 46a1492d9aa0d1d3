"""What was answered is never asked again; what is made of the answers is made again at any time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import yaml
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import ChatMessageUser, ModelUsage
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState

from or_eval.dataset_builders.engine import asking as asking_module
from or_eval.dataset_builders.engine import fingerprint
from or_eval.dataset_builders.engine.asking import Asker
from or_eval.dataset_builders.engine.conversations import Question, Talk
from or_eval.dataset_builders.engine.conversations import Reply as Answered
from or_eval.dataset_builders.engine.conversations import Request as Asked
from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.replies import Replies
from or_eval.dataset_builders.engine.run import Build, Selection
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.stages import test_refusal as refusal_stage
from or_eval.dataset_builders.writing import rewriting
from or_eval.dataset_builders.writing.rewrite_checks import Wanted, Written, check_text
from scripted_builds import rows, servers
from servers import API_KEY, Reply, Request, ScriptedServer
from test_build_scripted import ARM_TEXTS, CHANGES, Writer, moderator, target


class Built:
    """A finished build of or_bench, and the servers that it asked."""

    def __init__(self, folder: Path, asking: Asking, started: list[ScriptedServer]) -> None:
        self.out, self.asking, self.servers = folder / "out", asking, started
        self.recipe = folder / "mine.yaml"
        data = load_recipe("or_bench", CHANGES).data
        self.write(data)

    def write(self, data: dict) -> None:
        self.recipe.write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")

    def run(self, *roles: str, selection: Selection | None = None) -> Build:
        asking = replace(self.asking, roles=(*self.asking.roles, *roles))
        build = Build(load_recipe(self.recipe), self.out, asking, say=lambda line: None)
        build.run(selection)
        return build

    @property
    def asked(self) -> int:
        return sum(len(server.requests) for server in self.servers)

    def published(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.out)): path.read_bytes()
            for path in sorted((self.out / "dataset").rglob("*.parquet"))
        }


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Built]:
    panel = [moderator(number) for number in range(3)]
    with servers(Writer(), panel, target) as (asking, started):
        made = Built(tmp_path, asking, started)
        made.run()
        yield made


def test_nothing_that_is_done_is_asked_again(built: Built) -> None:
    asked, published = built.asked, built.published()
    shutil.rmtree(built.out / "logs")
    data = load_recipe(built.recipe).data
    # A stage in front of all that ask, and one that is renamed with what takes from it.
    seeds, *others = data["stages"]
    first = {"stage": "split", "name": "look", "input": "seeds", "subsets": {"every": {}}}
    for stage in others:
        if stage["stage"] == "rewrite":
            stage["name"] = "written anew".replace(" ", "_")
    data["stages"] = [seeds, first, *others]
    built.write(data)
    built.run()
    assert (built.asked, built.published()) == (asked, published)
    # A role that no stage asks, and everything made again.
    for stage in ("seeds", "moderate"):
        built.run("classifier=mockllm/model", selection=Selection(start=stage))
    assert (built.asked, built.published()) == (asked, published)


def test_a_changed_check_changes_the_rows_without_a_request(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = built.asked
    assert ARM_TEXTS[0] in list(rows(built.out, "rewrite")["prompt"])

    def strict(text: str, wanted: Wanted, seen: set[str], writer: str) -> Written:
        checked = check_text(text, wanted, seen, writer)
        return checked._replace(reason="too long") if "bone" in text else checked

    monkeypatch.setattr(rewriting, "check_text", strict)
    monkeypatch.setattr(fingerprint, "code_of", lambda part: "changed")
    built.run()
    assert built.asked == asked
    assert ARM_TEXTS[0] not in list(rows(built.out, "rewrite")["prompt"])
    assert (ARM_TEXTS[0], "too long") in list(
        rows(built.out, "rewrite", "dropped")[["prompt", "reason"]].itertuples(
            index=False, name=None
        )
    )
    assert ARM_TEXTS[0] not in list(
        pd.read_parquet(built.out / "dataset/full/train.parquet")["prompt"]
    )


@scorer(metrics=[mean()], name="refusal")
def all_refuse(fusion: str = "cascade") -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=1.0, answer="direct_refusal", metadata={"decided_by": "rules"})

    return score


def test_changed_rules_change_the_verdicts_without_a_request(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, logs = built.asked, len(list_eval_logs(str(built.out / "logs")))
    assert len(rows(built.out, "hard")) == 2
    monkeypatch.setattr(refusal_stage, "refusal", all_refuse)
    for module in (refusal_stage, fingerprint):
        monkeypatch.setattr(module, "code_of", lambda part: "changed")
    built.run()
    assert len(rows(built.out, "hard")) == len(rows(built.out, "moderate")) == 5
    assert built.asked == asked
    assert len(list_eval_logs(str(built.out / "logs"))) == logs


def test_another_moderator_is_asked_alone(built: Built) -> None:
    asked = [len(server.requests) for server in built.servers]
    with ScriptedServer(moderator(0)) as fourth:
        panel = built.asking.roles[1].removeprefix("moderator=[").removesuffix("]")
        role = f"moderator=[{panel}, {fourth.role_option('moderator-3')}]"
        built.asking = replace(built.asking, roles=(built.asking.roles[0], role))
        built.run()
        assert [len(server.requests) for server in built.servers] == asked
        assert len(fourth.requests) == 7
    assert len(rows(built.out, "moderate", "dropped")) > 0


def test_questions_go_out_in_shards(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    published = built.published()
    for name in ("logs", "stages"):
        shutil.rmtree(built.out / name)
    (built.out / "replies.sqlite").unlink()
    monkeypatch.setattr(asking_module, "SHARD", 3)
    built.servers[0]._script.given.clear()
    built.run()
    names = [Path(log.name).name.split("_")[1] for log in list_eval_logs(str(built.out / "logs"))]
    assert names.count("moderate") == 3 * 3  # seven prompts in threes, three moderators
    assert names.count("test-refusal") == 3 * 2
    assert built.published() == published


def twice() -> Talk[list[str]]:
    """A conversation of two requests."""
    first = yield Asked((ChatMessageUser(content="question 0"),))
    second = yield Asked((ChatMessageUser(content="question 1"),))
    return [first.text, second.text]


def test_a_reply_is_kept_before_its_conversation_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    broken = [Reply("no key", status=401)] * 2  # the call, and its sample's other attempt

    def script(request: Request) -> Reply | str:
        return broken.pop() if broken and request.question == "question 1" else request.question

    def ask() -> list[str]:
        asked = Asker(asking, tmp_path).ask("x", [("", [Question("writer", models, twice)])])
        [(_, [replies])] = asked
        return replies

    with ScriptedServer(script) as server:
        asking = Asking(roles=(f"writer={server.role_option('w')}",), display="none")
        models = asking.bindings()["writer"].models
        with pytest.raises(BuildError, match="1 of 1 calls failed"):
            ask()
        # The sample of the first reply failed.
        assert ask() == ["question 0", "question 1"]
        asked = [request.question for request in server.requests]
    assert asked == ["question 0", *["question 1"] * 3]
    logs = [read_eval_log(log) for log in list_eval_logs(str(tmp_path / "logs"))]
    [told] = [log.samples[0] for log in logs if log.samples[0].error is None]
    messages = [message.text for message in told.messages]
    assert messages == ["question 0", "question 0", "question 1", "question 1"]


def test_a_full_disk_stops_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    opened = Replies.__init__

    def small(self: Replies, *given: object) -> None:
        opened(self, *given)
        self._base.execute("PRAGMA max_page_count = 40")

    monkeypatch.setattr(Replies, "__init__", small)
    with ScriptedServer(lambda request: 9_000 * "long ") as server:
        config = {"max_connections": 1}
        asking = Asking(roles=(f"writer={server.role_option('w')}",), config=config, display="none")
        models = asking.bindings()["writer"].models
        questions = [
            (course, [Question("writer", models, twice, course=course)]) for course in range(20)
        ]
        with pytest.raises(BuildError, match="disk is full, so no more requests go out; 1 calls"):
            list(Asker(asking, tmp_path).ask("x", questions))
        assert len(server.requests) < 10


@pytest.mark.parametrize(
    ("name", "said"),
    [("ledger.sqlite", "another version of or-eval"), ("replies.sqlite", "can't be read")],
)
def test_replies_that_cannot_be_read_are_told(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_text("no such thing " * 99)
    with pytest.raises(BuildError, match=f"{name}: {said}.* to ask everything again"):
        Asker(Asking(), tmp_path).replies()


def test_what_workers_left_is_taken_in_once(tmp_path: Path) -> None:
    said, took = Answered("m", "yes"), ModelUsage(input_tokens=1, output_tokens=2)
    for number in (0, 1, None):
        with Replies(tmp_path, number) as replies:
            replies.put(f"key {number}", 0, said)
            replies.end(f"key {number}", 1)
            replies.spend("s", "r", "m", took)
    for _ in range(2):
        with Replies(tmp_path) as replies:
            found = replies.said([f"key {number}" for number in (0, 1, None)])
            assert list(found.values()) == [[said]] * 3
            assert [one[3] for one in replies.spent()] == [3]
    with Replies(tmp_path, 1) as worker:
        assert worker.get("key 0", 0) == list(said)  # of the build, which it only reads
        assert worker.get("key 0", 1) is None
    assert len(list(tmp_path.glob("*.sqlite"))) == 2
