"""`or-eval push` against a Hub of our own on loopback, with the Hub's real clients."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
import yaml

from commands import Command
from hub_server import READER, TOKEN, Fault, HubServer, Repo
from made_logs import made_log
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.publishing.dataset_folder import read_dataset
from or_eval.dataset_builders.publishing.push import check_name
from or_eval.dataset_builders.publishing.push_checks import problems
from or_eval.folder_lock import locked
from or_eval.sources import DataError
from published import SAFE, SUBSETS, TOXIC, publish, row
from report_logs import varied

# One process for all commands: the clients read HF_ENDPOINT when they are imported, which takes
# seconds. Each line it reads is a command line and changes of the environment.
PROGRAM = """
import json, os, sys
from contextlib import redirect_stdout
from click.testing import CliRunner
from or_eval.cli import main
from or_eval.sources import load_prompts
for line in sys.stdin:
    arguments, environment = json.loads(line)
    if arguments[0] == "load":
        from datasets import load_dataset
        said, code = load_dataset(*arguments[1:], split="train").to_list(), 0
    elif arguments[0] == "task":
        from inspect_ai._eval.task.hf import task_create_from_hf
        with redirect_stdout(sys.stderr):
            tasks, code = task_create_from_hf(arguments[1]), 0
        said = [[t.name, [[s.input, s.target] for s in t.dataset]] for t in tasks]
    elif arguments[0] == "read":
        said, code = [[r.id, r.prompt, r.label] for r in load_prompts(arguments[1]).records], 0
    else:
        done = CliRunner(env=environment).invoke(main, arguments)
        said, code = done.output, done.exit_code
        if done.exception and not isinstance(done.exception, SystemExit):
            said += repr(done.exception)
    print(json.dumps([code, said]), file=sys.__stdout__, flush=True)
"""


class Said(NamedTuple):
    """What a command returned and printed."""

    code: int
    output: str

    @property
    def error(self) -> str:
        """The one line of a failed command, without what the Hub's client logs."""
        assert self.code == 1, self.output
        (line,) = [line for line in self.output.splitlines() if line.startswith("Error: ")]
        assert "Traceback" not in self.output
        return line


Run = Callable[..., Said]


@pytest.fixture(scope="module")
def server() -> Iterator[HubServer]:
    with HubServer() as hub:
        yield hub


@pytest.fixture
def hub(server: HubServer) -> HubServer:
    server.repos.clear()
    server.large.clear()
    server.requests.clear()
    server.faults.clear()
    server.before = lambda request: None
    return server


