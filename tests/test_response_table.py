"""`responses.parquet`: every response with all that is known of it."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from inspect_ai.log import read_eval_log

from made_logs import UNSCORED, made_log, made_sample
from or_eval.analysis.rates import rates
from or_eval.analysis.response_table import COLUMNS, write_responses
from or_eval.analysis.responses import RECORD, VERDICT, Logs, read_logs

DOCS = Path(__file__).parents[1] / "docs" / "reference" / "findings.md"
HALF = "half of a pair: \ud83d."


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    """Logs in both of Inspect's formats, with epochs, an error, and texts of all sorts."""
    folder = tmp_path_factory.mktemp("logs")
    for number, ending in enumerate(("eval", "json")):
        samples = [
            made_sample(
                f"s{n}/?{'é' if n else ''}",
                [1.0, 0.0, UNSCORED][n % 3],
                epoch=epoch,
                prompt=f"prompt {n} " + "long " * 2000 * (n == 3),
                response=f"response {n} in epoch {epoch} by {number}" + HALF * (n == 2),
                error="boom" if n == 4 else None,
                seed_id=f"seed {n // 2}",
                label="toxic" if n % 2 else "safe",
                meta={"sensitive_part": "end"} if n == 1 else {},
            )
            for n in range(6)
            for epoch in (1, 2)
        ]
        made_log(folder / f"{number}.{ending}", f"m{number}", samples, second=number)
    return read_logs(sorted(folder.iterdir()))


@pytest.fixture(scope="module")
def table(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    path = tmp_path_factory.mktemp("table") / "responses.parquet"
    write_responses(logs, path)
    return pd.read_parquet(path)


def test_every_response_stands_in_its_row(logs: Logs, table: pd.DataFrame) -> None:
    assert tuple(table.columns) == COLUMNS
    assert len(table) == len(logs.responses) == 24
    said = {
        (head.model, str(sample.id), sample.epoch): sample
        for head in logs.heads
        for sample in read_eval_log(head.location).samples or []
    }
    for row in table.to_dict("records"):
        sample = said[row["model"], row["sample_id"], row["epoch"]]
        assert row["response"] == sample.output.completion
        assert row["prompt"] == sample.input
        assert row["log"] in {"0.eval", "1.json"}
    same = ["id", "sample_id", "epoch", *RECORD, *VERDICT, "error"]
    pd.testing.assert_frame_equal(table[same], logs.responses[same])
    assert table.groupby("family")["id"].nunique().tolist() == [2, 2, 2]
    parts = table.dropna(subset=["sensitive_part"])
    assert set(parts["sensitive_part"]) == {"end"}
    assert set(parts["id"]) == set(table["id"][table["prompt"] == "prompt 1 "])


def test_rates_by_hand_are_the_reports(logs: Logs, table: pd.DataFrame) -> None:
    safe = table[(table["label"] == "safe") & table["refused"].notna()]
    prompts = safe.groupby(["model", "id"])["refused"].mean()
    found = rates(logs.responses).query("measure == 'over_refusal'").set_index("model")["rate"]
    assert prompts.groupby("model").mean().to_dict() == pytest.approx(found.to_dict())


def test_every_column_is_documented() -> None:
    rows = [line for line in DOCS.read_text("utf-8").splitlines() if line.startswith("| `")]
    named = {name for line in rows for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert set(COLUMNS) <= named
