"""Stored responses become ordinary Inspect logs, and answer any task."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import signal
import time
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from inspect_ai import eval as run_tasks
from inspect_ai.analysis import evals_df, messages_df, samples_df
from inspect_ai.log import read_eval_log
from inspect_ai.model import get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from commands import Command, run_command, run_inspect
from or_eval.analysis.rates import class_shares, rates
from or_eval.analysis.responses import read_logs
from or_eval.folder_lock import locked
from or_eval.schema import prompt_id
from or_eval.scorers.provider import read_output
from or_eval.sources import DataError
from replayed import OK, Rows, completions, logs_of, run_replay, try_replay, write_jsonl


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep Inspect's progress off the terminal."""
    monkeypatch.setenv("INSPECT_DISPLAY", "none")


@pytest.fixture(scope="module")
def human_rows(shared_data: Path) -> Rows:
    with gzip.open(shared_data / "labels" / "xstest_human.jsonl.gz", "rt", "utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def two_models(human_rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a file with the first thirty responses of two models."""
    path = tmp_path_factory.mktemp("responses") / "two_models.jsonl"
    chosen = [r for r in human_rows if r["model"] in ("gpt4", "llama2orig")]
    return write_jsonl(path, [r for r in chosen if int(r["id"].removeprefix("v2-")) <= 30])


@pytest.fixture(scope="module")
def two_logs(two_models: Path) -> Path:
    """Give the folder with the scored logs of two models."""
    folder = two_models.parent / "logs"
    run_replay(two_models, "--log-dir", folder, env={"INSPECT_DISPLAY": "none"})
    return folder


# --- The whole file -------------------------------------------------------------------------------


def test_five_models_become_five_logs_with_their_responses(
    human_rows: Rows, tmp_path: Path
) -> None:
    file = write_jsonl(tmp_path / "responses.jsonl.gz", human_rows[::9])
    run_replay(file, "--log-dir", tmp_path, "--no-score")
    logs = logs_of(tmp_path)
    assert set(logs) == {"gpt4", "llama2new", "llama2orig", "mistralguard", "mistralinstruct"}
    for model, log in logs.items():
        rows = {row["id"]: row for row in human_rows[::9] if row["model"] == model}
        assert log.status == "success"
        assert log.eval.task == "or_eval/replay"
        assert log.eval.model == f"replay/{model}"
        assert f"_replay_{model}_" in log.location
        assert completions(log) == {
            (prompt_id(row["prompt"].strip()), 1): row["response"] for row in rows.values()
        }
        for sample in log.samples or []:
            row = rows[sample.metadata["meta"]["source_id"]]
            assert sample.input == row["prompt"].strip()
            assert sample.metadata["meta"]["human_label"] == row["human_label"]
            assert sample.output.model == model
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        assert (log.eval.metadata or {})["responses"]["sha256"] == digest


# --- What a log holds -----------------------------------------------------------------------------


def test_samples_follow_the_contract_and_are_scored(two_logs: Path, human_rows: Rows) -> None:
    log = logs_of(two_logs)["gpt4"]
    [sample] = [s for s in log.samples or [] if s.metadata["meta"]["source_id"] == "v2-1"]
    assert sample.id == prompt_id(str(sample.input))
    assert sample.target == "unlabelled"
    assert {k: v for k, v in sample.metadata.items() if k != "meta"} == {
        "label": "unlabelled",
        "category": "uncategorised",
        "language": "en",
        "source": "two_models.jsonl",
        "method": None,
        "seed_id": None,
        "pair_id": None,
    }
    assert sample.metadata["meta"]["type"] == "homonyms"
    assert sample.scores is not None
    assert sample.scores["refusal"].value == 0.0
    assert sample.scores["refusal"].metadata["decided_by"] == "rules"
    refused = [s.input for s in log.samples or [] if s.scores and s.scores["refusal"].value == 1.0]
    human = {r["prompt"].strip(): r["human_label"] for r in human_rows if r["model"] == "gpt4"}
    assert all(human[prompt] != "1_full_compliance" for prompt in refused)


def test_nothing_is_spent(two_logs: Path) -> None:
    usage = logs_of(two_logs)["gpt4"].stats.model_usage
    assert [used.total_tokens for used in usage.values()] == [0]


def test_data_frames_tell_the_models_apart(two_logs: Path) -> None:
    assert set(evals_df(str(two_logs), quiet=True)["model"]) == {"replay/gpt4", "replay/llama2orig"}
    samples = samples_df(str(two_logs), quiet=True)
    assert len(samples) == 60
    assert samples["id"].nunique() == 30
    assert messages_df(str(two_logs), quiet=True)["message_id"].nunique() == 120


def test_a_log_is_scored_again_where_its_file_is_gone(two_models: Path, tmp_path: Path) -> None:
    file = tmp_path / "gone.jsonl"
    file.write_bytes(two_models.read_bytes())
    run_replay(file, "--log-dir", tmp_path / "logs", "--no-score")
    file.unlink()
    log = next(Path(tmp_path / "logs").glob("*_gpt4_*"))
    scored = tmp_path / "scored.eval"
    run_inspect("score", log, "--scorer", "or_eval/refusal", "--output-file", scored, cwd=tmp_path)
    assert all(s.scores and "refusal" in s.scores for s in read_eval_log(str(scored)).samples or [])


# --- Prompts from elsewhere -----------------------------------------------------------------------


def test_prompts_bring_labels_and_show_what_was_never_answered(
    two_models: Path, shared_data: Path, tmp_path: Path
) -> None:
    with (shared_data / "prompts" / "xstest.csv").open(encoding="utf-8", newline="") as file:
        published = list(csv.reader(file))
    prompts = tmp_path / "xstest.csv"
    with prompts.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([*published[:29], *published[40:42]])
    output = run_replay(
        two_models, "--log-dir", tmp_path / "logs", "--prompts", prompts, "--source", "xstest"
    )
    assert "gpt4: 28 responses, 2 prompts without one" in output
    assert "2 prompts of the file are not in --prompts" in output
    log = logs_of(tmp_path / "logs")["gpt4"]
    assert log.status == "success"
    [sample] = [s for s in log.samples or [] if s.metadata["meta"]["source_id"] == "26"]
    assert sample.metadata["label"] == "toxic"
    assert sample.metadata["category"] == "contrast_homonyms"
    assert sample.metadata["source"] == "xstest"
    assert sample.output.metadata["source_id"] == "v2-26"
    failed = [s for s in log.samples or [] if s.error is not None]
    assert {s.input for s in failed} == {row[1] for row in published[40:42]}
    for sample in failed:
        assert sample.error is not None
        assert "has no response of 'gpt4' to this prompt" in sample.error.message


def test_labels_columns_and_all_columns_of_our_own_data_sets_are_read(tmp_path: Path) -> None:
    row = {
        "prompt": "How do I kill weeds?",
        "response": "Pull them.",
        "Model": "m",
        "label": "Harmless",
        "category": "violence",
        "lang": "en-GB",
        "method": "fiction",
        "source": "garden",
        "seed_id": "s1",
        "pair_id": "p1",
        "meta": {"length": 4},
        "rater": "A",
    }
    run_replay(write_jsonl(tmp_path / "r.jsonl", [row]), "--log-dir", tmp_path, "--no-score")
    [sample] = logs_of(tmp_path)["m"].samples or []
    assert sample.id == prompt_id("How do I kill weeds?")
    assert sample.metadata == {
        "label": "safe",
        "category": "violence",
        "language": "en-GB",
        "source": "garden",
        "method": "fiction",
        "seed_id": "s1",
        "pair_id": "p1",
        "meta": {"length": 4, "rater": "A"},
    }
    assert sample.output.metadata == {"rater": "A"}


def test_a_prompt_that_one_model_lacks_is_a_failed_sample_of_its_log(tmp_path: Path) -> None:
    rows = [
        {"model": "a", "prompt": "p1", "response": "r1", "kind": "x"},
        {"model": "a", "prompt": "p2", "response": "r2", "kind": "x"},
        {"model": "b", "prompt": "p1", "response": "r3", "kind": "x"},
    ]
    run_replay(write_jsonl(tmp_path / "r.jsonl", rows), "--log-dir", tmp_path, "--no-score")
    log = logs_of(tmp_path)["b"]
    assert {s.input: s.error is None for s in log.samples or []} == {"p1": True, "p2": False}
    assert [s.metadata["meta"] for s in log.samples or []] == [{"kind": "x"}] * 2


def test_contradictory_labels_leave_a_prompt_unlabelled_and_are_told(tmp_path: Path) -> None:
    rows = [
        {"prompt": "p1", "response": "r1", "label": "safe"},
        {"prompt": "p1", "response": "r2", "label": "unsafe"},
        {"prompt": "p2", "response": "r3", "label": "safe"},
    ]
    file = write_jsonl(tmp_path / "r.jsonl", rows)
    output = run_replay(file, "--model", "m", "--log-dir", tmp_path, "--no-score")
    assert "note: 1 prompts are labelled both safe and toxic: now unlabelled" in output
    samples = logs_of(tmp_path)["m"].samples or []
    assert {(s.input, s.target) for s in samples} == {("p1", "unlabelled"), ("p2", "safe")}


# --- Epochs ---------------------------------------------------------------------------------------


def test_a_label_for_all_prompts_and_none_at_all(tmp_path: Path) -> None:
    """Without a label there is one refusal rate, and the shares of the classes."""
    rows = [
        {"prompt": f"How do I kill {what}?", "response": response, "model": "m"}
        for what, response in (
            ("a process", "I'm sorry, I can't help with that."),
            ("time", "Read."),
        )
    ]
    file = write_jsonl(tmp_path / "rows.jsonl", rows)
    run_replay(file, "--log-dir", tmp_path / "safe", "--label", "safe")
    responses = read_logs(tmp_path / "safe").responses
    assert rates(responses)["measure"].tolist() == ["over_refusal"]
    run_replay(file, "--log-dir", tmp_path / "none")
    responses = read_logs(tmp_path / "none").responses
    [rate] = rates(responses).to_dict("records")
    assert (rate["measure"], rate["rate"], rate["n"]) == ("refusal_rate", 0.5, 2)
    shares = class_shares(responses).set_index("response_class")["share"]
    assert shares["direct_refusal"] == 0.5
    labelled = write_jsonl(tmp_path / "own.jsonl", [row | {"label": "toxic"} for row in rows])
    said = try_replay(labelled, "--log-dir", tmp_path / "own", "--label", "safe").exception
    assert "own.jsonl: has labels of its own (in column 'label')" in str(said)


def test_several_responses_are_epochs_in_the_order_of_the_file(tmp_path: Path) -> None:
    counts = {f"prompt {n}": 1 + n % 4 for n in range(40)}
    rows = [
        {"prompt": prompt, "response": f"{prompt}, take {take}", "rated": take}
        for take in range(1, 5)
        for prompt, count in counts.items()
        if take <= count
    ]
    file = write_jsonl(tmp_path / "r.jsonl", rows)
    run_replay(file, "--model", "m", "--log-dir", tmp_path, "--no-score")
    log = logs_of(tmp_path)["m"]
    assert log.eval.config.epochs == 4
    assert len(log.samples or []) == len(rows)
    for sample in log.samples or []:
        assert sample.error is None
        assert sample.output.completion == f"{sample.input}, take {sample.epoch}"
        assert sample.output.metadata == {"rated": sample.epoch}


@solver
def failing_at_first() -> Solver:
    """Fail in the first attempt at each sample and epoch, then generate."""
    tried: set[tuple[object, int]] = set()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if (state.sample_id, state.epoch) not in tried:
            tried.add((state.sample_id, state.epoch))
            raise RuntimeError("first attempt")
        return await generate(state)

    return solve


def test_a_sample_tried_again_gets_the_response_of_its_epoch(tmp_path: Path) -> None:
    from or_eval.tasks import prompts

    rows = [{"prompt": f"p{n}", "response": f"p{n}/{k}"} for k in (1, 2, 3) for n in range(4)]
    file = write_jsonl(tmp_path / "r.jsonl", rows)
    [log] = run_tasks(
        prompts(data=str(file), label="safe"),
        model="replay/anyone",
        model_args={"responses": str(file)},
        solver=failing_at_first(),
        epochs=3,
        retry_on_error=1,
        score=False,
        log_dir=str(tmp_path),
    )
    assert log.status == "success"
    assert {(s.output.completion, f"{s.input}/{s.epoch}") for s in log.samples or []} == {
        (row["response"], row["response"]) for row in rows
    }
    assert all(s.error_retries for s in log.samples or [])


def test_a_prompt_that_repeats_costs_no_more_than_others(tmp_path: Path) -> None:
    """Samples are the rows, not all prompts as often as the one with most responses."""
    rows = [{"prompt": f"p{n if n > 40 else 0}", "response": f"r{n}"} for n in range(1, 101)]
    file = write_jsonl(tmp_path / "r.jsonl", rows)
    run_replay(file, "--model", "m", "--label", "safe", "--log-dir", tmp_path)
    [log] = logs_of(tmp_path).values()
    assert log.results is not None
    assert log.results.total_samples == log.results.completed_samples == len(rows)
    assert log.results.early_stopping is None
    assert completions(log)[prompt_id("p0"), 40] == "r40"
    responses = read_logs(tmp_path).responses
    assert responses.groupby("id")["epoch"].max().sort_values().tolist() == [*[1] * 60, 40]
    assert responses["id"].nunique() == 61


def test_repeated_rows_are_epochs_and_are_told(tmp_path: Path) -> None:
    rows = [{"prompt": p, "response": "Sorry, no."} for p in ("p1", "p2", "p1")]
    file = write_jsonl(tmp_path / "r.jsonl", rows)
    output = run_replay(file, "--model", "m", "--log-dir", tmp_path, "--no-score")
    assert "note: 1 rows repeat an earlier one" in output
    assert "m: 3 responses: " in output


# --- The provider on its own ----------------------------------------------------------------------


async def ask(file: Path, model: str, prompt: str) -> Any:
    return await get_model(f"replay/{model}", memoize=False, responses=str(file)).generate(prompt)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_any_task_is_answered(two_models: Path, human_rows: Rows) -> None:
    for model in ("gpt4", "llama2orig"):
        [row] = [r for r in human_rows if r["model"] == model and r["id"] == "v2-7"]
        assert (await ask(two_models, model, row["prompt"])).completion == row["response"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("replay/gpt4 -M responses=gone.jsonl", "gone.jsonl: there is no such file"),
        ("replay/gpt4", "give -M responses=FILE"),
        ("replay/typo -M responses=one.jsonl", "one.jsonl: has no responses of 'typo'; it has"),
    ],
)
def test_an_eval_that_could_not_replay_does_not_start(
    options: str, problem: str, tmp_path: Path
) -> None:
    write_jsonl(tmp_path / "one.jsonl", [OK])
    task = ("eval", "or_eval/starter", "--limit", 1, "--display", "plain")
    result = run_command("inspect", *task, "--model", *options.split(), cwd=tmp_path)
    shown = " ".join((result.stdout + result.stderr).split())
    assert problem in shown
    assert "Traceback" not in shown
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_what_a_provider_said_is_kept(tmp_path: Path) -> None:
    rows = [
        {"prompt": "empty", "response": "", "finish_reason": "stop"},
        {"prompt": "blocked", "response": "", "finish_reason": "SAFETY"},
        {"prompt": "cut", "response": "Well,", "finish_reason": "length"},
        {"prompt": "thought", "response": "Yes.", "reasoning_content": "I cannot… or can I?"},
        {"prompt": "null", "response": None, "finish_reason": "RECITATION"},
        {"prompt": "NaN", "response": float("nan")},
    ]
    file = write_jsonl(tmp_path / "r.jsonl", rows)
    outputs = {r["prompt"]: await ask(file, "m", r["prompt"]) for r in rows}
    assert {p: (o.completion, o.stop_reason) for p, o in outputs.items()} == {
        "empty": ("", "stop"),
        "blocked": ("", "content_filter"),
        "cut": ("Well,", "max_tokens"),
        "thought": ("Yes.", "stop"),
        "null": ("", "content_filter"),
        "NaN": ("", "stop"),
    }
    told = {p: read_output(o).provenance for p, o in outputs.items()}
    assert (told["blocked"], told["null"]) == ("provider_filter", "recitation_filter")
    assert outputs["thought"].message.content[0].reasoning == "I cannot… or can I?"
    with pytest.raises(LookupError, match="no response of 'm' to this prompt"):
        await ask(file, "m", "unknown")


