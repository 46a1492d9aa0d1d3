"""Snapshots: verdicts and what they came from, for others to rely on; most often without texts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from or_eval import __version__
from or_eval.analysis.conditions import SYSTEM_PROMPT, settings_of
from or_eval.analysis.configuration import judge_of, score_params, scorer_version_of
from or_eval.analysis.logs import LogError, LogHead
from or_eval.analysis.rates import rates
from or_eval.analysis.responses import RECORD, Logs, as_they_are, counted_as, with_families
from or_eval.analysis.tables import records
from or_eval.analysis.wording import counted
from or_eval.schema import (
    FULL,
    STRICT,
    Label,
    PartialKind,
    Provenance,
    Reason,
    ResponseClass,
    countings,
    prompt_id,
)

ABOUT = "snapshot.json"
RESPONSES = "responses"
"""The configuration of the rows: ``responses/train.parquet``."""
FILE = f"{RESPONSES}/train.parquet"
SCHEMA_VERSION = 1

_FLAGS = ("refused", "refused_full", "certain")
COLUMNS = (
    *("run", "model", "benchmark", "task", "id", "framing", "epoch", *RECORD, "family"),
    *("refused", "refused_full", "response_class", "partial_kind", "unscored_because"),
    *("decided_by", "certain", "provenance", "reason", "response_language", "prompt", "response"),
)
"""The columns, in order; ``docs/leaderboard.md`` says what each one is."""
_WORDS: dict[str, Any] = {
    "label": Label,
    "response_class": ResponseClass,
    "partial_kind": PartialKind,
    "provenance": Provenance,
    "reason": Reason,
}
_ID = re.compile(r"[0-9a-f]{16}")
_RATES = ("benchmark", "model", "measure", "n", "refused", "families", "rate", "lower", "upper")
_NO_PROMPT = "none"
_DIGITS = 9
_SHOWN = 3


class Run(BaseModel):
    """What a snapshot says of how a log came about."""

    model_config = ConfigDict(extra="forbid")

    run: str
    model: str
    task: str
    benchmark: str
    data: str
    date: datetime
    prompts: int
    responses: int
    stored_responses: bool
    settings: dict[str, str]
    system_prompt_sha256: str | None
    task_args: dict[str, str]
    scoring: dict[str, str]
    scorer_version: str
    judge: str
    packages: dict[str, str]


class Rate(BaseModel):
    """A rate that a snapshot tells."""

    model_config = ConfigDict(extra="forbid")

    counting: str
    benchmark: str
    model: str
    measure: str
    n: int
    refused: int
    families: int
    rate: float | None
    lower: float | None
    upper: float | None


class About(BaseModel):
    """What ``snapshot.json`` holds.

    Attributes:
        schema_version: Version of this form.
        created: When the snapshot was made (UTC).
        or_eval: Version of or-eval that made it.
        scorer: Name of the score.
        texts: Which texts are there: ``none``, ``prompts`` or ``all``.
        countings: Which classes count as refused, by each of the countings.
        runs: What each log says of how it came about.
        rates: The rates of each model, by each counting.
        file: SHA-256 of the rows' file.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int
    created: str
    or_eval: str
    scorer: str
    texts: str
    countings: dict[str, list[str]]
    runs: list[Run]
    rates: list[Rate]
    file: str


class Snapshot(NamedTuple):
    """A snapshot as it is read.

    Attributes:
        about: What it says of itself.
        responses: Its rows, with the columns of a responses frame
            (:func:`or_eval.analysis.responses.read_logs`).
    """

    about: About
    responses: pd.DataFrame

    @property
    def date(self) -> str:
        """The day of its newest run."""
        return max(run.date for run in self.about.runs).astimezone(UTC).date().isoformat()


def rows_of(logs: Logs) -> pd.DataFrame:
    """Give the rows of a snapshot of logs, without texts.

    A prompt whose id is no hash of or-eval's gets one of its text.
    """
    run = {head.location: str(number) for number, head in enumerate(logs.heads, start=1)}
    ids = {
        str(key): str(key) if _ID.fullmatch(str(key)) else prompt_id(text)
        for key, text in logs.prompts["prompt"].items()
    }
    frame = logs.responses.assign(
        run=logs.responses["log"].map(run),
        id=logs.responses["id"].map(ids),
        seed_id=logs.responses["seed_id"].replace(ids),
        refused_full=counted_as(logs.responses, FULL)["refused"],
        prompt=None,
        response=None,
    )
    rows = with_families(frame).reindex(columns=list(COLUMNS))
    return _typed(rows)


