"""What is installed: light imports, the entry point, the command line, the data in the wheel."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import or_eval
from made_logs import made_log, made_sample
from or_eval.sources.errors import how_to_install

ROOT = Path(__file__).parents[1]
HEAVY = ("pandas", "datasets", "torch", "sentence_transformers", "pyarrow", "scipy", "altair")


def loaded_by(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    modules = loaded_by("import or_eval")
    assert not modules & {*HEAVY, "inspect_ai", "re2"}


def test_registry_loads_nothing_heavy() -> None:
    loaded = loaded_by("import or_eval._registry")
    assert not loaded & {*HEAVY, "openai"}


def test_inspect_lists_every_task() -> None:
    from inspect_ai import list_tasks

    import or_eval.tasks as ours

    listed = list_tasks("src/or_eval/tasks", root_dir=ROOT)
    assert sorted(task.name for task in listed) == ours.__all__


@pytest.mark.parametrize(
    "entry", list((ROOT / "release" / "register").glob("*.yaml")), ids=lambda path: path.stem
)
def test_entries_for_the_register_name_tasks_papers_and_pinned_data(entry: Path) -> None:
    from or_eval.sources.catalogue import catalogue

    said = yaml.safe_load(entry.read_text("utf-8"))
    assert said["source"].keys() == {"repository_url", "repository_commit", "maintainers"}
    for task in said["tasks"]:
        assert f"@task\n@benchmark\ndef {task['name']}(" in (ROOT / task["task_path"]).read_text()
        known = catalogue()[task["name"]]
        assert said["arxiv"].rpartition("/")[2] in known.citation
        assert known.hub is not None
        assert known.hub.revision, "the register wants data pinned"


in_a_clone = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="asks git of a clone")


@in_a_clone
def test_entries_for_the_register_are_complete_but_for_the_owner(tmp_path: Path) -> None:
    assert "make register OWNER=NAME" in make_register(tmp_path, "").stdout
    done = make_register(tmp_path, "jane-doe")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "dist" / "register"
    entries = [*folder.iterdir()]
    assert len(entries) == 3
    for entry in entries:
        said = entry.read_text("utf-8")
        assert "github.com/jane-doe/or-eval" in said
        assert not re.search("OWNER|COMMIT", said)
        yaml.safe_load(said)
    for line in re.findall(r"benchmarks\.py#L(\d+)$", done.stdout, re.MULTILINE):
        assert read_line(int(line)).startswith("def ")
    commit = yaml.safe_load((folder / "xstest.yaml").read_text("utf-8"))["source"]
    assert re.fullmatch("[0-9a-f]{40}", commit["repository_commit"])
    assert done.stdout.count(f"blob/{commit['repository_commit']}/") == 4


def make_register(folder: Path, owner: str) -> subprocess.CompletedProcess[str]:
    for name in ("Makefile", "release", "src", ".git"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    command = ["make", "register", f"OWNER={owner}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def read_line(number: int) -> str:
    return (ROOT / "src/or_eval/tasks/benchmarks.py").read_text("utf-8").splitlines()[number - 1]


@in_a_clone
def test_a_clone_says_what_lies_among_the_logs() -> None:
    listing = ["git", "ls-files", "--others", "--cached", "--exclude-standard", "logs"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["logs/README.md"]


def test_workflows_call_what_there_is() -> None:
    made = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    steps = [
        step.get("run", "")
        for workflow in (ROOT / ".github" / "workflows").glob("*.yml")
        for job in yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values()
        for step in job["steps"]
    ]
    assert {step.removeprefix("make ") for step in steps if step.startswith("make ")} <= {*made}
    files = [path for step in steps for path in re.findall(r"(?:tests/|\.ci/)[\w/.]+", step)]
    assert files
    assert all((ROOT / path).exists() for path in files)


def test_the_version_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["version"] == project["version"] == or_eval.__version__
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


_HELP = """
import sys
from or_eval.cli import _COMMANDS, main

