"""Going on with a build of which something changed, moved or is gone; and inputs of odd kinds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from inspect_ai.model._model import _models

from letters_builds import Builder, extra_stages  # noqa: F401
from or_eval.dataset_builders.engine.dry_run import planned
from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.readiness import check_answering, check_models, check_ready
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.run import Build, Selection
from or_eval.dataset_builders.errors import BuildError
from servers import Request, ScriptedServer

HEAD = "name: letters\ntaxonomy: or_bench\nstages:\n  - stage: letters\n"
TESTED = """\
  - stage: test_refusal
    models: [openai-api/loopback/x]
  - stage: vote
    min_refusals: 0
"""


pytestmark = pytest.mark.usefixtures("extra_stages")


@pytest.fixture
def prefix() -> list[str]:
    """What stands before each reply; a test changes it."""
    return [""]


@pytest.fixture
def builder(
    tmp_path: Path, prefix: list[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Builder]:
    def reply(request: Request) -> str:
        return prefix[0] + request.question.upper()

    with ScriptedServer(reply) as server:
        monkeypatch.setenv("LOOPBACK_BASE_URL", server.base_url)
        _models.clear()  # Inspect keeps models by name, with the address that they had
        yield Builder(tmp_path, server)


def run(builder: Builder, recipe: str, *changes: str) -> None:
    builder.path.write_text(HEAD + recipe, "utf-8")
    builder.build(*changes).run()


def test_another_result_from_the_same_reruns_what_follows(
    builder: Builder, prefix: list[str]
) -> None:
    builder.build().run()
    (builder.out / "replies.sqlite").unlink()
    prefix[0] = "NOW "
    builder.build().run(Selection(only="shout"))
    builder.build().run()
    assert "03 louder: runs again (changed: input (shout))" in builder.said
    assert builder.prompts("louder")[0] == "NOW SHOUT: NOW SHOUT: LETTER 0"


@pytest.mark.parametrize("lost", ["rows.parquet", "dropped.parquet", "subsets/first.parquet"])
def test_a_result_that_lost_a_file_is_made_again(builder: Builder, lost: str) -> None:
    builder.build().run()
    file = builder.out / "stages/shout" / lost
    file.unlink()
    builder.build().run()
    assert file.is_file()
    assert builder.said[2] == "03 louder: done before, 6 rows"
    assert len(builder.server.requests) == 11


def test_a_result_that_cannot_be_read_is_told(builder: Builder) -> None:
    builder.build().run()
    (builder.out / "stages/shout/rows.parquet").write_bytes(b"")
    with pytest.raises(
        BuildError, match=r"stages/shout: its rows can't be read; remove the folder"
    ):
        builder.build("louder.word=roar").run()


def test_what_else_lies_in_the_folder_is_no_hindrance(builder: Builder) -> None:
    builder.out.mkdir()
    (builder.out / "recipe.partial").write_text("")  # as a full disk leaves it
    builder.build().run()
    (builder.out / "stages/.DS_Store").write_text("")
    builder.build().run()


def test_a_moved_build_goes_on(
    builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    builder.out = Path("out")
    run(builder, TESTED)
    asked = len(builder.server.requests)
    (tmp_path / "elsewhere").mkdir()
    shutil.move("out", "elsewhere/moved")
    monkeypatch.chdir(tmp_path / "elsewhere")
    builder.out = tmp_path / "elsewhere/moved"
    run(builder, TESTED, "vote.min_refusals=1")
    assert builder.said[1] == "02 test_refusal: done before, 4 rows"
    assert builder.said[-1].startswith("03 vote: 4 rows in, 0 out")
    assert len(builder.server.requests) == asked == 4


def test_logs_that_are_gone_are_made_again_from_the_replies(builder: Builder) -> None:
    run(builder, TESTED)
    shutil.rmtree(builder.out / "logs")
    run(builder, TESTED, "vote.min_refusals=1")
    assert builder.said[1] == "02 test_refusal: 4 rows in, 4 out"
    assert len(builder.server.requests) == 4


@pytest.mark.parametrize("left", [0, 2000])
def test_a_damaged_log_is_made_again_from_the_replies(builder: Builder, left: int) -> None:
    run(builder, TESTED)
    [log] = builder.out.glob("logs/*.eval")
    log.write_bytes(log.read_bytes()[:left])
    run(builder, TESTED, "vote.min_refusals=1")
    assert builder.said[1] == "02 test_refusal: 4 rows in, 4 out"
    assert log.with_suffix(".damaged").stat().st_size == left
    assert len(builder.server.requests) == 4


def test_a_configuration_that_is_gone_is_published_again(builder: Builder) -> None:
    publish = "  - {stage: publish, licence: mit}\n"
    run(builder, publish)
    (builder.out / "dataset/default/train.parquet").unlink()
    run(builder, publish)
    assert "02 publish: runs again (dataset/default/train.parquet is gone)" in builder.said
    assert (builder.out / "dataset/default/train.parquet").is_file()


def test_a_changed_system_prompt_file_reruns_the_test(builder: Builder, tmp_path: Path) -> None:
    file = tmp_path / "system.md"
    for text in ("Be kind.", "Be brief."):
        file.write_text(text)
        run(builder, TESTED, f"test_refusal.system_prompt={file}")
        assert builder.server.requests[-1].messages[0]["content"] == text
    assert "02 test_refusal: runs again (changed: prompts (system.md))" in builder.said


def test_a_vote_on_rows_that_were_not_tested_is_refused(builder: Builder) -> None:
    louder = "  - {stage: shout, input: letters}\n"
    with pytest.raises(BuildError, match=r"stage vote: 4 of its 8 rows were not tested"):
        run(builder, louder + TESTED, "vote.input=[test_refusal, letters]")


def test_a_rule_that_cannot_be_met_names_its_stage(builder: Builder) -> None:
    with pytest.raises(BuildError, match=r"stage vote: .* can't be met"):
        run(builder, TESTED, "vote.min_refusals=2")


@pytest.mark.parametrize(
    ("models", "said"), [("[gpt-x]", "'gpt-x' isn't PROVIDER/MODEL"), ("[a/b, a/b]", "twice")]
)
def test_wrong_models_to_test_are_told_at_once(builder: Builder, models: str, said: str) -> None:
    with pytest.raises(BuildError, match=said):
        run(builder, TESTED, f"test_refusal.models={models}")


def test_a_row_dropped_several_times_is_taken_once(builder: Builder) -> None:
    run(builder, "    drop: [1, 1, 2]\n  - {stage: shout, input: letters.unlucky}\n")
    assert builder.prompts("shout") == ["SHOUT: LETTER 1", "SHOUT: LETTER 2"]


def test_a_subset_beside_a_stage_brings_no_other_subset(builder: Builder) -> None:
    publish = "  - {stage: publish, licence: mit, input: [split.few, letters]}\n"
    run(builder, "  - {stage: split, subsets: {few: {size: 1}, more: {}}}\n" + publish)
    assert [path.parent.name for path in builder.out.glob("dataset/*/*.parquet")] == ["default"]
    assert len(pd.read_parquet(builder.out / "dataset/default/train.parquet")) == 4


def test_two_inputs_with_a_subset_of_one_name_are_refused(builder: Builder) -> None:
    split = "  - {stage: split, name: NAME, input: letters, subsets: {few: {size: 1}}}\n"
    publish = "  - {stage: publish, licence: mit, input: [a, b]}\n"
    with pytest.raises(BuildError, match=r"two inputs have a subset 'few'"):
        run(builder, split.replace("NAME", "a") + split.replace("NAME", "b") + publish)


def test_a_build_that_publishes_nothing_leaves_its_funnel(builder: Builder) -> None:
    nothing = "    drop: [0, 1, 2, 3]\n  - {stage: publish, licence: mit}\n"
    with pytest.raises(BuildError, match="nothing to publish"):
        run(builder, nothing)
    assert "letters,unlucky,4" in (builder.out / "funnel.csv").read_text()


def test_headers_of_calls_stay_out_of_records(builder: Builder) -> None:
    builder.build(extra_headers={"Authorization": "Bearer hidden-0123456789"}).run()
    for record in builder.out.glob("stages/*/stage.json"):
        assert "hidden-0123456789" not in record.read_text()
        assert json.loads(record.read_text())["facts"]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("openai-apy/x", r"openai-apy/x \(writer\) can't be asked: .*openai-apy"),
        ("openai/gpt-4o", r"openai/gpt-4o \(writer\) can't be asked: .*OPENAI_API_KEY"),
    ],
)
def test_a_model_that_cant_be_made_is_told_without_a_call(
    builder: Builder, model: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    build = builder.build()
    build.asking = Asking(model)
    for check in (check_models, check_answering):
        with pytest.raises(BuildError, match=said) as caught:
            check(build)
        assert "\n" not in str(caught.value)


def test_several_writers_share_the_calls_of_a_plan(builder: Builder) -> None:
    roles = ("writer=[mockllm/a, mockllm/b]",)
    build = Build(load_recipe(builder.path), builder.out, Asking(roles=roles))
    assert [item.calls for item in planned(build)[1].asked] == [3, 3]


@pytest.mark.parametrize(
    ("asking", "said"),
    [
        (Asking("mockllm/a", ("writr=mockllm/b",)), r"no role 'writr' \(the nearest is 'writer'\)"),
        (Asking("mockllm/a", ("writer",)), "--model-role writer: give ROLE=PROVIDER/MODEL"),
        (Asking("gpt-x"), "--model gpt-x: give PROVIDER/MODEL"),
    ],
)
def test_a_wrong_binding_is_told_before_anything_runs(
    builder: Builder, asking: Asking, said: str
) -> None:
    build = builder.build()
    build.asking = asking
    with pytest.raises(BuildError, match=said):
        check_ready(build)