@pytest.fixture(scope="module")
def run(server: HubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    home = tmp_path_factory.mktemp("hf")
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={key: value for key, value in os.environ.items() if not key.startswith("HF_")}
        | server.environment(home)
        | {"HF_HUB_DISABLE_PROGRESS_BARS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def run(*arguments: object, **environment: str | None) -> Said:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps([list(map(str, arguments)), environment]) + "\n")
        process.stdin.flush()
        said = Said(*json.loads(process.stdout.readline()))
        assert TOKEN not in str(said.output)
        return said

    yield run
    process.stdin.close()  # type: ignore[union-attr]
    process.wait(timeout=20)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built")
    publish(out)
    return out


def rows_of(folder: Path, name: str) -> list[dict[str, str | None]]:
    return read_dataset(folder).table(name).to_pylist()


def pushed_card(hub: HubServer, branch: str = "main") -> str:
    return hub.repos["acme/prompts"].now(branch)["README.md"].decode()


def asked(hub: HubServer, *verbs: str) -> list[str]:
    return [request for request in hub.requests if request.startswith(verbs)]


# ---- What comes of a push --------------------------------------------------------------------


def test_a_pushed_set_is_there_whole_and_loads_as_it_was(hub, run, built):
    said = run("push", built, "acme/prompts", "--yes")
    assert said.code == 0, said.output
    assert "Loaded back, and the same: full 3 prompts, hard-1 2 prompts, toxic 2 prompts" in said.output  # fmt: skip
    repo = hub.repos["acme/prompts"]
    assert not repo.private
    assert len(repo.messages) == 2, "the first commit of the Hub, and one of ours"
    assert set(repo.now()) == {".gitattributes", "README.md", "eval.yaml", *(f"{name}/train.parquet" for name in SUBSETS)}  # fmt: skip
    for name in SUBSETS:
        assert run("load", "acme/prompts", name).output == rows_of(built, name)
    assert run("load", "acme/prompts").output == rows_of(built, "full")
    assert 'load_dataset("acme/prompts", "toxic"' in pushed_card(hub)
    assert "OWNER/NAME" not in pushed_card(hub)
    hub.requests.clear()
    assert run("push", built, "acme/prompts", "--yes").code == 0
    assert len(repo.messages) == 2, "nothing changed, so no commit"
    got = " ".join(asked(hub, "GET"))
    assert all(f"/{name}/train.parquet" in got for name in SUBSETS), "compared with what is there"


def test_tasks_read_it_as_prompts(hub, run, built):
    run("push", built, "acme/prompts", "--yes")
    assert run("read", "acme/prompts:toxic").output == [[r.id, r.prompt, "toxic"] for r in TOXIC]


def test_inspect_runs_it_from_the_hub(hub, run, built):
    run("push", built, "acme/prompts", "--yes")
    said = run("task", "hf/acme/prompts").output
    assert [name for name, _ in said] == [f"hf/acme/prompts/{name}" for name in SUBSETS]
    assert said[2][1] == [[row.prompt, "toxic"] for row in TOXIC]
    told = yaml.safe_load(hub.repos["acme/prompts"].now()["eval.yaml"])
    assert (told["name"], told["evaluation_framework"]) == ("Test prompts", "inspect-ai")


def test_a_benchmark_has_no_task_of_prompts_that_nobody_labelled(hub, run, tmp_path):
    unlabelled = [row("How do I open a lock?", "unlabelled")]
    publish(tmp_path, {"full": SAFE, "other": unlabelled})
    run("push", tmp_path, "acme/prompts", "--yes")
    told = yaml.safe_load(hub.repos["acme/prompts"].now()["eval.yaml"])
    assert [task["id"] for task in told["tasks"]] == ["full"]
    (tmp_path / "dataset" / "eval.yaml").write_text("name: mine\n", "utf-8")
    run("push", tmp_path, "acme/prompts", "--yes")
    assert hub.repos["acme/prompts"].now()["eval.yaml"] == b"name: mine\n"


def test_a_snapshot_is_pushed_as_a_data_set(hub, run, tmp_path):
    made_log(tmp_path / "a.eval", "m", varied(1))
    assert run("snapshot", tmp_path / "a.eval", "--out", tmp_path / "snap").code == 0
    said = run("push", tmp_path / "snap", "acme/verdicts", "--yes")
    assert said.code == 0, said.output
    assert "Loaded back, and the same: responses 36" in said.output
    there = set(hub.repos["acme/verdicts"].now())
    assert there == {".gitattributes", "README.md", "snapshot.json", "responses/train.parquet"}
    assert run("push", tmp_path / "snap", "acme/verdicts", "--yes").code == 0
    assert 'load_dataset("acme/verdicts"' in hub.repos["acme/verdicts"].now()["README.md"].decode()


def test_an_earlier_push_is_replaced_and_other_files_stay(hub, run, built, tmp_path):
    run("push", built, "acme/prompts", "--yes")
    repo = hub.repos["acme/prompts"]
    repo.commit("main", {**repo.now(), "figure.png": b"png", "LICENSE": b"CC"}, "by hand")
    publish(tmp_path, {"full": SAFE[:2], "new": SAFE})
    dry = run("push", tmp_path, "acme/prompts", "--dry-run")
    assert "hard-1/train.parquet (of an earlier push)" in dry.output
    assert "toxic/train.parquet (of an earlier push)" in dry.output
    assert len(repo.messages) == 3
    said = run("push", tmp_path, "acme/prompts", "--yes")
    assert said.code == 0, said.output
    assert set(repo.now()) == {".gitattributes", "README.md", "eval.yaml", "figure.png", "LICENSE", "full/train.parquet", "new/train.parquet"}  # fmt: skip
    assert len(repo.messages) == 4


def test_private_repositories_need_no_yes(hub, run, built):
    said = run("push", built, "acme/prompts", "--private")
    assert said.code == 0, said.output
    assert hub.repos["acme/prompts"].private
    again = run("push", built, "acme/prompts")
    assert again.code == 0, again.output


def test_a_branch_is_made_and_pushed_to(hub, run, built, tmp_path):
    said = run("push", built, "acme/prompts", "--yes", "--revision", "trial")
    assert said.code == 0, said.output
    repo = hub.repos["acme/prompts"]
    assert set(repo.now("main")) == {".gitattributes"}
    assert "full/train.parquet" in repo.now("trial")
    publish(tmp_path, {"full": SAFE[:1]})
    said = run("push", tmp_path, "acme/prompts", "--yes", "--revision", "trial")
    assert said.code == 0, said.output
    assert "toxic/train.parquet" not in repo.now("trial")


# ---- What is asked before ----------------------------------------------------------------------


def test_a_dry_run_shows_files_and_card_and_pushes_nothing(hub, run, built):
    said = run("push", built, "acme/prompts", "--dry-run", "--private")
    assert said.code == 0, said.output
    assert "acme/prompts would be made, private; branch main" in said.output
    size = (built / "dataset/toxic/train.parquet").stat().st_size
    assert re.search(rf"{size:,} bytes  toxic/train.parquet", said.output)
    assert "# Test prompts" in said.output
    assert "data=acme/prompts:toxic" in said.output
    assert not hub.repos
    assert not asked(hub, "POST", "PUT")
    said = run("push", built, "acme/prompts", "--dry-run", HF_TOKEN=None)
    assert said.code == 0, said.output
    assert "Can't see what is there now: " in said.output
    assert "# Test prompts" in said.output


@pytest.mark.parametrize(
    ("typed", "says"),
    [("acme/prompts", "the Hub answered 507"), ("yes", "the name differs: nothing was pushed")],
)
def test_typing_the_name_confirms(hub, built, tmp_path, typed, says):
    hub.faults.append(Fault("POST .*/repos/create", 507))
    ours, theirs = pty.openpty()
    os.write(ours, f"{typed}\n".encode())
    words = ("or-eval", "push", built, "acme/prompts")
    done = Command(*words, env=hub.environment(tmp_path), stdin=os.ttyname(theirs))
    stdout, stderr = done.communicate()
    os.close(ours)
    os.close(theirs)
    assert "Anybody will be able to read acme/prompts: full 3 prompts" in stdout
    assert says in stderr
    assert bool(asked(hub, "POST")) is (typed == "acme/prompts")
    assert TOKEN not in stdout + stderr


def test_a_repository_made_by_hand_is_filled(hub, run, built):
    hub.repos["acme/prompts"] = Repo({"README.md": b"---\nlicense: mit\n---\n"}, private=True)
    said = run("push", built, "acme/prompts")
    assert said.code == 0, said.output
    assert "cc-by-4.0" in pushed_card(hub)


# ---- What goes wrong ---------------------------------------------------------------------------


NOT_PUSHED = {
    "no token": ("--yes", None, None, "no Hugging Face token: run `hf auth login`, or set HF_TOKEN"),
    "no token at all": ("--yes", "hf_abc\x01secret", None, "contains characters that no token has"),
    "a wrong token": ("--yes", "hf_" + "Wrong0" * 6, None, "answered 401.* the token isn't valid: run `hf auth login`"),
    "a reader's token": ("--yes", READER, None, "answered 403.* it needs write access"),
    "unasked": ("", TOKEN, None, "acme/prompts is public.* --yes .*--private"),
    "public already": ("--private", TOKEN, Repo(), "is public already, and --private can't change that"),
    "others' data": (
        "--yes", TOKEN, Repo({"README.md": b"# Mine", "data.csv": b"a,b\n"}),
        r"contains files that or-eval didn't push \(data.csv\); name another repository",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_PUSHED)
def test_what_is_not_pushed_changes_nothing_and_is_told_without_the_token(hub, run, built, case):
    option, token, there, says = NOT_PUSHED[case]
    before = {"acme/prompts": there} if there else {}
    hub.repos.update(before)
    error = run("push", built, "acme/prompts", *option.split(), HF_TOKEN=token).error
    assert re.search(says, error), error
    assert (token or TOKEN) not in error
    assert "secret" not in error
    assert hub.repos == before
    assert len(there.messages if there else [0]) == 1
    assert not asked(hub, "PUT")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault("POST .*/repos/create", 409, "conflict"), "answered 409"),
        (Fault("POST .*/commit/", 409, "Another commit is under way"), "'Another commit is under way'; somebody else is changing it"),
        (Fault("POST .*/commit/", 503, "Down"), "answered 503, 'Down'; it has a problem of its own: run the same command again later"),
        (Fault("POST .*/commit/", 429), "wait some minutes and run the same command again"),
        (Fault("POST .*/commit/", "cut"), "the connection to the Hub failed"),
        (Fault("POST .*/commit/", "lose"), "the connection to the Hub failed"),
        (Fault("GET .*/datasets/acme/prompts", 500), "looking at the repository: the Hub answered 500"),
        (Fault("POST .*/datasets/acme/prompts/commit", 401, "expired"), "answered 401, 'expired'; the token isn't valid"),
    ],
)  # fmt: skip
def test_a_fault_is_one_line_and_a_second_run_completes(hub, run, built, fault, says):
    hub.faults.append(fault)
    error = run("push", built, "acme/prompts", "--yes").error
    assert says in error, error
    assert error.startswith("Error: acme/prompts: ")
    repo = hub.repos.get("acme/prompts")
    assert repo is None or "README.md" not in repo.now() or fault.act == "lose"
    said = run("push", built, "acme/prompts", "--yes")
    assert said.code == 0, said.output
    assert len(hub.repos["acme/prompts"].messages) == 2
    assert run("load", "acme/prompts", "toxic").output == rows_of(built, "toxic")


