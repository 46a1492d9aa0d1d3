"""The ``gguf`` provider on a real model: SmolLM2 by llama.cpp in this process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from inspect_ai import Task, eval
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import GenerateConfig, ResponseSchema, get_model
from inspect_ai.util import JSONSchema

from or_eval.models.gguf import HubFile, find_gguf, server_address, server_settings

MODEL = "gguf/smollm2-135m-instruct"


def ask(prompts: list[str], log_dir: Path, **options: object) -> EvalLog:
    task = Task(dataset=[Sample(input=prompt, id=i) for i, prompt in enumerate(prompts, 1)])
    settings = {"max_tokens": 8, "temperature": 0, "display": "none", **options}
    return eval(task, model=MODEL, log_dir=str(log_dir), model_args={"n_ctx": 512}, **settings)[0]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    return ask(["Say hello.", "word " * 900], tmp_path_factory.mktemp("gguf"))


def test_log_has_usage_and_stop_reason_as_for_any_provider(log: EvalLog) -> None:
    assert log.status == "success"
    assert log.eval.model == MODEL
    output = log.samples[0].output
    assert output.completion.strip()
    assert output.stop_reason == "max_tokens"
    assert output.usage.output_tokens == 8
    assert output.usage.input_tokens > 5


def test_prompt_longer_than_the_context_is_said(log: EvalLog) -> None:
    output = log.samples[1].output
    assert output.stop_reason == "model_length"
    assert "n_ctx=512" in output.error


def test_log_names_no_port_and_no_path(log: EvalLog) -> None:
    text = json.dumps(log.model_dump(mode="json"), default=str)
    assert "127.0.0.1" not in text
    assert str(find_gguf("smollm2-135m-instruct").parent) not in text


def test_structured_output_is_kept_to(tmp_path: Path) -> None:
    schema = JSONSchema(
        type="object",
        properties={"ok": JSONSchema(type="boolean")},
        required=["ok"],
        additionalProperties=False,
    )
    log = ask(
        ["Is water wet? Answer in JSON."],
        tmp_path,
        max_tokens=20,
        response_schema=ResponseSchema(name="verdict", json_schema=schema),
    )
    assert isinstance(json.loads(log.samples[0].output.completion)["ok"], bool)


def test_threads_sleep_while_they_wait_and_let_the_process_end() -> None:
    """On one core the process is at its end before the server's own thread has begun.

    Spinning, threads would come to a halt beside any other busy process.
    """
    code = (
        "import os; os.sched_setaffinity(0, {0});"
        "from or_eval.models.gguf import find_gguf, server_address, server_settings;"
        "file = find_gguf('smollm2-135m-instruct');"
        "server_address(file, server_settings({'n_ctx': 64, 'n_parallel': 1}))"
    )
    env = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    told = subprocess.run(
        [sys.executable, "-c", code],
        env=env | {"OMP_DISPLAY_ENV": "TRUE"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stderr
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in told


def test_naming_a_model_loads_nothing() -> None:
    from or_eval.models import gguf

    before = dict(gguf._servers)
    get_model(MODEL, config=GenerateConfig(seed=1), memoize=False, n_threads=1)
    assert gguf._servers == before


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"", "is empty"), (b"PK\x03\x04", "not a GGUF file"), (b"GGUF" + b"\0" * 64, "can't load")],
)
def test_file_that_is_no_model_gets_one_line(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(PrerequisiteError) as error:
        server_address(find_gguf(str(path)), server_settings({}))
    assert complaint in str(error.value.message)
    assert "\n" not in str(error.value.message)


def test_names_are_resolved_or_refused() -> None:
    assert find_gguf("owner/name:file.gguf") == HubFile("owner/name", "file.gguf")
    with pytest.raises(PrerequisiteError, match="there is no such file"):
        find_gguf("no-such-model")


@pytest.mark.parametrize(
    "given", [{"n_ctxx": 1}, {"n_ctx": "many"}, {"n_ctx": 0}, {"n_parallel": True}]
)
def test_wrong_model_arguments_get_one_line(given: dict[str, object]) -> None:
    with pytest.raises(PrerequisiteError) as error:
        server_settings(given)
    assert next(iter(given)) in str(error.value.message)
