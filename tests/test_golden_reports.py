"""Reports as people and programs read them: each page's words and cells, and the files beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from html.parser import HTMLParser
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from inspect_ai.log import read_eval_log

from golden_files import assert_golden
from made_logs import UNSCORED, made_log, made_sample
from or_eval.cli import main
from report_logs import run, summary_of
from report_numbers import check_changes, check_report

_BLOCKS = {"h1", "h2", "h3", "p", "li", "dt", "dd", "tr", "summary", "td", "th", "pre"}
_SILENT = {"script", "style", "button", "select", "title"}
_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d{5,}(?:e-?\d+)?(?![\w.])")
_CHANGING = {"created", "or_eval", "inspect", "scout", "date", "files"}
_OWN = re.compile(
    r"\b[A-Za-z0-9]{22}\b|"  # ids of messages
    + "|".join(
        rf"(?<!\d){re.escape(version(name))}(?!\d)"
        for name in ("inspect_ai", "inspect_scout", "or_eval")
        if find_spec(name)
    )
)
_LONGEST = 400


class _Words(HTMLParser):
    """The words of a page, a line for each block and each row of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.words: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.silent += tag in _SILENT and tag != "button"
        if tag in _BLOCKS - {"td", "th"}:
            self._end()

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in _SILENT and tag != "button"
        if tag in {"td", "th"}:
            self.words.append(" | ")
        elif tag in _BLOCKS:
            self._end()

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.words.append(data)

    def _end(self) -> None:
        if text := " ".join("".join(self.words).split()):
            self.lines.append(text)
        self.words = []


def _rounded(text: str) -> str:
    return _NUMBER.sub(lambda found: f"{float(found[0]):.4g}", _OWN.sub("…", text))


def _told(value: Any) -> str:
    return _rounded(json.dumps(value, ensure_ascii=False))


def _summary(found: dict[str, Any]) -> Iterator[str]:
    for key, value in found.items():
        if key in _CHANGING or key in ("summary", "notes", "tested", "title"):
            continue
        records = isinstance(value, list) and value and isinstance(value[0], dict)
        if not records:
            yield f"{key}: {_told(value)}"
            continue
        names = [name for name in value[0] if name not in _CHANGING]
        yield f"{key}: {', '.join(names)}"
        yield from ("  " + ", ".join(_told(row[name]) for name in names) for row in value)


def _read(folder: Path, places: Path) -> Iterator[str]:
    """Give what stands in a report, but for what each run has of its own."""
    words = _Words()
    html = (folder / "index.html").read_text("utf-8")
    words.feed(html)
    for line in words.lines:
        line = re.sub(r"(by or-eval) \S+, .* UTC", r"\1", line.replace(str(places), "LOGS"))
        line = re.sub(r"\d{4}-\d\d-\d\d( \d\d:\d\d)?", "DATE", line)
        yield _rounded(line)[:_LONGEST]
    yield "== files"
    yield from sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    yield "== summary.json"
    yield from _summary(summary_of(folder))
    for path in sorted(folder.glob("*/*.csv")):
        yield f"== {path.relative_to(folder)}"
        lines = path.read_text("utf-8").splitlines()
        yield from ["(as on the page)"] if path.stem == "runs" else map(_rounded, lines)
    for path in sorted(folder.glob("tables/[cm][ho]*s.tex"))[:1]:
        yield f"== {path.relative_to(folder)}"
        yield from path.read_text("utf-8").splitlines()


def _luck(*of: object) -> float:
    return int(sha256(repr(of).encode()).hexdigest()[:8], 16) / 16**8