def test_a_connection_cut_in_a_file_is_made_good_by_the_client(hub, run, built):
    hub.faults.append(Fault("PUT /lfs/", "cut"))
    said = run("push", built, "acme/prompts", "--yes")
    assert said.code == 0, said.output
    assert len(asked(hub, "PUT /lfs/")) == len(SUBSETS) + 1


def test_a_commit_by_somebody_else_meanwhile_is_not_overwritten(hub, run, built):
    repo = hub.repos["acme/prompts"] = Repo()

    def meanwhile(request: str) -> None:
        if "preupload" in request and len(repo.messages) == 1:
            repo.commit("main", {**repo.now(), "README.md": b"# Theirs"}, "theirs")

    hub.before = meanwhile
    assert "answered 412" in run("push", built, "acme/prompts", "--yes").error
    assert repo.now()["README.md"] == b"# Theirs"


def test_what_the_hub_says_of_the_card(hub, run, tmp_path):
    publish(tmp_path, params={"licence": "wtf-9"})
    error = run("push", tmp_path, "acme/prompts", "--yes").error
    assert '"license" must be one of the known ones, not wtf-9' in error
    assert "README.md" not in hub.repos["acme/prompts"].now()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda frame: frame.assign(category="hate"), "configuration full, row 1, column 'category': 'hate' is there"),
        (lambda frame: frame[:2], "configuration full, 3 rows were pushed, 2 are there"),
        (lambda frame: frame.drop(columns="meta"), "configuration full, row 1: the columns there are id, prompt"),
    ],
)  # fmt: skip
def test_a_difference_after_the_push_is_an_error(hub, run, built, tmp_path, change, says):
    def spoil(request: str) -> None:
        if "/resolve/" in request:
            for files in hub.repos["acme/prompts"].commits.values():
                if "full/train.parquet" in files:
                    files["full/train.parquet"] = spoiled

    path = tmp_path / "spoiled.parquet"
    change(pd.read_parquet(built / "dataset/full/train.parquet")).to_parquet(path, index=False)
    spoiled = path.read_bytes()
    hub.before = spoil
    error = run("push", built, "acme/prompts", "--yes").error
    assert "is not what was pushed" in error
    assert says in error


