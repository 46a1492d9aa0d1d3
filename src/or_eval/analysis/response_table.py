"""Every response with all that is known of it, as Parquet, for plots and tests of one's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput

from or_eval.analysis.families import response_families
from or_eval.analysis.progress import tracked
from or_eval.analysis.responses import RECORD, VERDICT, Logs
from or_eval.analysis.sensitive_parts import SENSITIVE_PART, sensitive_parts
from or_eval.inspect_private import file as open_file

COLUMNS = (
    *("model", "base_model", "condition", "benchmark", "task", "log"),
    *("id", "sample_id", "epoch", "prompt", "response"),
    *RECORD,
    "family",
    SENSITIVE_PART,
    *VERDICT,
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
    parts = sensitive_parts(logs)
    families = response_families(logs.responses)
    writer = None
    by_log = logs.responses.groupby("log", sort=False)
    for location, rows in tracked(list(by_log), "Writing responses"):
        head, texts = heads[str(location)], dict(_texts(str(location)))
        frame = rows.assign(
            base_model=head.bare_model,
            condition=head.condition,
            log=Path(str(location)).name,
            prompt=rows["id"].map(logs.prompts["prompt"]),
            response=pd.MultiIndex.from_frame(rows[["sample_id", "epoch"]]).map(texts),
            family=families[rows.index],
            sensitive_part=rows["id"].map(parts),
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


_TYPES = dict.fromkeys(("refused", "certain", "audited"), "boolean") | {"epoch": "int64"}


def _texts(log: str) -> Iterator[tuple[tuple[str, int], str]]:
    """Read the responses of a log by sample id and epoch.

    Straight from the samples' JSON where a log is an archive of them: to make objects of all that
    stands in a sample takes seven times as long.
    """
    if not log.endswith(".eval"):
        for sample in read_eval_log(log).samples or []:
            yield (str(sample.id), sample.epoch), sample.output.completion
        return
    with open_file(log, "rb") as raw, ZipFile(raw) as archive:
        for name in archive.namelist():
            if name.startswith("samples/"):
                sample = json.loads(archive.read(name))
                output = ModelOutput.model_validate(sample["output"])
                yield (str(sample["id"]), sample["epoch"]), output.completion
