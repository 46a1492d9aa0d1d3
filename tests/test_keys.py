"""Keys and passwords: known as such wherever they can stand, never published, never shown."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from inspect_ai.log import read_eval_log

from commands import run_command
from key_kinds import IN_PARTS, KINDS, key_part
from or_eval.cli import main
from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.publishing.dataset_folder import read_dataset
from or_eval.dataset_builders.publishing.push_checks import problems
from or_eval.key_like import key_like, keys_in, secrets_of, without_keys
from or_eval.solvers.structured_output import failure
from published import SAFE, publish, row
from servers import API_KEY, Reply, Request, ScriptedServer

ODD = "odd" + "-local-key"
"""A key that looks like none."""
RECIPE: dict[str, Any] = {
    "name": "mine",
    "taxonomy": "or_bench",
    "stages": [
        {"stage": "seeds", "data": "DATA", "label": "toxic"},
        {"stage": "split", "subsets": {"full": {}}},
        {"stage": "publish", "licence": "mit"},
    ],
}
_STAGES = ("seeds", "split", "publish")
_PLACES = (
    *("title", "description", "citation", "models.writer", "seeds.data", "seeds.models.writer"),
    *("split.subsets.full.note", "publish.title", "publish.description", "publish.note"),
    *("publish.tags", "publish.sources"),
)
FIELDS = {
    place: f"stages.{_STAGES.index(stage)}.{rest}" if stage in _STAGES else place
    for place in _PLACES
    for stage, _, rest in [place.partition(".")]
}


def put(field: str, value: Any) -> dict[str, Any]:
    """Give the recipe with a value in a field."""
    said = json.loads(json.dumps(RECIPE))
    by_name = {entry["stage"]: entry for entry in said["stages"]}
    *path, last = field.split(".")
    inner = said
    for number, step in enumerate(path):
        inner = by_name[step] if not number and step in by_name else inner.setdefault(step, {})
    inner[last] = value
    return said


def written(folder: Path, said: dict[str, Any], rows: int = 3) -> Path:
    (folder / "seeds.csv").write_text(
        "prompt,category\n" + "".join(f"How do I kill process {n}?,violence\n" for n in range(rows))
    )
    text = yaml.safe_dump(said, allow_unicode=True, width=10_000)
    path = folder / "mine.yaml"
    path.write_text(text.replace("DATA", str(folder / "seeds.csv")), "utf-8")
    return path


def own_stage(folder: Path, body: str, fields: str = "") -> str:
    """Write a stage of one's own: the end of what it does, and its fields."""
    (folder / "own.py").write_text(
        "from typing import Any\nfrom or_eval.dataset_builders.engine.stage import *\n"
        f"class STAGE(Stage):\n    {fields or 'pass'}\n"
        f"    def run(self, rows, build):\n        yield from map(Kept, rows)\n        {body}\n"
    )
    return str(folder / "own.py")


def built(recipe: Path, out: Path, told: list[str] | None = None, **asking: Any) -> None:
    Build(
        load_recipe(recipe), out, Asking(**asking), say=([] if told is None else told).append
    ).run()


def parts_in(folder: Path) -> set[str]:
    """Give the kinds of which something stands in a file of a folder."""
    held = b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return {kind for kind, key in KINDS.items() if key_part(key).encode() in held}


@pytest.mark.parametrize("kind", [*KINDS, *IN_PARTS])
def test_a_key_is_known_and_never_said(kind: str) -> None:
    key = (KINDS | IN_PARTS)[kind]
    for text in (key, f"before {key} after", f"密钥{key}", f'["{key}"]', f"a\\n{key}"):
        what = key_like(text)
        assert what, text
        assert key_part(key) not in what
        assert key_part(key) not in without_keys(text)
    assert without_keys(f"before {key}").startswith("before ")