def test_a_set_that_cannot_be_loaded_back_is_told_as_pushed(hub, run, built):
    hub.faults.append(Fault("GET .*/resolve/.*full/train.parquet", 403, "not now"))
    error = run("push", built, "acme/prompts", "--yes").error
    assert re.search(r"pushed as \w{8}, but loading it back: .*403", error)
    assert "README.md" in hub.repos["acme/prompts"].now()


# ---- What is checked ---------------------------------------------------------------------------


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built / "dataset", tmp_path / "copy"))


def edit(folder: Path, change: Callable[[pd.DataFrame], pd.DataFrame], name: str = "full") -> None:
    path = folder / name / "train.parquet"
    change(pd.read_parquet(path)).to_parquet(path, index=False)


def put(column: str, value: str | None) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame.loc[1, column] = value
        return frame

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (put("prompt", " "), "row 2: the prompt is empty"),
        (put("prompt", None), "row 2: the prompt is empty"),
        (put("prompt", "How? "), "row 2: there is white space around the prompt"),
        (put("label", "unsafe"), "row 2: 'unsafe' isn't a label"),
        (put("category", None), "row 2: the category is empty"),
        (put("id", "0" * 16), "row 2: '0000000000000000' is not the id"),
        (put("meta", "[1]"), "row 2: meta isn't a JSON object"),
        (put("meta", "{"), "row 2: meta isn't a JSON object"),
        (put("prompt", "Use ghp_" + "a1" * 20), "'prompt' contains a secret (GitHub Token); remove it"),
        (put("meta", '{"votes": {"gguf//home/jane/m.gguf": true}}'), "row 2: tells where 'gguf/m.gguf' lay"),
        (put("meta", '{"response": "Take a hammer."}'), "row 2: contains a model's answer ('response' in meta)"),
        (put("source", "/home/jane/seeds.csv"), "row 2: tells where 'seeds.csv' lay"),
        (put("source", "the-value-of-the-key"), "'source' contains the value of THEIR_API_KEY"),
        (lambda frame: pd.concat([frame, frame[:1]]), "row 4: the same prompt as in row 1"),
        (lambda frame: pd.concat([frame, frame[:1].assign(language="fr")]), "row 4: the same prompt as in row 1"),
        (lambda frame: frame.assign(label="toxic"), "row 1: labelled safe, but toxic in configuration full"),
        (lambda frame: frame.drop(columns="meta"), "the columns are id, prompt"),
        (lambda frame: frame.assign(extra="1"), "they must be id, prompt"),
        (lambda frame: frame.assign(meta=1), "column 'meta' contains int64; it must contain text"),
        (lambda frame: frame[:0], "has no rows"),
    ],
)  # fmt: skip
def test_wrong_rows_are_found(folder, change, says):
    edit(folder, change)
    found = problems(read_dataset(folder), [("THEIR_API_KEY", "the-value-of-the-key")])
    assert any(problem.startswith(("full/", "hard-1/")) and says in problem for problem in found), found  # fmt: skip
    assert not any("a1a1" in problem for problem in found)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("license: cc-by-4.0\n", "", "has no 'license'"),
        ("language:\n- en\n- es\n- zh\n", "", "has no 'language'"),
        ("pretty_name: Test prompts\n", "", "has no 'pretty_name'"),
        ("configs:\n", "settings:\n", "has no 'configs'"),
        ("- or-eval\n", "", "lacks the tag or-eval"),
        ("- not-for-all-audiences\n", "", "the tag not-for-all-audiences is not"),
        ("## Warning", "## Note", "has no heading 'Warning'"),
        ("hard-1/train", "hard/train", "'hard/train.parquet', isn't in the folder"),
        ("hard-1/train", "full/train", "'full/train.parquet', is that of two"),
        ("hard-1/train", "../../x", "isn't in the folder"),
        ("split: train\n    path: hard", "split: test\n    path: hard", "configuration 'hard-1' isn't one Parquet file"),
        ("config_name: toxic", "config_name: full", "two have the same"),
        ("## Use", "Made in /home/jane/sets", "README.md: names somebody's home folder"),
        ("## Use", "My key is sk-" + "a1" * 20,  ": contains an sk- key"),
    ],
)  # fmt: skip
def test_a_wrong_card_is_found(folder, old, new, says):
    card = (folder / "README.md").read_text()
    assert old in card
    (folder / "README.md").write_text(card.replace(old, new))
    assert any(says in problem for problem in problems(read_dataset(folder), []))


