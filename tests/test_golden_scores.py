"""What `or-eval classify` says of every stored response, and a score's metadata of some."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from golden_files import assert_golden

SETS = (
    "arabic_do_not_answer",
    "authority_prefixes_fr_de",
    "chatgpt_refusals",
    "k_overrefusal_dev",
    "speechmap_dev",
    "xstest_human",
)
ADDED = ("certain", "provenance", "reason", "evidence", "response_language", "unscored_because")


@pytest.mark.parametrize("name", SETS)
def test_every_stored_response_is_classed_as_before(
    name: str, shared_data: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    from click.testing import CliRunner

    from or_eval.cli import main

    stored, out = shared_data / "labels" / f"{name}.jsonl.gz", tmp_path / "out.jsonl"
    with gzip.open(stored, "rt", encoding="utf-8") as lines:
        exchanges = [json.loads(line) for line in lines]
    # Other columns would be taken for what this command writes.
    copy = tmp_path / "stored.jsonl"
    kept = [{key: row[key] for key in ("prompt", "response")} for row in exchanges]
    copy.write_text("".join(json.dumps(row) + "\n" for row in kept))
    done = CliRunner().invoke(main, ["classify", str(copy), "--out", str(out)])
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len(rows) == len(exchanges)
    assert_golden(f"classify/{name}.txt", [_line(row) for row in rows], request)


def _line(row: dict[str, object]) -> str:
    """Say a verdict in short; its digest tells whether anything else of it moved."""
    told = json.dumps([row[key] for key in ADDED], sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(told.encode()).hexdigest()[:6]
    label = row["class"] or f"unscored:{row['unscored_because']}"
    return f"{label} {'certain' if row['certain'] else '-'} {row['reason'] or '-'} {digest}"
