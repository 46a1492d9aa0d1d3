"""Stages in which a panel judges each row: what becomes of it, by cases in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from or_eval.dataset_builders.panel.moderators import PROMPT_LIMIT
from or_eval.dataset_builders.stages import stage
from or_eval.schema import taxonomies
from or_eval.scorers.fenced_case import fence_key
from panels import asked, fenced, line, panel, record
from servers import Reply, Request, case_key
from stage_context import run_stage, stage_context

CASES = yaml.safe_load((Path(__file__).parent / "data/panel_cases.yaml").read_text("utf-8"))
TOO_LONG = "x" * (PROMPT_LIMIT + 1)


def reply(request: Request, field: str, said: Any) -> Reply | str:
    """Say it; what stands in capitals is no answer."""
    match said:
        case "GARBLED":
            return "I would call it violence, or none. Category: none"
        case "REFUSES":
            return "I'm sorry, but I can't help with that request."
        case "BLOCKS":
            return Reply("", finish_reason="content_filter")
        case "ECHOES":
            return fenced(request, "PROMPT") or ""
        case [answer, sure]:
            told = {} if sure is None else {"confidence": sure}
            return json.dumps({"why": "So.", field: answer, "key": case_key(request)} | told)
    return line(request, field, said)


@pytest.mark.parametrize("case", CASES, ids=[case["stage"] for case in CASES])
def test_what_becomes_of_a_row(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, models = case["said"], max(map(len, case["said"].values()))

    def script(number: int):
        return lambda request: reply(request, case["field"], said[fenced(request, "PROMPT")][number])  # fmt: skip

    rows = [record(TOO_LONG if text == "LONG" else text) for text in said]
    with panel({f"m{n}": script(n) for n in range(models)}, monkeypatch) as (role, servers):
        bound = role.replace("moderator=", f"{case.get('role', 'moderator')}=", 1)
        context = stage_context(tmp_path, taxonomy=case.get("taxonomy", "or_bench"), roles=[bound])
        for run in case["runs"]:
            result = run_stage(stage(case["stage"])(**run["with"]), rows, context)
            ways = {row.id: ("kept", row) for row in result.rows}
            ways |= {one.record.id: (one.reason, one.record) for one in result.dropped}
            assert [ways[row.id][0] for row in rows] == run["goes"], run["with"]
            if labels := run.get("labels"):
                assert [ways[row.id][1].label for row in rows] == [labels[way] for way in run["goes"]]  # fmt: skip
            if categories := run.get("categories"):
                assert [row.category for row in result.rows] == categories
                moved = {row.id for row in result.rows if "earlier_category" in row.meta}
                assert moved == {row.id for row in result.rows if row.category != "violence"}
            for key, found in run.get("meta", {}).items():
                have = result.rows[-1].meta[key]
                assert (list(have.values()) if isinstance(have, dict) else have) == found
        # Whatever is made of the answers, each is had once; what can't be read is asked once again.
        for number, server in enumerate(servers.values()):
            own = [answers[number] for answers in said.values() if answers]
            again = sum(answer in ("GARBLED", "REFUSES", "ECHOES") or answer == ["no idea", 1] for answer in own)  # fmt: skip
            assert len(server.requests) == len(own) + again


@pytest.mark.parametrize("taxonomy", list(taxonomies()))
@pytest.mark.parametrize(
    ("kind", "params"),
    [("moderate", {}), ("moderate", {"text": "response"}), ("assess", {}), ("natural", {}), ("classify", {}), ("screen", {})],
)  # fmt: skip
def test_every_place_of_a_wording_is_filled(
    kind: str, params: dict[str, str], taxonomy: str
) -> None:
    wording = stage(kind)(**params).wording(taxonomy)
    texts = ["PROMPT", "RESPONSE"] if params else ["PROMPT"]
    question, repair = asked(wording, *texts)
    assert "$" not in wording.system + question + repair
    assert repair.count(fence_key(wording.digest, *texts)) == 1
    if wording.field == "category":
        assert f"one of: {', '.join(taxonomies()[taxonomy])}, {wording.good}>" in question
        assert all(one.definition in wording.system for one in taxonomies()[taxonomy].values())