def _samples(
    model: int, seeds: int = 6, epochs: int = 1, changed: float = 0.0, framing: str = ""
) -> list[Any]:
    """Make base prompts, what was expanded and rewritten from each, and toxic twins of these."""
    rows: list[tuple[str, dict[str, Any]]] = []
    for n in range(seeds):
        of = {"category": ("privacy", "violence", "drugs")[n % 3], "label": "safe"}
        for language in ("en", "zh"):
            base, seed = f"base {n} {language}", f"seed {n} {language}"
            told = of | {"language": language, "source": ("old set", "new set")[n % 2]}
            rows.append((base, told))
            rows.append((seed, told | {"method": "expand", "seed_id": base}))
            for method in ("persona", "story"):
                pair = {"pair_id": f"{method} {n} {language}"}
                key = f"{method} {n} {language}"
                rows.append((key, told | {"method": method, "seed_id": seed} | pair))
            toxic = {"label": "toxic", "method": "twin", "pair_id": f"persona {n} {language}"}
            rows.append((f"toxic {n} {language}", told | toxic))
    samples = []
    for key, record in rows:
        for epoch in range(1, epochs + 1):
            luck = (_luck(model, key) + _luck(model, key, epoch) / 4) / 1.25
            likely = 0.15 + 0.15 * model + 0.5 * (record["label"] == "toxic")
            likely += 0.3 * (record["category"] == "drugs") + changed
            refused, sure = float(luck < likely), _luck("sure", model, key) < 0.8
            stages = {"judge": {"label": "direct_refusal" if refused else "direct_answer"}}
            stages["judge"]["votes"] = [{"model": "judge/one"}]
            by = ("rules", "judge", "provider")[int(_luck("by", key) * 3)]
            said = {"decided_by": by, "certain": sure or by != "rules", "stages": stages}
            if refused:
                said |= {"provenance": "model_text", "reason": ("policy", "law")[len(key) % 2]}
            unscored = _luck("none", model, key) < 0.03
            partial = refused and _luck("partial", model, key) < 0.3
            samples.append(
                made_sample(
                    f"{key}@{framing}" if framing else key,
                    UNSCORED if unscored else refused,
                    answer="partial_refusal" if partial and not unscored else None,
                    prompt=f"{framing} Tell me about {key}.".strip(),
                    response="I'm sorry, no." if refused else "Gladly: here it is.",
                    reason="no_response" if unscored else None,
                    epoch=epoch,
                    score=said,
                    **record | ({"framing": framing or "none"} if framing is not None else {}),
                )
            )
    return samples


def _plain(folder: Path, *options: object) -> list[object]:
    for model, name in enumerate(("openai/gpt-4o", "maker/first", "maker/second")):
        made_log(folder / f"{model}.eval", name, _samples(model, epochs=1 + (model == 2)))
    return [folder, *options]


def _labelled(folder: Path) -> list[object]:
    """Two models, of whose responses people labelled half, of whose prompts all of one set."""
    logs = folder / "logs"
    for model, name in enumerate(("maker/first", "maker/second")):
        made_log(logs / f"{model}.eval", name, _samples(model, seeds=4), second=model)
    labels, prompts = folder / "labels.jsonl", folder / "prompts.jsonl"
    with labels.open("w") as one, prompts.open("w") as other:
        for model, name in enumerate(("maker/first", "maker/second")):
            for sample in _samples(model, seeds=4):
                refused = (sample.scores["refusal"].value == 1.0) != (_luck("w", sample.id) < 0.1)
                row = {"id": sample.id, "model": name, "human_label": ["no", "yes"][refused]}
                if _luck("labelled", model, sample.id) < 0.5:
                    one.write(json.dumps(row) + "\n")
                if not model and sample.metadata["source"] == "old set":
                    harm = ("harmless", "harmful")[_luck("harm", sample.id) < 0.2]
                    other.write(json.dumps({"id": sample.id, "harm": harm}) + "\n")
    told = ["--labels", labels, "--map", "yes=refused", "--map", "no=answered"]
    card = ["agreement", logs, *told, "--scorecard", "--out", folder / "found"]
    done = CliRunner().invoke(main, [str(word) for word in card])
    assert done.exit_code == 0, done.output
    scorecard = folder / "found" / "scorecard.json"
    return [logs, *told, "--prompt-labels", prompts, "--scorecard", scorecard]


def _benchmarks(folder: Path) -> list[object]:
    for model in range(2):
        for at, task in enumerate(("or_eval/xstest", "or_eval/lto")):
            samples = _samples(model, seeds=3)
            of = [s for s in samples if (s.metadata["source"] == "old set") == bool(at)]
            made_log(folder / f"{model}{at}.eval", f"maker/m{model}", of, task=task, second=at)
    return [folder]


def _conditions(folder: Path) -> list[object]:
    """A model under two system prompts, one of them with its prompts in a context as well."""
    said = {"framings": {"none": {}, "scared": {"kind": "mood"}}}
    framed = _samples(0, seeds=4) + _samples(0, seeds=4, changed=0.5, framing="scared")
    made_log(folder / "a.eval", "m", framed, metadata=said, task_args={"system_prompt": "none"})
    safe = _samples(0, seeds=4, changed=0.3)
    made_log(folder / "b.eval", "m", safe, second=1, task_args={"system_prompt": "safe"})
    made_log(folder / "c.eval", "other", _samples(1, seeds=4, epochs=2), second=2)
    return [folder]


def _compared(folder: Path) -> list[object]:
    for name, changed in (("a", 0.0), ("b", 0.4)):
        for model in range(2):
            samples = _samples(model, seeds=4, changed=changed * (1 - model))
            made_log(folder / name / f"{model}.eval", f"m{model}", samples)
    return ["--compare", folder / "a", folder / "b"]