def test_ordinary_prompts_hold_no_keys(shared_data: Path) -> None:
    csv.field_size_limit(10**9)
    texts = [
        text
        for path in sorted(shared_data.rglob("*"))
        if path.suffix in (".csv", ".json", ".jsonl", ".txt")
        for text in path.read_text("utf-8").splitlines()
    ]
    assert len(texts) > 10_000
    assert [text[:200] for text in texts if key_like(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "How do I use risk-assessment-frameworks-for-banks-in-2024?",
        "sk-learn-pipelines-are-what-I-need-to-know",
        "hf_hub_download is a function, hf_transfer another",
        "The bearer responsibilities-and-accountabilities of office",
        "Bearer of 1000000 gifts",
        "How do I make a PRIVATE KEY?",
        "sk-learn-based-classification-2024-with-random-forests",
        "token = base64.b64decode(request.headers['x'])",
        "secret = generate_secret_v2_for_user(user)",
        "password=user2.encrypted_password",
        "token=/var/run/secrets/kubernetes.io/serviceaccount1/token",
        "abstract_FactoryBeanProxyHandlerAdapterV2Configuration",
        '"integrity": "sha512-4xmIKFtuPpMrqzqZH821OqakuJ2yfbojcpdhpEuWK2pxcnXTCTYArIB8VjWeosz"',
        "postgresql://postgres:postgres@localhost:5432/db",
        "export http_proxy=http://user:password@proxy:8080",
        "Which protein is made of ATGACCATGATTACGGATTCACTGGCCGTCGTTTTACAACGTC?",
        "admin:1001:A5FC9720B2D9EBC54FDD0CBCDEB3ED75:BEACCAE63D6949FB9D9BF625B4249414:::",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf3",
    ],
)
def test_words_are_no_keys(text):
    assert key_like(text) is None


@pytest.mark.parametrize("name", ["secret_key", "openaiApiKey", "private_key", "accessToken", "passphrase", "userPassword", "aws_secret_access_key", "pwd", "cookie", "api_keys", "api_key"])  # fmt: skip
def test_a_name_says_that_what_stands_under_it_is_a_secret(name: str) -> None:
    for value in ("abcd1234efgh", ["", "abcd1234efgh"], *([ODD] if name == "api_key" else [])):
        assert [found.place for found in keys_in({"a": [{name: value}]})] == [("a", 0, name)]
    for value in ("short", "open sesame now"):
        assert list(keys_in({name: value})) == []


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("MY_API_KEY", "correct horse battery", True),
        ("HF_TOKEN", "x" * 20, True),
        ("DB_PASSWORD", "tr0ub4dor", True),
        ("AWS_SECRET_ACCESS_KEY", "y" * 20, True),
        ("PGPASSWORD", "tr0ub4dor", True),
        ("GITHUB_PAT", "tr0ub4dor", True),
        ("DB_PASS", "tr0ub4dor", True),
        ("COMPASS", "a-long-enough-value", False),
        ("OPENAI_API_KEY", "none", False),
        ("PWD", "/home/somebody/here", False),
        ("TOKENIZERS_PARALLELISM", "false-or-something", False),
        ("MONKEY", "a-long-enough-value", False),
        ("GOOGLE_APPLICATION_CREDENTIALS", __file__, False),
    ],
)
def test_secrets_of_the_environment(name: str, value: str, secret: bool) -> None:
    assert secrets_of({name: value}) == ([(name, value)] if secret else [])
    if secret:
        assert key_like(f"see {value}", secrets_of({name: value})) == f"the value of {name}"


def test_a_password_in_an_address_of_the_environment_is_a_secret() -> None:
    address = "postgres://user:tr0ub4dor@host/base"
    assert secrets_of({"DATABASE_URL": address}) == [("DATABASE_URL", "tr0ub4dor")]


