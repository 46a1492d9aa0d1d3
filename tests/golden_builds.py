"""A build as lines for a golden file: what was asked, and of each stage its rows, drops and tables."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from servers import Request

_SHOWN = 1_000


def built_lines(out: Path, requests: Iterable[Request], *, whole: bool = True) -> list[str]:
    """Give the lines of a build.

    Args:
        out: Its folder.
        requests: What servers were asked for it, in whatever order.
        whole: Whether each row has a line; otherwise each file of rows has one.
    """
    lines = [*_requests(requests)]
    for facts in json.loads((out / "funnel.json").read_text("utf-8")):
        told = {
            key: facts[key] for key in ("name", "kind", "rows_in", "made", "rows_out", "missing")
        }
        told |= {
            key: facts[key] for key in ("dropped", "subsets", "sources", "models") if facts[key]
        }
        told["spent"] = sorted(list(one.values())[1:] for one in facts["spent"])
        lines.append(_line(told))
        folder = out / "stages" / facts["name"]
        for file in sorted(folder.rglob("*.parquet")):
            name = str(file.relative_to(folder).with_suffix(""))
            rows = [_row(row) for row in pq.read_table(file).to_pylist()]
            lines += [f"  {name} {row}" for row in rows] if whole else [f"  {name} {len(rows)} {_digest(rows)}"]  # fmt: skip
        for file in sorted(folder.rglob("*.csv")):
            text = file.read_text("utf-8")
            lines += [f"  {file.stem}: {line}" for line in text.splitlines()] if len(text) < _SHOWN else [f"  {file.stem} {_digest(sorted(text.splitlines()))}"]  # fmt: skip
    lines += [f"funnel {line}" for line in (out / "funnel.csv").read_text("utf-8").splitlines()]
    return lines


def _requests(requests: Iterable[Request]) -> list[str]:
    """Give how often each model was asked with which instructions, and a digest of it all."""
    asked: Counter[tuple[str, str]] = Counter()
    bodies: dict[tuple[str, str], list[str]] = {}
    for request in requests:
        first = request.messages[0]
        system = first["content"].partition("\n")[0][:60] if first["role"] == "system" else ""
        key = (request.body["model"], system)
        asked[key] += 1
        bodies.setdefault(key, []).append(_line(request.body))
    return [
        f"asked {model} {number} {_digest(sorted(bodies[model, system]))} {system}"
        for (model, system), number in sorted(asked.items())
    ]


def _row(row: dict[str, Any]) -> str:
    meta = json.loads(row["meta"]) if row["meta"] else {}
    meta.pop("question", None)  # a key of the store of replies
    ids = [row[name] and row[name][:8] for name in ("id", "seed_id", "pair_id")]
    names = ("label", "category", "language", "source", "method")
    said = [*ids, *(row[name] for name in names), _digest([row["prompt"], meta])]
    if "reason" in row:
        said += [
            row["reason"],
            row["detail"] if len(row["detail"]) < 40 else _digest(row["detail"]),
        ]
    return " ".join("-" if one is None else str(one) for one in said)


def _digest(said: Any) -> str:
    return hashlib.sha256(_line(said).encode()).hexdigest()[:8]


def _line(said: Any) -> str:
    return json.dumps(said, ensure_ascii=False, sort_keys=True)