def about_of(logs: Logs, rows: pd.DataFrame, scorer: str, texts: str, created: str) -> About:
    """Say of logs how they came about, and what rates they have.

    Arguments of models are left out, since they may hold keys; of system prompts only the hash is
    there.
    """
    by_log = dict(list(logs.responses.groupby("log")))
    return About(
        schema_version=SCHEMA_VERSION,
        created=created,
        or_eval=__version__,
        scorer=scorer,
        texts=texts,
        countings={key: sorted(one.refused) for key, one in countings().items()},
        runs=[
            _run(head, str(number), by_log.get(head.location, logs.responses.iloc[:0]), scorer)
            for number, head in enumerate(logs.heads, start=1)
        ],
        rates=_rates(rows),
        file="",
    )


def _run(head: LogHead, number: str, responses: pd.DataFrame, scorer: str) -> Run:
    spec, settings = head.header.eval, settings_of(head)
    said = settings.pop(SYSTEM_PROMPT, _NO_PROMPT)
    args = {} if head.stored else {key: str(value) for key, value in spec.task_args.items()}
    args.pop(SYSTEM_PROMPT, None)
    return Run(
        run=number,
        model=head.bare_model,
        task=head.task,
        benchmark=head.benchmark,
        data=head.data,
        date=datetime.fromisoformat(spec.created),
        prompts=responses["id"].nunique(),
        responses=len(responses),
        stored_responses=head.stored,
        settings=settings,
        system_prompt_sha256=(
            None if said == _NO_PROMPT else hashlib.sha256(said.encode()).hexdigest()
        ),
        task_args=args,
        scoring={key: str(value) for key, value in score_params(head, scorer).items()},
        scorer_version=scorer_version_of(head, scorer),
        judge=judge_of(responses, scorer),
        packages={name.replace("-", "_"): version for name, version in spec.packages.items()},
    )


def _rates(rows: pd.DataFrame) -> list[Rate]:
    plain = _plain(rows)
    return [
        Rate(counting=counting, **row)
        for counting in (STRICT, FULL)
        for row in records(
            rates(counted_as(plain, counting), ("benchmark", "model")).reindex(columns=list(_RATES))
        )
    ]


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    texts = [name for name in COLUMNS if name not in (*_FLAGS, "epoch")]
    kinds = dict.fromkeys(texts, "str") | dict.fromkeys(_FLAGS, "boolean") | {"epoch": "int64"}
    return frame.astype(kinds)


def _plain(rows: pd.DataFrame) -> pd.DataFrame:
    """Give rows as a responses frame, without prompts in contexts unless all are."""
    failed = rows["unscored_because"].where(rows["unscored_because"] == "error")
    frame = with_families(rows).assign(
        sample_id=rows["id"],
        log="run " + rows["run"],
        error=failed,
        audited=pd.array([False] * len(rows), "boolean"),
        judge_class=None,
        chance=float("nan"),
    )
    return as_they_are(Logs([], pd.DataFrame(), frame, [])).responses.reset_index(drop=True)


def find_snapshots(paths: Sequence[Path]) -> list[Path]:
    """Find the folders of snapshots: those named, or those in them.

    Raises:
        LogError: A path holds none.
    """
    found: dict[Path, None] = {}
    for path in paths:
        below = sorted(file.parent for file in path.rglob(ABOUT))
        if not below:
            raise LogError(f"{path}: no snapshot there ({ABOUT}); or-eval snapshot LOGS makes one")
        found |= dict.fromkeys(below)
    return list(found)


def read_snapshot(folder: Path) -> Snapshot:
    """Read a snapshot.

    Raises:
        LogError: There is none, or it isn't as it should be.
    """
    found = list(snapshot_problems(folder))
    if found:
        more = f"; and {counted(len(found) - 1, 'problem')} more" if len(found) > 1 else ""
        raise LogError(f"{folder}: {found[0]}{more} (or-eval snapshot --check lists all)")
    about = About.model_validate_json((folder / ABOUT).read_bytes())
    return Snapshot(about, _plain(_read(folder)))