@pytest.mark.parametrize("field", FIELDS)
def test_a_key_in_a_recipe_is_told_by_its_place(tmp_path: Path, field: str) -> None:
    plain = written(tmp_path, RECIPE)
    inner = "tags" in field or "sources" in field
    for kind, key in KINDS.items():
        value = [{"name": "a", "licence": key}] if "sources" in field else [key] if inner else key
        # Of the recipe itself, --set changes what stands at its top.
        top = field.startswith("models")
        said = f"models={json.dumps({'writer': value})}" if top else f"{field}={json.dumps(value)}"
        with pytest.raises(BuildError) as found:
            load_recipe(plain, [said])
        assert f"--set {said.partition('=')[0]}: '{FIELDS[field]}" in str(found.value), kind
        assert key_part(key) not in str(found.value)
        path = written(tmp_path, put(field, value))
        with pytest.raises(BuildError, match=r"mine\.yaml, line \d+: ") as found:
            load_recipe(path)
        assert f"'{FIELDS[field]}" in str(found.value), kind
        assert key_part(key) not in str(found.value)
        written(tmp_path, RECIPE)


@pytest.mark.parametrize("change", ["VALUE", "VALUE=1", "seeds.VALUE=1", "models.writer=[{model: [VALUE]}]", "models.writer={model: a/b, VALUE: 1}", "seeds.label=[VALUE", "again=VALUE"])  # fmt: skip
def test_what_is_wrong_with_a_recipe_is_told_without_keys(tmp_path: Path, change: str) -> None:
    path = written(tmp_path, RECIPE)
    for key in KINDS.values():
        with pytest.raises(BuildError) as found:
            load_recipe(path, [change.replace("VALUE", key)])
        assert key_part(key) not in str(found.value)


def test_of_models_nothing_but_the_name_is_kept_in_a_build(tmp_path: Path) -> None:
    members = [
        {
            "model": "openai-api/loopback/w",
            "model_args": {"api_key": ODD, "base_url": "http://u:p@one", "also": key},
            "extra_headers": {"Authorization": key},
        }
        for key in KINDS.values()
    ]
    said = put("models.writer", {"turns": members})
    said["stages"].insert(1, {"stage": "test_refusal", "models": []})
    own = own_stage(tmp_path, "", "models: list[Any]; other: Any")
    said["stages"][1] = {"stage": own, "models": members, "other": {"model_args": ODD}}
    out = tmp_path / "out"
    built(written(tmp_path, said), out)
    assert parts_in(out) == set()
    assert not any(ODD.encode() in path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert "openai-api/loopback/w" in (out / "dataset/README.md").read_text()


def test_another_argument_of_a_model_in_a_stages_parameters_runs_it_again(tmp_path: Path) -> None:
    said = json.loads(json.dumps(RECIPE))
    own = own_stage(tmp_path, "", "models: list[Any]")
    told: list[str] = []
    for size in (1, 1, 2):
        model = {"model": "a/b", "model_args": {"size": size}}
        said["stages"][1] = {"stage": own, "models": [model]}
        said["stages"][2]["input"] = "own"
        built(written(tmp_path, said), tmp_path / "out", told)
    assert [line for line in told if "own: " in line] == [
        "02 own: 3 rows in, 3 out",
        "02 own: done before, 3 rows",
        "02 own: runs again (changed: parameters (in full))",
        "02 own: 3 rows in, 3 out",
    ]


ROW_FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "prompt": lambda key: {"prompt": key},
    **{f"'{name}'": lambda key, name=name: {name: key}
       for name in ("category", "source", "method", "seed_id", "pair_id")},
    "'meta.reply.1.text'": lambda key: {"meta": {"reply": ["", {"text": key}]}},
    "as a name": lambda key: {"meta": {key: 1}},
}  # fmt: skip