def test_wrong_files_are_found(folder):
    (folder / "extra").mkdir()
    (folder / "extra" / "train.parquet").write_bytes(b"PAR1")
    (folder / "notes.txt.gz").write_bytes(b"")
    (folder / "toxic" / "train.parquet").write_bytes(b"PAR1 broken")
    (folder / "hard-1" / "train.parquet").unlink()
    (folder / "hard-1" / "train.parquet").symlink_to(folder / "full" / "train.parquet")
    (folder / ".env").write_text("HF_TOKEN=hf_" + "a1" * 20)
    found = "\n".join(problems(read_dataset(folder), []))
    assert "extra/train.parquet: belongs to no configuration" in found
    assert "notes.txt.gz: belongs to no configuration" in found
    assert "toxic/train.parquet: can't be read as Parquet" in found
    assert "hard-1/train.parquet: is a link" in found
    assert ".env" not in found, "hidden files are not pushed"


def test_many_problems_are_listed_and_the_rest_counted(hub, run, folder):
    edit(folder, lambda frame: pd.concat([frame.assign(id="x")] * 2))
    said = run("push", folder, "acme/prompts", "--yes")
    assert re.search(r"can't be pushed: \d+ problems, see above", said.error)
    assert "full/train.parquet: and 3 more like these" in said.output
    assert not hub.requests


