"""A snapshot on disk: its rows, what it says of itself, and a card, as a push takes them."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

import pandas as pd
from jinja2 import Environment, StrictUndefined

from or_eval.analysis.responses import Logs
from or_eval.analysis.samples import samples_of
from or_eval.analysis.snapshots import (
    ABOUT,
    FILE,
    RESPONSES,
    About,
    Run,
    about_of,
    as_json,
    rows_of,
)
from or_eval.analysis.wording import named
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.publishing.data_card import (
    REPOSITORY,
    TAG,
    cell,
    languages_of,
    size_of,
)
from or_eval.dataset_builders.publishing.dataset_folder import CARD, SNAPSHOT_TAG, SPLIT
from or_eval.dataset_builders.publishing.licences import licence_problem
from or_eval.dataset_builders.publishing.local_paths import without_folders
from or_eval.schema import Label
from or_eval.sources import catalogue

Texts: TypeAlias = Literal["none", "prompts", "all"]
_NAMES = ("model", "benchmark", "task", "source", "category", "method")


def write_snapshot(
    logs: Logs, out: Path, *, scorer: str, texts: Texts = "none", licence: str = "cc-by-4.0"
) -> Path:
    """Write a snapshot of logs; an earlier one in the folder is replaced.

    Args:
        logs: The logs.
        out: The folder.
        scorer: Name of the score that they were read by.
        texts: Which texts go in: prompts, and responses too. Those of toxic and unlabelled prompts
            never do, nor those of sources whose licence doesn't allow it.
        licence: Licence of the snapshot, by the Hub's short name.

    Raises:
        BuildError: The folder holds something else, or can't be written.
    """
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not (out / ABOUT).is_file()):
        raise BuildError(f"{out}: holds something else than a snapshot; name another with --out")
    found = {name: logs.responses[name].map(without_folders) for name in _NAMES}
    named_logs = logs._replace(responses=logs.responses.assign(**found))
    rows = rows_of(named_logs)
    if texts != "none":
        rows = _with_texts(rows, logs, texts, licence)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    about = about_of(named_logs, rows, scorer, texts, created)
    about.runs = [Run(**without_folders(run.model_dump())) for run in about.runs]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as beside:
            new = Path(beside) / "new"
            (new / FILE).parent.mkdir(parents=True)
            rows.to_parquet(new / FILE, index=False, compression="zstd")
            about.file = hashlib.sha256((new / FILE).read_bytes()).hexdigest()
            (new / ABOUT).write_text(as_json(about), encoding="utf-8", newline="\n")
            card = _card(rows, about, licence)
            (new / CARD).write_text(card, encoding="utf-8", newline="\n")
            shutil.rmtree(out, ignore_errors=True)
            new.rename(out)
    except OSError as error:
        raise BuildError(f"{out}: can't be written ({error.strerror or error})") from error
    return out


def _with_texts(rows: pd.DataFrame, logs: Logs, texts: Texts, licence: str) -> pd.DataFrame:
    known = catalogue()
    kept = {
        source: source not in known or licence_problem(known[source].licence, licence) is None
        for source in rows["source"].dropna().unique()
    }
    free = (rows["label"] == Label.SAFE) & rows["source"].map(kept).fillna(True).astype(bool)
    prompts = logs.responses["id"].map(logs.prompts["prompt"])
    rows = rows.assign(prompt=prompts.where(free))
    if texts == "all":
        said = {at: one.output.completion for at, one in samples_of(logs.responses[free])}
        rows = rows.assign(response=pd.Series(said, dtype="str").reindex(rows.index))
    return rows


def _card(rows: pd.DataFrame, about: About, licence: str) -> str:
    from huggingface_hub import DatasetCardData

    models = list(rows["model"].unique())
    title = f"Refusals of {named(models)} on {named(list(rows['benchmark'].unique()), 'benchmark')}"
    header = DatasetCardData(
        language=languages_of(rows["language"].dropna()),
        license=licence.lower(),
        size_categories=[size_of(len(rows))],
        pretty_name=cell(title),
        tags=[TAG, SNAPSHOT_TAG, "over-refusal", "evaluation-results"],
        configs=[
            {"config_name": RESPONSES, "data_files": [{"split": SPLIT, "path": FILE}]},
        ],
    ).to_yaml(line_break="\n")
    environment = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    environment.filters["cell"] = lambda value: cell(str(value))
    page = files("or_eval.dataset_builders.publishing") / "snapshot_card.md.jinja"
    body = environment.from_string(page.read_text("utf-8")).render(
        title=title,
        about=about,
        rows=len(rows),
        texts=int(rows["prompt"].notna().sum()),
        repository=REPOSITORY,
    )
    return f"---\n{header}\n---\n\n{body}\n"
