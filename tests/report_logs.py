"""Logs that fill a report, reports of them, and reading what was written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from inspect_ai.log import EvalSample
from jsonschema import Draft202012Validator

from made_logs import UNSCORED, made_sample
from or_eval.analysis import report
from or_eval.cli import main

SCHEMA = json.loads(
    (Path(report.__file__).parent / "summary.schema.json").read_text(encoding="utf-8")
)
ATTACK = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "</textarea><svg onload=document.title='owned'> \u202egnirts desrever\u202c {{ 7*7 }} "
    "<!--<script> \u2028 ]]> &lt;b&gt; $&{}#_^~\\"
)
FORMULA = '=HYPERLINK("http://127.0.0.1:1/"&A1,"x")'


def run(*arguments: object) -> Result:
    """Run ``or-eval report``."""
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def summary_of(folder: Path) -> dict[str, Any]:
    """Read summary.json, which must be as its schema says."""
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text("utf-8"))
    Draft202012Validator(SCHEMA).validate(found)
    return found


def embedded(folder: Path, name: str) -> Any:
    """Read the data that the page carries for its scripts."""
    html = (folder / "index.html").read_text("utf-8")
    found = re.search(rf'id="{name}">(.*?)</script>', html, re.DOTALL)
    assert found
    return json.loads(found[1])


def varied(model: int, hostile: bool = False) -> list[EvalSample]:
    """Make samples with several categories, languages, methods, labels and outcomes."""
    end = ATTACK if hostile else ""
    samples = []
    for number in range(36):
        refused = float((number * (model + 3)) % 5 < 2)
        evidence = {"text": "I'm sorry" + end, "act": "apology", "start": 0}
        evidence["end"] = len(evidence["text"])
        samples.append(
            made_sample(
                f"s{number}" + ("/?#&<b>" if hostile else ""),
                UNSCORED if number == 7 else refused,
                prompt=f"prompt {number} {end}",
                response=f"I'm sorry{end}, no." if refused else f"Sure: {end}",
                reason="no_response" if number == 7 else None,
                label="toxic" if number % 3 == 0 else "safe",
                category=f"category {number % 4}{end}",
                language=("en", "zh", "zh+en")[number % 3 if number % 3 else number % 2],
                method=("persona", "euphemism")[number % 2] + end,
                source=FORMULA if hostile else f"source {number % 2}",
                pair_id=f"pair {number // 2}",
                score={
                    "audited": number % 6 == 1,
                    "stages": {
                        "rules": {"evidence": [evidence] if refused else []},
                        "judge": {
                            "label": "direct_answer",
                            "votes": [{"model": "judge/one", "label": "direct_answer"}],
                            "prompt_version": "3",
                        },
                    },
                },
            )
        )
    return samples