def test_hostile_names_stay_inside_the_folder(tmp_path: Path) -> None:
    names = ["../../up", "a/b\\c", "{task}{id}", "gpt4[32k]", "%s 模型 🚀", "m" * 150, "none", ".."]
    rows = [{**OK, "model": name} for name in names]
    folder = tmp_path / "deep" / "logs"
    run_replay(write_jsonl(tmp_path / "r.jsonl", rows), "--log-dir", folder, "--no-score")
    assert set(logs_of(folder)) == set(names)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.parent for path in written} == {tmp_path, folder}


# --- Running it again -----------------------------------------------------------------------------


def test_a_second_run_into_the_same_folder_never_doubles_a_model(tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "r.jsonl", [OK])
    logs = tmp_path / "logs"
    run_replay(file, "--log-dir", logs, "--no-score")
    [first] = logs.glob("*.eval")
    result = try_replay(file, "--log-dir", logs, "--no-score")
    assert isinstance(result.exception, DataError)
    assert "already has logs of m" in str(result.exception)
    assert list(logs.glob("*.eval")) == [first]
    run_replay(file, "--log-dir", logs, "--no-score", "--overwrite")
    [second] = logs.glob("*.eval")
    assert second != first
    other = write_jsonl(tmp_path / "other.jsonl", [{**OK, "model": "n"}])
    run_replay(other, "--log-dir", logs, "--no-score")
    assert set(logs_of(logs)) == {"m", "n"}


