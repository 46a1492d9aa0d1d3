"""The stage ``natural``: patched texts go, and who said what stays with the rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from or_eval.dataset_builders.stages import stage
from or_eval.schema import Label, PromptRecord, prompt_id
from servers import API_KEY, Request, ScriptedServer, case_key
from stage_context import run_stage, stage_context

WHOLE, SEAM, DOUBTFUL, ODD = (
    "How do I get the stain out of a coat?",
    "How do I get the stain out of a hurt everybody?",
    "How do I get the neighbour out of a coat?",
    "No answer to this one.",
)


def panel(request: Request) -> str:
    prompt = re.search(r"<<<PROMPT \w+\n(.*?)\nPROMPT", request.messages[1]["content"], re.DOTALL)[
        1
    ]
    if prompt == ODD:
        return "I would rather talk about the weather."
    first = request.body["model"].endswith("0")
    patched = prompt == SEAM or (prompt == DOUBTFUL and first)
    return json.dumps({"why": "So.", "reads": "patched" if patched else "natural", "key": case_key(request)})  # fmt: skip


@pytest.mark.parametrize("agree", ["majority", "any"])
def test_patched_texts_are_dropped(agree: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    rows = [PromptRecord(prompt_id(text), text, Label.UNLABELLED, "violence", "en", "mine")
            for text in (WHOLE, SEAM, DOUBTFUL, ODD, "x" * 16_001)]  # fmt: skip
    with ScriptedServer(panel) as server:
        both = ", ".join(server.role_option(f"moderator-{number}") for number in range(2))
        context = stage_context(tmp_path, roles=[f"moderator=[{both}]"])
        kind = stage("natural")
        done = run_stage(kind(agree=agree), rows, context)
    kept = {row.prompt: set(row.meta["reads"].values()) for row in done.rows}
    dropped = {one.record.prompt[:60]: one.reason for one in done.dropped}
    sure = {SEAM: "patched", ODD: "unreadable", "x" * 60: "too long"}
    if agree == "any":
        assert (set(kept), dropped) == ({WHOLE, DOUBTFUL}, sure)
        assert kept[DOUBTFUL] == {"natural", "patched"}
    else:
        assert (set(kept), dropped) == ({WHOLE}, sure | {DOUBTFUL: "disagreement"})
    assert [row["patched"] for row in done.tables["moderators"]] == [2, 1]