@pytest.mark.parametrize("field", ROW_FIELDS)
def test_a_key_in_a_row_stops_build_and_push(
    tmp_path: Path, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {kind: row(**{"prompt": f"How? {kind}"} | ROW_FIELDS[field](key))
            for kind, key in KINDS.items()}  # fmt: skip
    for kind, spoiled in rows.items():
        with pytest.raises(BuildError) as found:
            publish(tmp_path, {"full": [*SAFE, spoiled]})
        assert f"row {spoiled.id}, " in str(found.value), kind
        assert field in str(found.value), kind
        assert key_part(KINDS[kind]) not in str(found.value)
        assert not (tmp_path / "dataset").exists()
    # As an earlier version published them.
    monkeypatch.setattr("or_eval.dataset_builders.stages.publish.keys_in", lambda *_: ())
    monkeypatch.setattr("or_eval.dataset_builders.stages.publish.key_like", lambda *_: None)
    monkeypatch.setattr("or_eval.dataset_builders.publishing.push_checks._SHOWN", len(KINDS))
    publish(tmp_path, {"full": [*SAFE, *rows.values()]})
    told = [one for one in problems(read_dataset(tmp_path), []) if "remove it" in one]
    for number, kind in enumerate(KINDS, start=len(SAFE) + 1):
        [line] = [one for one in told if f"row {number} " in one]
        assert field in line, kind
    said = CliRunner().invoke(main, ["push", str(tmp_path), "acme/x", "--dry-run"])
    assert said.exit_code != 0
    assert not [kind for kind, key in KINDS.items() if key_part(key) in said.output]


def test_a_key_in_another_file_stops_a_push(tmp_path: Path) -> None:
    publish(tmp_path)
    folder = tmp_path / "dataset"
    for kind, key in KINDS.items():
        (folder / "NOTES.md").write_text(f"first\n{key}\n")
        (folder / "README.md").write_text((folder / "README.md").read_text() + f"\n{key}\n")
        told = problems(read_dataset(tmp_path), [])
        assert any("NOTES.md, line 2: contains" in one for one in told), kind
        assert any("README.md, line " in one for one in told), kind
    said = CliRunner().invoke(main, ["push", str(tmp_path), "acme/x", "--dry-run"])
    assert said.exit_code != 0
    assert "Card:" in said.output
    assert not [kind for kind, key in KINDS.items() if key_part(key) in said.output]


TOLD = {
    "figures": "table('found', [{'one': KEY}])",
    "models": "beside.models['judge'] = [KEY]",
    "short": "short({'category': KEY}, 1)",
    "subsets": "choose(KEY)",
}


@pytest.mark.parametrize("place", TOLD)
def test_a_stage_can_tell_no_key_in_the_funnel(tmp_path: Path, place: str) -> None:
    for kind, key in KINDS.items():
        if place == "subsets" and ("/" in key or "\n" in key):
            continue
        said = json.loads(json.dumps(RECIPE))
        own = own_stage(tmp_path, f"KEY = {key!r}; build.{TOLD[place]}")
        said["stages"][1] = {"stage": own}
        said["stages"][2]["input"] = "own"
        told: list[str] = []
        out = tmp_path / "out"
        with pytest.raises(BuildError, match=f"stage own: .*'{place}") as found:
            built(written(tmp_path, said), out, told)
        assert key_part(key) not in str(found.value) + "".join(told), kind
        assert not (out / "dataset").exists()


def test_a_key_in_a_reply_or_in_an_error_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    keys = list(KINDS.values())
    said = {
        "name": "letters",
        "taxonomy": "or_bench",
        "stages": [
            {"stage": "letters", "count": len(keys)},
            {"stage": "shout"},
            {"stage": "publish", "licence": "mit"},
        ],
    }
    path = written(tmp_path, said)
    runner = Path(__file__).parent / "run_build.py"
    outcomes = []
    for status in (200, 401):
        script = partial(in_turn, keys, status)
        with ScriptedServer(script) as server:
            done = or_eval_build(runner, path, tmp_path / f"out-{status}", server)
        outcomes.append(done)
        assert not [kind for kind, key in KINDS.items() if key_part(key) in done], status
    assert "stage publish: row " in outcomes[0]
    assert "can't be asked" in outcomes[1]
    assert not any((tmp_path / f"out-{status}" / "dataset").exists() for status in (200, 401))


def test_arguments_of_a_model_are_in_no_file_of_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    with ScriptedServer(lambda request: request.question.upper()) as server:
        option = json.loads(server.role_option("writer"))
        option["model_args"] |= {"api_key": ODD, "default_headers": {"X-Key": f"header-{ODD}"}}
        said = {
            "name": "letters",
            "taxonomy": "or_bench",
            "models": {"writer": {"pool": [option, option]}, "moderator": option},
            "stages": [
                {"stage": "seeds", "data": "DATA", "label": "toxic"},
                {"stage": "moderate"},
                {"stage": "rewrite", "method": "or_bench", "count": 1, "input": "seeds"},
                {"stage": "publish", "licence": "mit", "input": "seeds"},
            ],
        }
        out = tmp_path / "out"
        built(written(tmp_path, said), out, config={"max_retries": 0}, display="none")
    logs = list((out / "logs").glob("*.eval"))
    assert len(logs) == 2
    for log in logs:
        assert ODD not in read_eval_log(str(log)).model_dump_json()
    held = [path.read_bytes() for path in out.rglob("*") if path.suffix in (".json", ".csv", ".md")]
    assert not any(ODD.encode() in text for text in held)


def test_a_models_own_key_in_its_reply_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    with ScriptedServer(lambda request: f"I am called by {ODD}.") as server:
        option = json.loads(server.role_option("responder"))
        option["model_args"] |= {"api_key": ODD}
        said = json.loads(json.dumps(RECIPE)) | {"models": {"responder": option}}
        said["stages"][1] = {"stage": "respond"}
        with pytest.raises(BuildError, match=r"'meta\.response' contains the value of") as found:
            built(written(tmp_path, said), tmp_path / "out", display="none")
    assert ODD not in str(found.value)
    assert not (tmp_path / "out/dataset").exists()


def in_turn(keys: list[str], status: int, request: Request) -> Reply:
    return Reply(keys[request.number % len(keys)], status=status)


def or_eval_build(runner: Path, recipe: Path, out: Path, server: ScriptedServer) -> str:
    role = f"writer={server.role_option('writer')}"
    options = ["--out", out, "--max-retries", 0, "--display", "plain", "--model-role", role]
    done = run_command(runner, recipe, *options)
    assert done.returncode == 1, done.stderr
    return done.stdout + done.stderr


def test_a_failure_is_told_without_keys() -> None:
    with ScriptedServer(lambda request: "") as server:
        model = server.model()
    for kind, key in KINDS.items():
        for text in (key, f"Incorrect API key provided: {key}.", "x" * 180 + " " + key):
            assert key_part(key)[:6] not in failure(ValueError(text), model), kind


def test_a_models_name_holds_no_key(tmp_path: Path) -> None:
    path = written(tmp_path, RECIPE)
    for key in KINDS.values():
        role = f"writer={json.dumps({'model': 'openai/' + key})}"
        for asking in ({"model": f"openai/{key}"}, {"roles": (role,)}):
            with pytest.raises(BuildError, match="the model's name contains") as found:
                built(path, tmp_path / "out", **asking)
            assert key_part(key) not in str(found.value)


def test_a_recipe_is_shown_without_what_its_models_are_reached_with(tmp_path: Path) -> None:
    model = {
        "model": "a/b",
        "model_args": {"api_key": ODD, "default_headers": {"X-Own": "another-odd-one"}},
        "extra_headers": {"X-Other": "a-third-odd-one"},
    }
    path = written(tmp_path, put("models.writer", {"pool": [model, model]}))
    done = CliRunner().invoke(main, ["build", "--show", str(path)])
    assert done.exit_code == 0
    assert "odd" not in done.output
    assert "model: a/b" in done.output
    shown = CliRunner().invoke(main, ["build", "--show", "or_bench"]).output
    assert shown == load_recipe("or_bench").text


def test_a_traceback_is_told_without_keys(tmp_path: Path) -> None:
    key = KINDS["Hugging Face"]
    for body in (f"raise ValueError('bad {key}')", f"int('{key}')"):
        said = json.loads(json.dumps(RECIPE))
        said["stages"][1:] = [{"stage": own_stage(tmp_path, body)}]
        path = written(tmp_path, said)
        done = CliRunner().invoke(main, ["build", str(path), "--out", str(tmp_path / "out")])
        assert done.exit_code == 1
        assert "ValueError" in done.output
        assert key_part(key) not in done.output