pages = [[name] for name in _COMMANDS]
pages += [["label", name] for name in ("export", "start", "import", "status", "adjudicate")]
for page in [[], *pages]:
    main([*page, "--help"], standalone_mode=False)
slow = ("inspect_ai", "pandas", "datasets", "pyarrow", "numpy")
print("loaded:", *(name for name in slow if name in sys.modules))
"""


def test_no_help_page_loads_what_takes_a_second() -> None:
    done = subprocess.run([sys.executable, "-c", _HELP], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_an_extra_is_installed_from_where_or_eval_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody finds it in a registry who installed a clone of the repository."""
    clone = tmp_path / "a b"
    clone.mkdir()
    editable = json.dumps({"url": clone.as_uri(), "dir_info": {"editable": True}})
    commands = [
        ("", "pip install 'or-eval[ray]'"),
        (editable, f"pip install -e '{clone}[ray]'"),
        (editable, f"pip install -c '{clone}/constraints.txt' -e '{clone}[ray]'"),
        ('{"url": "file:///a.whl", "archive_info": {}}', "pip install '/a.whl[ray]'"),
    ]
    monkeypatch.setattr(
        "or_eval.sources.errors.which", lambda _: Path(sys.executable).parent / "pip"
    )
    for told, command in commands:
        if "constraints" in command:
            (clone / "constraints.txt").touch()
        place = SimpleNamespace(read_text=lambda _, told=told: told or None)
        monkeypatch.setattr("or_eval.sources.errors.distribution", lambda _, place=place: place)
        assert how_to_install("ray") == command
    # Where another environment's pip, or none, would answer to its name.
    monkeypatch.setattr("or_eval.sources.errors.which", lambda _: None)
    assert how_to_install("ray") == f"{sys.executable} -m pip install '/a.whl[ray]'"


_WITHOUT_EXTRAS = """
import sys
from importlib.machinery import PathFinder
from importlib.metadata import distribution, packages_distributions
from packaging.requirements import Requirement

needed, todo = set(), ["or-eval"]
while todo:
    name = todo.pop().lower().replace("_", "-")
    if name not in needed:
        needed.add(name)
        for line in distribution(name).requires or []:
            one = Requirement(line)
            if one.marker is None or one.marker.evaluate({"extra": ""}):
                todo.append(one.name)
there = packages_distributions()

class OnlyNeeded:
    find_distributions = staticmethod(PathFinder.find_distributions)

    def __init__(self, finders):
        self.finders = finders

    def find_spec(self, name, path=None, target=None):
        owners = {owner.lower().replace("_", "-") for owner in there.get(name, [])}
        if owners and not owners & needed:
            return None
        specs = (finder.find_spec(name, path, target) for finder in self.finders)
        return next(filter(None, specs), None)

sys.meta_path = [OnlyNeeded(list(sys.meta_path))]
from click.testing import CliRunner
from or_eval.cli import main
from or_eval.dataset_builders.stages import stage

stage("crawl")
for line in sys.stdin.read().splitlines():
    done = CliRunner().invoke(main, line.split("\t"))
    said = done.output.strip().splitlines()[-1] if done.output.strip() else ""
    print(type(done.exception).__name__, said, sep="\t")
"""


def test_without_extras_a_command_says_which_one_it_needs(tmp_path: Path) -> None:
    log = str(made_log(tmp_path / "one.eval", "m", [made_sample("x")]))
    out = str(tmp_path / "out")
    commands = {
        "report": ["report", log, "--out", out],
        "compare": ["report", "--compare", log, log, "--out", out],
        "figures": ["figures", log, "--kind", "classes", "--out", out],
        "crawl": ["crawl", log, "--out", out],
        "demo": ["demo"],
    }
    extras = ["report", "report", "report", "crawl", "local"]
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_EXTRAS],
        input="\n".join("\t".join(words) for words in commands.values()),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    said = done.stdout.splitlines()
    assert len(said) == len(commands), done.stderr
    for command, extra, line in zip(commands, extras, said, strict=True):
        assert how_to_install(extra) in line, (command, line)