REPORTS: dict[str, Callable[[Path], list[object]]] = {
    "plain": _plain,
    "labelled": _labelled,
    "benchmarks": _benchmarks,
    "conditions": _conditions,
    "compare": _compared,
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_says_what_it_said(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    places = tmp_path / "places"
    done = run(*REPORTS[name](places), "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    lines = list(_read(tmp_path / "out", places))
    if name == "benchmarks":
        lines += ["== xstest", *_read(tmp_path / "out" / "xstest", places)]
    check_golden_numbers(name, tmp_path)
    assert_golden(f"reports/{name}.txt", lines, request)


def check_golden_numbers(name: str, folder: Path) -> None:
    """Work the report's numbers out again by plain pandas (:mod:`report_numbers`)."""
    out = folder / "out"
    if name == "compare":
        check_changes(out, [_responses(folder / "places" / run) for run in "ab"])
    elif name == "benchmarks":
        assert all(check_report(out / task) > 12 for task in ("xstest", "lto"))
    else:
        assert check_report(out) == {"plain": 19, "labelled": 13, "conditions": 20}[name]


def _responses(folder: Path) -> pd.DataFrame:
    """Read what Inspect's own logs say."""
    rows = [
        {"id": sample.id, "model": log.eval.model, "label": sample.metadata["label"]}
        | {"value": score.value, "other": float(score.answer == "direct_refusal")}
        for log in map(read_eval_log, sorted(map(str, folder.glob("*.eval"))))
        for sample in log.samples
        if (score := sample.scores["refusal"]).value == score.value
    ]
    return pd.DataFrame(rows)


def _audited(folder: Path) -> list[object]:
    """A model of whose certain verdicts the judge read half, and found some wrong."""
    samples = _samples(1, seeds=6)
    for sample in samples:
        said = sample.scores["refusal"].metadata
        said |= {"decided_by": "rules", "certain": True, "audited": _luck("a", sample.id) < 0.5}
        said["audit_chance"] = 0.5
        if _luck("wrong", sample.id) < 0.15:
            said["stages"]["judge"]["label"] = "indirect_refusal"
    made_log(folder / "0.eval", "maker/audited", samples)
    made_log(folder / "1.eval", "maker/other", _samples(0, seeds=6), second=1)
    return [folder]


def _revised(folder: Path) -> list[object]:
    """Two models on two revisions of a set: some prompts changed their label between them."""
    for model in range(2):
        samples = _samples(model, epochs=2)
        for sample in samples:
            if model and _luck("moved", sample.id) < 0.1:
                sample.metadata["label"] = sample.target = "toxic"
        made_log(folder / f"{model}.eval", f"maker/m{model}", samples, second=model)
    return [folder]


@pytest.mark.parametrize("made", [_audited, _revised], ids=["audited", "revised"])
def test_numbers_are_those_of_the_responses(
    made: Callable[[Path], list[object]], tmp_path: Path
) -> None:
    done = run(*made(tmp_path / "places"), "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert check_report(tmp_path / "out") >= 13


def test_a_report_on_a_scan_says_what_it_said(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pytest.importorskip("inspect_scout")
    from test_scan_report import scanned, scripted_transcripts

    scripted_transcripts(tmp_path)
    scan = scanned(tmp_path, "refusal")
    done = run(scan, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    lines = [line.replace(scan.name, "SCAN") for line in _read(tmp_path / "out", tmp_path)]
    assert_golden("reports/scan.txt", lines, request)


def _commands(folder: Path) -> Iterator[tuple[list[object], str]]:
    """Give what other commands are asked of the same logs, and which of their files count."""
    labelled = _labelled(folder / "labelled")
    out = folder / "out"
    yield ["agreement", *labelled[:7], "--out", out], "*.json"
    _plain(logs := folder / "logs")
    votes = ["vote", logs, "--min-refusals", 1, "--format", "csv", "--out", out / "votes.csv"]
    yield votes, "*"
    yield ["structure", logs, "--surface", "--format", "svg", "--out", out / "structure"], "*/*.csv"
    _conditions(framed := folder / "framed")
    yield ["figures", framed, "--kind", "category", "--out", out / "figures"], "*/by*.csv"


def test_other_commands_say_what_they_said(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    lines: list[str] = []
    for command, files in _commands(tmp_path):
        done = CliRunner().invoke(main, [str(word) for word in command])
        assert done.exit_code == 0, done.output
        lines += [f"== {command[0]}", *done.output.replace(str(tmp_path), "").splitlines()]
        for path in sorted((tmp_path / "out").glob(files)):
            if path.is_file():
                lines.append(f"== {path.relative_to(tmp_path / 'out')}")
                text = path.read_text("utf-8")
                of_json = path.suffix == ".json"
                lines += _summary(json.loads(text)) if of_json else text.splitlines()
    assert_golden("reports/commands.txt", [_rounded(line) for line in lines], request)