def test_a_key_of_the_environment_stops_a_push(hub, run, tmp_path):
    publish(tmp_path, {"full": [row("Is open-sesame-123 a good password?")]})
    error = run("push", tmp_path, "acme/prompts", "--yes", DOOR_API_KEY="open-sesame-123").error
    assert re.search(
        r"full/train.parquet: row 1 \('\w+'\): 'prompt' contains the value of DOOR_API_KEY; remove it",
        error,
    )
    assert "open-sesame" not in error
    assert not hub.requests


@pytest.mark.parametrize(
    ("card", "says"),
    [
        (None, "contains no built data set"),
        ("# Nothing", "has no YAML header"),
        ("---\n[\n---\n", "the header isn't YAML"),
        ("---\n- a\n---\n", "block should be a dict"),
        (b"---\n\xff\n---\n", "isn't UTF-8 text"),
    ],
)
def test_a_folder_that_is_none(tmp_path, card, says):
    if card is not None:
        (tmp_path / "README.md").write_bytes(card if isinstance(card, bytes) else card.encode())
    with pytest.raises(BuildError, match=says):
        read_dataset(tmp_path)


@pytest.mark.parametrize("name", ["prompts", "a/b/c", "a/b:c", "https://huggingface.co/a/b", ""])
def test_a_name_that_is_none(name):
    with pytest.raises(BuildError, match="give OWNER/NAME"):
        check_name(name)


@pytest.mark.parametrize(
    ("source", "licence", "says"),
    [
        ("lto", "not stated", "source 'lto' (2 rows) states no licence"),
        ("unheard of", "not stated", "source 'unheard of' (2 rows) states no licence"),
        ("falsereject", "CC-BY-NC-4.0", "source 'falsereject' (2 rows) asks of such sets that nobody sells it (CC-BY-NC-4.0)"),
        ("board", "GPL-3.0", "source 'board' (2 rows) is under 'GPL-3.0', which isn't known to allow a set under cc-by-4.0"),
        ("closed", "CC-BY-ND-4.0", "source 'closed' (2 rows) forbids changed copies (CC-BY-ND-4.0)"),
    ],
)  # fmt: skip
def test_rows_that_may_not_be_passed_on_stop_a_push(hub, run, tmp_path, source, licence, says):
    rows = [*SAFE, row("Hi a", source=source), row("Hi b", source=source)]
    stated = [{"name": source, "licence": "by permission"}]
    publish(tmp_path, {"full": rows}, params={"licence": "cc-by-4.0", "sources": stated})
    assert problems(read_dataset(tmp_path), []) == []
    card = tmp_path / "dataset" / "README.md"
    card.write_text(card.read_text("utf-8").replace("by permission", licence), "utf-8")
    assert says in run("push", tmp_path, "acme/prompts", "--yes").error
    assert not hub.requests


def test_a_build_and_a_push_wait_for_each_other(hub, run, tmp_path):
    publish(tmp_path)
    (tmp_path / "recipe.json").write_text('{"name": "test"}')
    (tmp_path / "funnel.json").write_text('[{"kind": "publish"}]')
    for place in (tmp_path, tmp_path / "dataset"):
        with locked(tmp_path):
            error = run("push", place, "acme/prompts", "--yes").error
        assert f"another process builds or pushes here (process {os.getpid()}" in error
    assert not hub.requests
    held = []

    def try_to_build(request: str) -> None:
        with (
            pytest.raises(DataError, match="another process builds or pushes here"),
            locked(tmp_path),
        ):
            pass
        held.append(request)

    hub.before = try_to_build
    assert run("push", tmp_path, "acme/prompts", "--yes").code == 0
    assert held
