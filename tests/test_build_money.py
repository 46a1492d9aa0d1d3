"""What a build costs: told before, counted while it runs, and stopped before it is too much."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from inspect_ai.model import ModelCost

from commands import run_command
from letters_builds import Builder, command, extra_stages  # noqa: F401
from or_eval.dataset_builders.engine.dry_run import planned
from or_eval.dataset_builders.engine.prices import price_of
from or_eval.dataset_builders.engine.readiness import (
    check_answering,
    check_ready,
    judges_itself,
)
from or_eval.dataset_builders.engine.run import Selection
from or_eval.dataset_builders.errors import BuildError
from servers import Reply, Request, ScriptedServer

pytestmark = pytest.mark.usefixtures("extra_stages")

WRITER = "openai-api/loopback/writer"
# Of the server's 10 tokens in and 5 out, that is 2 dollars a call.
PRICE = ModelCost(input=100_000, output=200_000, input_cache_write=0, input_cache_read=0)


def shout(request: Request) -> Reply | str:
    return request.question.upper()


@pytest.fixture
def builder(tmp_path: Path):
    with ScriptedServer(shout) as server:
        yield Builder(tmp_path, server)


def priced(builder: Builder, most: float | None = None, **settings: object):
    build = builder.build(**settings)
    build.asking = replace(build.asking, prices={WRITER: PRICE}, max_cost=most)
    return build


def spent(builder: Builder) -> list[tuple]:
    frame = pd.read_csv(builder.out / "spent.csv")
    return list(frame.itertuples(index=False, name=None))


def test_tokens_and_dollars_are_told_by_stage_and_role_over_all_runs(builder: Builder) -> None:
    priced(builder).run()
    by_hand = [
        ("shout", "writer", WRITER, 5, 50, 25, 10.0),
        ("louder", "writer", WRITER, 6, 60, 30, 12.0),
    ]
    assert spent(builder) == by_hand
    priced(builder).run()
    priced(builder).run(Selection(start="shout"))
    assert spent(builder) == by_hand, "what is answered costs nothing again"
    told = json.loads((builder.out / "funnel.json").read_text())
    assert [one["dollars"] for one in told[1]["spent"]] == [10.0]
    builder.build().run(Selection(only=None, start="louder"))
    assert pd.isna(spent(builder)[0][-1]), "without a price it is unknown, not nothing"


def test_a_build_stops_before_it_costs_too_much_and_goes_on(builder: Builder) -> None:
    build = priced(builder, 7.0, max_tokens=5)
    with pytest.raises(
        BuildError, match=r"stage shout: 6\.00 dollars are spent.* 7\.00 of --max-cost"
    ):
        build.run()
    assert len(builder.server.requests) == 3
    priced(builder, 100.0, max_tokens=5).run()
    assert len(builder.server.requests) == 11
    assert sum(row[-1] for row in spent(builder)) == 22.0


def test_a_limit_needs_prices(builder: Builder) -> None:
    build = builder.build()
    build.asking = replace(build.asking, max_cost=1.0)
    with pytest.raises(BuildError, match="--max-cost: unknown price: openai-api/loopback"):
        check_ready(build)


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("openai/gpt-4o-mini", True),
        ("anthropic/claude-3-opus-20240229", True),
        ("google/gemini-1.5-pro", True),
        ("together/meta-llama/Llama-3-70b-chat-hf", True),
        ("openai/azure/gpt-4o", True),
        ("openai-api/loopback/x", False),
        ("openai/gpt-nobody-has-heard-of", False),
        ("", False),
    ],
)
def test_prices_of_many_models_are_known_without_a_network(model: str, known: bool) -> None:
    found = price_of(model, {})
    assert (found is not None) == known
    if found is not None:
        assert 0 < found.input < found.output or found.input == found.output > 0
    assert price_of("gguf/x", {}).output == 0
    assert price_of(model, {model: PRICE}) == PRICE


def test_asking_for_a_price_loads_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspect_ai.model._model.get_model", lambda *_, **__: pytest.fail("loaded"))
    assert price_of("hf/nobody/has-listed-this", {}).output == 0
    assert price_of("nobody/has-listed-this", {}) is None


def test_every_model_is_called_once_before_anything_else(builder: Builder) -> None:
    check_answering(builder.build())
    assert [request.question for request in builder.server.requests] == ["Reply with the word yes."]
    check_answering(builder.build())
    builder.build().run()
    assert len(builder.server.requests) == 12
    assert spent(builder)[0][:4] == ("check", "writer", WRITER, 1)


@pytest.mark.parametrize(
    ("reply", "reached"),
    [
        (Reply("no such key", status=401), False),
        (Reply("no such model", status=404), False),
        (Reply(hang_up=True), False),
        (Reply("max_tokens is too small", status=400), True),
    ],
)
def test_a_model_that_cannot_be_asked_is_told_at_the_start(
    tmp_path: Path, reply: Reply, reached: bool
) -> None:
    with ScriptedServer(lambda request: reply) as server:
        builder = Builder(tmp_path, server)
        if reached:
            check_answering(builder.build())
        else:
            with pytest.raises(
                BuildError,
                match=rf"{WRITER} \(writer\) can't be asked: .*no other request went out",
            ):
                check_answering(builder.build())


def test_what_was_rejected_is_asked_again_when_the_user_says_so(tmp_path: Path) -> None:
    broken = ["LETTER 4"]

    def script(request: Request) -> Reply | str:
        if any(letter in request.question.upper() for letter in broken):
            return Reply("temperature: unsupported value", status=400)
        return request.question.upper()

    with ScriptedServer(script) as server:
        builder = Builder(tmp_path, server)
        builder.build().run()
        assert "SHOUT: LETTER 4" not in builder.prompts("shout")
        broken.clear()
        asked = len(server.requests)
        builder.build().run()
        assert len(server.requests) == asked, "a rejected request is an answer"
        builder.build().run(Selection(failed=True))
        assert builder.said[0].endswith("questions are asked again")
        assert "SHOUT: LETTER 4" in builder.prompts("shout")
        assert {request.question for request in server.requests[asked:]} <= {
            "shout: letter 4", "shout: SHOUT: LETTER 4", "shout: temperature: unsupported value",
        }  # fmt: skip


def test_a_model_that_judges_and_answers_what_it_wrote_is_named(tmp_path: Path) -> None:
    from or_eval.dataset_builders.engine.models import Asking
    from or_eval.dataset_builders.engine.recipe import load_recipe
    from or_eval.dataset_builders.engine.run import Build

    def named(target: str, *roles: str) -> str | None:
        recipe = load_recipe("or_bench", [f"test_refusal.models=[{target}]"])
        return judges_itself(Build(recipe, tmp_path, Asking("openai/gpt-5", roles)))

    assert named("openai/gpt-5") == "openai/gpt-5"
    assert named("openai/gpt-4o") is None
    assert named("openai/gpt-5", "writer=mockllm/a") is None


def test_a_preview_shows_rows_beside_each_stage_and_asks_for_the_build(builder: Builder) -> None:
    done = run_command(*command(builder, "--preview", 2))
    assert done.returncode == 0, done.stderr
    assert "shout: 1 of 1 kept" in done.stdout  # of two letters, the second is dropped
    assert "SHOUT: LETTER 0" in done.stdout
    assert "unlucky" in done.stdout
    assert {path.name for path in builder.out.glob("[a-z]*")} == {"preview", "replies.sqlite"}
    # A plan reckons with what the server said each call took, 10 tokens in and 5 out.
    asked = [one for stage in planned(builder.build()) for one in stage.asked]
    assert sum(one.calls for one in asked) > 5
    assert all(one.input_tokens == 10 * one.calls for one in asked)
    assert all(one.output_tokens == 5 * one.calls for one in asked)
    asked = [request.question for request in builder.server.requests]
    builder.build().run()
    assert len(builder.prompts("shout")) == 5
    again = [request.question for request in builder.server.requests[len(asked) :]]
    assert not {*asked} & {*again}
    assert spent(builder)[1][3] == 5, "what a preview asked is in the account, once"
