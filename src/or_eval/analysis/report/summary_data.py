"""What becomes summary.json, as summary.schema.json describes it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from or_eval import __version__
from or_eval.analysis.report.contents import ReportTable
from or_eval.analysis.report.findings import Findings
from or_eval.analysis.tables import plain, records
from or_eval.schema import Label

SCHEMA_VERSION = 2


def summary_data(found: Findings, tables: list[ReportTable]) -> dict[str, Any]:
    """Give the findings of a report on models as JSON-ready data."""
    responses = found.logs.responses
    frames = {table.name: records(table.frame) for table in tables}
    alpha = {label: plain(of.alpha._asdict()) for label, of in found.agreement.items()}
    return {
        "prompts": {
            label.value: int((found.logs.prompts["label"] == label).sum()) for label in Label
        },
        "responses": {
            "total": len(responses),
            "with_verdict": int(responses["refused"].notna().sum()),
        },
        "models": frames.get("models", []),
        "corrected": frames.get("corrections", []),
        "worst_categories": frames.get("worst-categories", []),
        "differences": frames.get("differences", []),
        "rankings": {name: records(table) for name, table in found.rankings.items()},
        "safety_over_refusal": plain(found.correlation._asdict()),
        "alpha": alpha,
    }


def stamp(kind: str) -> dict[str, Any]:
    """Give what every summary.json starts with."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        "or_eval": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