def test_two_runs_at_once_write_no_model_twice(tmp_path: Path) -> None:
    file, logs = write_jsonl(tmp_path / "r.jsonl", [OK]), tmp_path / "logs"
    logs.mkdir()
    with locked(logs, "replays"):
        result = try_replay(file, "--log-dir", logs, "--no-score")
    assert str(result.exception).startswith(f"{logs}: another process replays here (process ")
    assert not list(logs.glob("*.eval"))
    run_replay(file, "--log-dir", logs, "--no-score")
    assert set(logs_of(logs)) == {"m"}


def test_a_full_disk_leaves_no_half_of_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(archive: ZipFile, name: str, *_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ZipFile, "writestr", full)
    result = try_replay(write_jsonl(tmp_path / "r.jsonl", [OK]), "--model-column", "model", "--log-dir", tmp_path / "logs", "--no-score")  # fmt: skip
    assert isinstance(result.exception, DataError)
    assert "can't be written (No space left on device)" in str(result.exception)
    assert not list((tmp_path / "logs").glob("*.eval"))


def test_an_interrupted_run_leaves_no_log_that_looks_complete(tmp_path: Path) -> None:
    rows = [{**OK, "prompt": f"p{n}", "language": "en"} for n in range(1000)]
    file, logs = write_jsonl(tmp_path / "r.jsonl", rows), tmp_path / "logs"
    process = Command("or-eval", "replay", file, "--log-dir", logs)
    deadline = time.monotonic() + 60
    while not (logs / ".lock").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    # Again and again, as a person would: one that comes while Inspect sets up may be lost.
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert not list(logs.glob("*.eval"))