def _read(folder: Path) -> pd.DataFrame:
    from pyarrow.parquet import ParquetFile

    rows: pd.DataFrame = ParquetFile(folder / FILE).read().to_pandas()
    return rows


def snapshot_problems(folder: Path) -> Iterator[str]:
    """Find what is wrong with a snapshot: its form, its words, its hashes, its rates."""
    try:
        about = About.model_validate_json((folder / ABOUT).read_bytes())
        data = (folder / FILE).read_bytes()
    except OSError as error:
        yield f"holds no snapshot: {error.filename} can't be read ({error.strerror})"
        return
    except ValidationError as error:
        first = error.errors()[0]
        yield f"{ABOUT}: {'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"
        return
    if about.schema_version != SCHEMA_VERSION:
        yield f"{ABOUT}: schema_version is {about.schema_version}, wanted {SCHEMA_VERSION}"
        return
    if hashlib.sha256(data).hexdigest() != about.file:
        yield f"{FILE}: isn't the file that {ABOUT} names by its hash"
    try:
        rows = _read(folder)
        if list(rows.columns) != list(COLUMNS):
            yield f"{FILE}: the columns must be {', '.join(COLUMNS)}"
            return
        rows = _typed(rows)
    except (OSError, ValueError, TypeError) as error:
        yield f"{FILE}: can't be read ({' '.join(str(error).split())[:200]})"
        return
    if rows.empty or not about.runs:
        yield f"{FILE}: has no rows, or {ABOUT} no runs"
        return
    wrong = list(_wrong_rows(rows, about))
    yield from wrong
    if not wrong and (told := _told(about.rates)) != (found := _told(_rates(rows))):
        which = next(iter(told.keys() ^ found.keys() or {k for k in told if told[k] != found[k]}))
        yield f"{ABOUT}: the {' '.join(which)} rate isn't that of the rows"


def _wrong_rows(rows: pd.DataFrame, about: About) -> Iterator[str]:
    known = {run.run for run in about.runs}
    strict, full = (counted_as(rows, key)["refused"] for key in (STRICT, FULL))
    classed = rows["response_class"].notna()
    by_class = rows["response_class"].isin(list(countings()[STRICT].refused))
    texts, hashes = rows["prompt"].notna(), rows["id"]
    faults = {
        "id is no hash of 16 digits": ~hashes.str.fullmatch(_ID.pattern).fillna(False),
        "run isn't told of": ~rows["run"].isin(known),
        "model is empty": rows["model"].fillna("").str.strip() == "",
        "refused isn't what the class says": classed & (strict.fillna(False) != by_class),
        "refused_full isn't what the class says": full.fillna(False)
        != rows["refused_full"].fillna(False),
        "has neither a verdict nor why": rows["refused"].isna() & rows["unscored_because"].isna(),
        "text of the prompt doesn't belong there": texts
        & ((about.texts == "none") | (rows["label"] != Label.SAFE)),
        "text of the response doesn't belong there": rows["response"].notna()
        & ((about.texts != "all") | ~texts),
        "id isn't the hash of the prompt": texts
        & rows["framing"].isna()
        & (rows["prompt"].map(lambda text: prompt_id(str(text))) != hashes),
        **{
            f"{name} is none of {', '.join(words)}": rows[name].notna()
            & ~rows[name].isin(list(words))
            for name, words in _WORDS.items()
        },
    }
    for said, flags in faults.items():
        if places := list(rows.index[flags.astype(bool)]):
            more = f", and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
            yield f"{FILE}: row {', '.join(str(at + 1) for at in places[:_SHOWN])}{more}: {said}"


def _told(found: list[Rate]) -> dict[tuple[str, ...], tuple[int | float | None, ...]]:
    """Give what must come out the same of rows whichever version of or-eval counts them."""
    return {
        (one.counting, one.benchmark, one.model, one.measure): (
            *(one.n, one.refused, one.families),
            None if one.rate is None else round(one.rate, _DIGITS),
        )
        for one in found
    }


def as_json(about: About) -> str:
    """Write what a snapshot says of itself."""
    return about.model_dump_json(indent=1) + "\n"
