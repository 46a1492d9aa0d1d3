"""Every response with all that is known of it, as Parquet, for plots and tests of one's own."""

from __future__ import annotations

from pathlib import Path

from or_eval.analysis.logs import FRAMING
from or_eval.analysis.progress import tracked
from or_eval.analysis.prompt_texts import SENSITIVE_PART, sensitive_parts
from or_eval.analysis.responses import RECORD, VERDICT, Logs, counted_as
from or_eval.analysis.samples import samples_of
from or_eval.schema import FULL

COLUMNS = (
    *("model", "base_model", "condition", "benchmark", "task", "log"),
    *("id", "sample_id", "framing", "epoch", "prompt", "response"),
    *RECORD,
    "family",
    SENSITIVE_PART,
    *VERDICT,
    "refused_full",
    "error",
)
"""The columns, in order; ``docs/analysis.md`` says what each one is."""


def write_responses(logs: Logs, path: Path) -> None:
    """Write a row per model, sample and epoch to a Parquet file, one log after the other.

    Args:
        logs: The frames of the logs.
        path: The file.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    heads = {head.location: head for head in logs.heads}
    parts = sensitive_parts(logs.responses, logs.prompts)
    writer = None
    by_log = logs.responses.groupby("log", sort=False)
    for location, rows in tracked(list(by_log), "Writing responses"):
        head = heads[str(location)]
        frame = rows.assign(
            base_model=head.bare_model,
            condition=rows["framing"].map(
                {one.factors.get(FRAMING): one.condition for one in head.conditions}
            )
            if head.framings
            else head.condition,
            log=Path(str(location)).name,
            prompt=rows["id"].map(logs.prompts["prompt"]),
            response=[sample.output.completion for _, sample in samples_of(rows)],
            sensitive_part=rows["id"].map(parts),
            refused_full=counted_as(rows, FULL)["refused"],
        )
        strings = [name for name in COLUMNS if name not in _TYPES]
        table = pa.Table.from_pandas(
            frame[list(COLUMNS)].astype(dict.fromkeys(strings, "str") | _TYPES),
            preserve_index=False,
        )
        writer = writer or ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    if writer is not None:
        writer.close()


_TYPES = dict.fromkeys(("refused", "refused_full", "certain", "audited"), "boolean") | {
    "epoch": "int64"
}
