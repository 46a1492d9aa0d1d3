"""The pipeline: what is done is never done again, and nothing half-done is taken for done."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from commands import Command, run_command
from letters_builds import RECIPE, Builder, command, extra_stages  # noqa: F401
from or_eval.cli import main
from or_eval.dataset_builders.engine import fingerprint
from or_eval.dataset_builders.engine.dry_run import planned
from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.readiness import check_ready
from or_eval.dataset_builders.engine.replies import Replies
from or_eval.dataset_builders.engine.run import Build, Selection
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.publishing.dataset_folder import read_dataset
from or_eval.folder_lock import locked
from or_eval.sources import DataError
from servers import API_KEY, Reply, Request, ScriptedServer

pytestmark = pytest.mark.usefixtures("extra_stages")


@pytest.fixture(scope="module")
def shouting() -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda request: request.question.upper()) as started:
        yield started


@pytest.fixture
def server(shouting: ScriptedServer) -> ScriptedServer:
    shouting.requests.clear()
    return shouting


@pytest.fixture
def builder(tmp_path: Path, server: ScriptedServer) -> Builder:
    return Builder(tmp_path, server)


@pytest.fixture(scope="module")
def whole(
    extra_stages: None,  # noqa: F811
    shouting: ScriptedServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    builder = Builder(tmp_path_factory.mktemp("whole"), shouting)
    builder.build().run()
    return builder.out


@pytest.fixture
def built(builder: Builder, whole: Path) -> Builder:
    """Give a builder whose build is done, and who was asked nothing since."""
    shutil.copytree(whole, builder.out)
    builder.server.requests.clear()
    return builder


def test_a_build_keeps_rows_drops_logs_and_a_funnel(builder: Builder) -> None:
    facts = builder.build().run()
    assert builder.prompts("shout")[:2] == ["SHOUT: LETTER 0", "SHOUT: LETTER 2"]
    assert builder.prompts("louder")[-1] == "SHOUT: LETTER 1"
    assert [(f.rows_in, f.rows_out, f.dropped) for f in facts] == [
        (0, 5, {"unlucky": 1}), (5, 5, {}), (6, 6, {}),
    ]  # fmt: skip
    assert facts[1].models == {"writer": ["openai-api/loopback/writer"]}
    [dropped] = pd.read_parquet(builder.out / "stages/letters/dropped.parquet").to_dict("records")
    assert (dropped["prompt"], dropped["reason"], dropped["detail"]) == (
        "letter 1", "unlucky", "by number",
    )  # fmt: skip
    assert len(list(builder.out.glob("logs/*.eval"))) == 2
    assert "letters,unlucky,1" in (builder.out / "funnel.csv").read_text()
    assert json.loads((builder.out / "funnel.json").read_text())[1]["subsets"] == {"first": 1}
    assert (builder.out / "stages/shout/tables/sizes.csv").read_text() == "rows\n5\n"
    # Each row leads back to where it came from.
    first = pd.read_parquet(builder.out / "stages/letters/rows.parquet")
    second = pd.read_parquet(builder.out / "stages/shout/rows.parquet")
    assert list(second["seed_id"]) == list(first["id"])


def test_the_same_command_does_nothing_twice(built: Builder) -> None:
    facts = built.build().run()
    assert not built.server.requests
    assert built.said[2] == "03 louder: done before, 6 rows"
    assert facts[2].rows_out == 6


def test_a_changed_parameter_reruns_the_stage_and_what_follows(built: Builder) -> None:
    built.build("shout.word=roar").run()
    assert "01 letters: done before, 5 rows" in built.said
    assert "02 shout: runs again (changed: parameters (word))" in built.said
    assert "03 louder: runs again (changed: input (shout))" in built.said
    assert built.prompts("shout")[0] == "ROAR: LETTER 0"
    assert built.prompts("louder")[0] == "SHOUT: ROAR: LETTER 0"


def test_another_setting_of_a_model_reruns_its_stages(built: Builder) -> None:
    built.build(temperature=0.5).run()
    assert "02 shout: runs again (changed: models (writer))" in built.said
    assert len(built.server.requests) == 11
    built.build(temperature=0.5, max_connections=2).run()
    assert len(built.server.requests) == 11


def test_going_back_to_an_earlier_choice_asks_nothing(builder: Builder) -> None:
    for change in ("shout.word=roar", "shout.word=shout", "shout.word=roar"):
        builder.build(change).run()
        asked = len(builder.server.requests)
    builder.build("shout.word=shout").run()
    assert len(builder.server.requests) == asked


def test_changed_code_makes_results_again_and_asks_nothing(
    built: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprint, "code_of", lambda part: "other code")
    built.build().run()
    assert "02 shout: runs again (changed: stage)" in built.said
    assert not built.server.requests


def test_a_changed_file_is_noticed(
    builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = tmp_path / "words.toml"
    prompt.write_text("one")
    builder.build().run()
    module = sys.modules["or_eval.dataset_builders.stages.shout"]
    monkeypatch.setattr(
        module, "STAGE", type("Shout", (module.Shout,), {"prompts": lambda self: [prompt]})
    )
    builder.build().run()
    prompt.write_text("two")
    facts = builder.build().run()
    assert "02 shout: runs again (changed: prompts (words.toml))" in builder.said
    assert len(facts[1].prompts["words.toml"]) == 12
    prompt.unlink()
    with pytest.raises(BuildError, match=r"stage shout: .*words.toml: No such file"):
        builder.build().run()


def test_limit_starts_from_fewer_seeds(builder: Builder) -> None:
    facts = builder.build("letters.drop=[]", limit=2).run()
    assert [f.rows_out for f in facts] == [2, 2, 2]


def test_only_and_from_run_stages_again_without_asking_again(built: Builder) -> None:
    facts = built.build().run(Selection(only="shout"))
    assert built.said == [
        "01 letters: done before, 5 rows",
        "02 shout: runs again (asked for)",
        "02 shout: 5 rows in, 5 out; first 1",
    ]
    assert [f.name for f in facts] == ["letters", "shout"]
    built.build().run(Selection(start="shout"))
    assert "03 louder: runs again (asked for)" in built.said
    assert not built.server.requests
    assert "louder" in (built.out / "funnel.csv").read_text()
    with pytest.raises(BuildError, match=r"--only louder: the stage shout.*parameters \(word\)"):
        built.build("shout.word=roar").run(Selection(only="louder"))
    with pytest.raises(BuildError, match=r"--from loud: no such stage \(there are: letters"):
        built.build().run(Selection(start="loud"))


def test_the_plan_tells_what_is_left_to_do(builder: Builder) -> None:
    before = planned(builder.build())
    assert [(s.rows_in, s.rows_out, s.done) for s in before] == [
        (0, 6, False), (6, 6, False), (6, 6, False),
    ]  # fmt: skip
    assert (before[1].asked[0].calls, before[1].asked[0].output_tokens) == (6, 42)
    builder.build().run()
    after = planned(builder.build("louder.word=roar"))
    assert [s.done for s in after] == [True, True, False]
    assert after[2].why == "changed: parameters (word)"
    assert len(builder.server.requests) == 11
    with Replies(builder.out) as held:  # as a build does that is running
        held.end("some question", 1)
        assert [s.done for s in planned(builder.build("louder.word=roar"))] == [True, True, False]


def test_a_folder_of_something_else_is_left_alone(builder: Builder) -> None:
    builder.out.mkdir()
    (builder.out / "thesis.tex").write_text("years of work")
    with pytest.raises(BuildError, match=r"contains 'thesis.tex', which isn't part of a build"):
        builder.build().run()
    (builder.out / "thesis.tex").unlink()
    builder.build().run()
    with pytest.raises(BuildError, match="contains a build of letters; give another folder"):
        builder.build("name=other").run()


def test_what_else_lies_among_the_stages_stays(built: Builder) -> None:
    (built.out / "stages" / "notes").mkdir()
    built.path.write_text(RECIPE[: RECIPE.index("  - stage: shout\n    name")], "utf-8")
    built.build().run()
    assert [path.name for path in sorted((built.out / "stages").iterdir())] == [
        "letters", "louder", "notes", "shout",
    ]  # fmt: skip


def test_renaming_and_inserting_ask_nothing_without_a_cache(built: Builder) -> None:
    assert not (built.out / "cache").exists()
    renamed = RECIPE.replace("  - stage: shout\n  - ", "  - stage: shout\n    name: cry\n  - ")
    renamed = renamed.replace("input: [shout, letters.unlucky]", "input: [cry, all.unlucky]")
    first = "  - stage: letters\n    name: all\n"
    first += "    count: 6\n    drop: [1]\n  - {stage: split, subsets: {every: {}}}\n"
    built.path.write_text(
        renamed.replace("  - stage: letters\n    count: 6\n    drop: [1]\n", first), "utf-8"
    )
    built.build().run()
    assert built.said[-1] == "04 louder: 6 rows in, 6 out; first 1"
    assert not built.server.requests


@pytest.mark.parametrize("damage", ["record gone", "record cut", "half written"])
def test_nothing_half_written_is_taken_for_done(built: Builder, damage: str) -> None:
    folder = built.out / "stages/shout"
    record = folder / "stage.json"
    if damage == "record gone":
        record.unlink()
    elif damage == "record cut":
        record.write_text(record.read_text()[:40])
    else:
        folder.rename(folder.with_name("shout.partial"))
    built.build().run()
    assert "02 shout: 5 rows in, 5 out; first 1" in built.said
    assert not built.server.requests
    assert not list((built.out / "stages").glob("*.partial"))


def test_a_second_build_in_the_folder_is_told_who_is_there(builder: Builder) -> None:
    builder.out.mkdir()
    with (
        locked(builder.out),
        pytest.raises(
            DataError, match=rf"another process builds or pushes here \(process {os.getpid()} on"
        ),
    ):
        builder.build().run()
    builder.build().run()


def test_a_role_without_a_model_is_told_before_anything_runs(builder: Builder) -> None:
    build = builder.build()
    build.asking = Asking()
    with pytest.raises(BuildError, match=r"asks the role 'writer', and no model is bound to it"):
        check_ready(build)
    build.asking = Asking(model="mockllm/model")
    check_ready(build)


def test_a_failing_model_stops_the_build_where_it_goes_on(tmp_path: Path) -> None:
    broken = threading.Event()
    broken.set()

    def script(request: Request) -> Reply | str:
        if broken.is_set() and "LETTER 4" in request.question.upper():
            return Reply("out of order", status=500)
        return request.question.upper()

    with ScriptedServer(script) as server:
        builder = Builder(tmp_path, server)
        with pytest.raises(BuildError) as caught:
            builder.build().run()
        assert str(caught.value).startswith("stage shout: 1 of 5 calls failed, the first: ")
        assert str(caught.value).endswith("run the same command to resume")
        assert API_KEY not in str(caught.value)
        assert not list((builder.out / "stages").glob("02*"))
        broken.clear()
        builder.build().run()
        asked = Counter(request.question for request in server.requests)
    assert asked.pop("shout: letter 4") == 3  # twice in vain, once with success
    assert set(asked.values()) == {1}


def test_a_storm_of_429_is_weathered(tmp_path: Path) -> None:
    def script(request: Request) -> Reply | str:
        if request.number < 2:
            return Reply("slow down", status=429, headers={"Retry-After": "0"})
        return request.question.upper()

    with ScriptedServer(script) as server:
        builder = Builder(tmp_path, server)
        build = builder.build("letters.count=2", "letters.drop=[]")
        build.asking = replace(build.asking, config={"max_retries": 5})
        build.run()
    assert builder.prompts("louder") == ["SHOUT: SHOUT: LETTER 0", "SHOUT: SHOUT: LETTER 1"]


def test_a_build_goes_on_when_nobody_reads_what_it_says(builder: Builder) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    line = [sys.executable, *map(str, command(builder))]
    done = subprocess.run(line, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert builder.prompts("louder")[-1] == "SHOUT: LETTER 1"


def test_a_dry_run_tells_what_would_stop_the_build(builder: Builder, tmp_path: Path) -> None:
    tested = tmp_path / "tested.yaml"
    tested.write_text(RECIPE + "  - stage: test_refusal\n    models: []\n", "utf-8")

    def said(recipe: Path) -> str:
        words = command(builder, "--dry-run", recipe=recipe)[1:]
        done = CliRunner().invoke(main, ["build", *map(str, words)])
        assert done.exit_code == 1
        return done.stderr

    assert "stage test_refusal: 'models' names no model to test" in said(tested)
    builder.out.mkdir()
    (builder.out / "recipe.json").write_text('{"name": "numbers"}')
    assert "contains a build of numbers; give another folder" in said(builder.path)


def test_ctrl_c_is_told_in_one_line_and_resumed(tmp_path: Path) -> None:
    with ScriptedServer(lambda request: Reply(request.question.upper(), delay=0.5)) as server:
        builder = Builder(tmp_path, server)
        process = Command(*command(builder, "--max-connections", 1))
        wait_for(lambda: len(server.requests) >= 2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130, errors
        assert errors.strip().splitlines()[-1] == (
            "Interrupted. What is done is kept: run the same command to resume."
        )
        assert "Traceback" not in errors
        builder.build().run()
    asked = Counter(request.question for request in server.requests)
    assert sum(count > 1 for count in asked.values()) <= 1  # the one that was under way


def test_a_full_disk_is_told_and_resumed(tmp_path: Path, server: ScriptedServer) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("can't mount a small disk here (needs root)")
    try:
        builder = Builder(tmp_path, server)
        builder.out = small / "out"
        done = run_command(*command(builder))
        assert done.returncode == 1
        assert "the disk is full" in done.stderr, done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert "Traceback" not in done.stderr
        subprocess.run(["mount", "-o", "remount,size=16m", str(small)], check=True)
        done = run_command(*command(builder))
        assert done.returncode == 0, done.stderr
        assert builder.prompts("louder")[-1] == "SHOUT: LETTER 1"
    finally:
        subprocess.run(["umount", str(small)], check=True)


def wait_for(condition, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def test_a_data_set_that_is_gone_is_published_again(builder: Builder) -> None:
    publish = "  - {stage: publish, input: shout, licence: cc-by-4.0}\n"
    builder.path.write_text(RECIPE + publish, "utf-8")
    builder.build().run()
    shutil.rmtree(builder.out / "dataset")
    builder.build().run()
    assert "04 publish: runs again (dataset/README.md is gone)" in builder.said
    assert (builder.out / "dataset/first/train.parquet").exists()


def test_other_arguments_of_a_model_rerun_its_stages_and_ask_anew(builder: Builder) -> None:
    def build(organization: str) -> Build:
        job = builder.build()
        model_args = {
            "base_url": builder.server.base_url, "max_retries": 0, "organization": organization,
        }  # fmt: skip
        role = {"model": "openai-api/loopback/writer", "model_args": model_args}
        job.asking = replace(job.asking, roles=(f"writer={json.dumps(role)}",))
        return job

    build("one").run()
    build("two").run()
    assert "02 shout: runs again (changed: models (writer))" in builder.said
    assert len(builder.server.requests) == 22
    build("one").run()
    assert len(builder.server.requests) == 22
    assert "organization" not in (builder.out / "stages/shout/stage.json").read_text()


def test_a_set_of_an_earlier_build_is_not_pushed(builder: Builder) -> None:
    publish = "  - {stage: publish, input: shout, licence: cc-by-4.0}\n"
    builder.path.write_text(RECIPE + publish, "utf-8")
    builder.build().run()
    assert read_dataset(builder.out).path == builder.out / "dataset"
    builder.build("shout.word=roar").run(Selection(only="shout"))
    with pytest.raises(BuildError, match="the last build here did not come to its end"):
        read_dataset(builder.out)
    assert read_dataset(builder.out / "dataset").path == builder.out / "dataset"
    builder.build("shout.word=roar").run()
    assert read_dataset(builder.out).path == builder.out / "dataset"
