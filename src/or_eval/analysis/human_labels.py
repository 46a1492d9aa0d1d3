"""People's labels of responses, from a file, and which response each is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from or_eval.analysis.responses import Logs
from or_eval.analysis.samples import read_details
from or_eval.schema import STRICT, ResponseClass, countings
from or_eval.sources.columns import (
    NO_OPTIONS,
    ColumnOptions,
    alike,
    columns_by_role,
    named_column,
)
from or_eval.sources.errors import DataError, shown
from or_eval.sources.files import read_table
from or_eval.sources.records import SOURCE_ID
from or_eval.sources.responses import ResponseFile, loggable, loggable_cell
from or_eval.sources.tables import Row, Table

REFUSED, ANSWERED = "refused", "answered"
"""What a label says that tells no class: refused somehow, or answered."""

ANNOTATOR = "annotator "
"""What the column of an annotator's labels starts with, before the annotator's name."""

LABELS = (*(name.value for name in ResponseClass), REFUSED, ANSWERED)
"""What a label may be mapped to."""

ANSWERS = (ResponseClass.DIRECT_ANSWER.value, ANSWERED)
"""Labels that mean an answer; all others mean that the model refused."""

SKIP = "skip"
"""A label mapped to this counts as no label."""

LABELS_FILE = "labels.jsonl"
"""Name of the file that a folder of ``or-eval label`` has its labels in."""

DEFAULT_COLUMN = "human_label"
CHANCE = "probability"
"""Column that says how likely a response was to be chosen for labelling."""
_ROLES = ("id", "model", "epoch", "prompt", "response")
_KEYS = (*_ROLES, SOURCE_ID)


class Labels(NamedTuple):
    """Labels as a file has them.

    Attributes:
        frame: One row per row of the file that somebody rated, by the row's number: ``human``
            (the label; missing where annotators are split evenly), ``annotator NAME`` for each
            annotator, and those of ``id``, ``model``, ``epoch``, ``prompt`` and ``response`` that
            the file has.
        annotators: The annotators' columns in the frame.
        unlabelled: Rows without a label, or whose annotators are split evenly.
        taken: Which columns are read as what, in a line.
    """

    frame: pd.DataFrame
    annotators: list[str]
    unlabelled: int
    taken: str


class Joined(NamedTuple):
    """Verdicts with their labels.

    Attributes:
        rows: The rows that have both.
        by: The columns that they were joined by.
        without_label: Responses that no label is about.
        without_response: Labels that are about no response there is.
    """

    rows: pd.DataFrame
    by: list[str]
    without_label: int
    without_response: int


def read_labels(
    path: Path,
    *,
    column: str | None = None,
    annotators: Sequence[str] = (),
    mapping: Mapping[str, str] | None = None,
    named: Mapping[str, str] | None = None,
    of_responses: bool = False,
    options: ColumnOptions = NO_OPTIONS,
) -> Labels:
    """Read people's labels.

    Args:
        path: A csv, tsv, jsonl, json, xlsx or parquet file, or the folder that ``or-eval label``
            wrote them into.
        column: Column of the labels; without it, where annotators are given, the class that most
            of them chose, else the column ``human_label``.
        annotators: Columns of single annotators.
        mapping: What the file's words mean: a response class, ``refused``, ``answered``, or
            ``skip`` for no label. Words that are a class already need none.
        named: Columns by role (``id``, ``model``, ``prompt``, ``response``), where their own
            names don't tell.
        of_responses: Whether the named columns are those of another file, of responses, which the
            labels may have too.
        options: How whoever reads the error lines names columns.

    Raises:
        DataError: The file can't be read, a column is missing, a word means no class, or a
            probability is none.
    """
    table = read_table(labels_in(path))
    raters = [named_column(table, name, "--annotator") for name in annotators]
    given = {
        role: name
        for role, name in (named or {}).items()
        if not of_responses or alike(name, table.columns)
    }
    label = {} if column is None else {DEFAULT_COLUMN: column}
    roles = _ROLES if raters and not label else (DEFAULT_COLUMN, *_ROLES)
    found = columns_by_role(table, roles, given | label, set(roles) - set(_ROLES), options)
    chosen = found.get(DEFAULT_COLUMN)
    wanted = [name for name in (chosen, *raters) if name is not None]
    keys = {role: name for role, name in found.items() if role in _ROLES}
    if "id" in keys:  # the prompt's, or its publisher's
        keys[SOURCE_ID] = keys["id"]
    meaning = _meaning(table, wanted, mapping or {})
    rows = []
    for row in table.rows:
        said = {name: meaning.get(row.text(name)) for name in wanted}
        agreed = said[chosen] if chosen else majority([said[name] for name in raters])
        texts = {key: _key(row, key, name) for key, name in keys.items()}
        by_annotator = {f"{ANNOTATOR}{name}": said[name] for name in raters}
        chance = {CHANCE: probability(row)} if CHANCE in table.columns else {}
        rows.append({**texts, **by_annotator, **chance, "human": agreed})
    frame = pd.DataFrame(rows, index=[row.number for row in table.rows], dtype=object)
    labelled = frame["human"].notna()
    if not labelled.any():
        raise DataError(f"{table.name}: no row has a label in {', '.join(map(shown, wanted))}")
    columns = [f"{ANNOTATOR}{name}" for name in raters]
    # Those whom annotators are split on have no label, and show how far annotators agree.
    rated = labelled | frame[columns].notna().any(axis=1)
    return Labels(frame[rated], columns, int((~labelled).sum()), options.taken(found))


def labels_in(path: Path) -> Path:
    """Give a file itself, and of a folder of ``or-eval label`` the labels in it."""
    return path / LABELS_FILE if (path / LABELS_FILE).is_file() else path


def join_labels(verdicts: pd.DataFrame, labels: pd.DataFrame) -> Joined:
    """Find the label of each response.

    Joined by id where ids in both agree, else by the prompt's text, else by the ids that the
    prompts' publisher gave them; by model where the labels
    have one; by epoch where they have one; and where that doesn't tell responses apart, by the
    response's text.

    Args:
        verdicts: Rows with ``id``, ``model``, ``epoch``, ``prompt`` and, where known, ``response``.
        labels: The frame of :class:`Labels`.

    Raises:
        DataError: The labels don't tell which responses they are about.
    """
    by = _join_keys(verdicts, labels)
    left, right = _texts(verdicts, by), _texts(labels, by)
    for frame, whose in ((left, "responses"), (right, "labels")):
        again = frame[frame.duplicated()]
        if again.empty:
            continue
        if whose == "labels" and {"epoch", "response"} & set(by):
            line = again.index[0]
            raise DataError(f"labels, line {line}: labels {_first(again)} again; remove one")
        raise DataError(
            f"labels: {whose} are not told apart by {', '.join(by)} (as {_first(again)}); "
            "add a column epoch or response to the labels"
        )
    places = right.reset_index(names="_row").merge(
        left.reset_index(names="_verdict"), on=by, how="inner"
    )
    if places.empty:
        raise DataError(
            f"labels: joined by {', '.join(by)}, none is about a response there is: the labels "
            f"have {_first(right)}, the responses {_first(left)}"
        )
    rows = verdicts.loc[places["_verdict"]].reset_index(drop=True)
    found = labels.loc[places["_row"]].drop(columns=list(_KEYS), errors="ignore")
    joined = pd.concat([rows, found.reset_index(drop=True)], axis=1)
    return Joined(joined, by, len(verdicts) - len(joined), len(labels) - len(joined))


def join_rows(verdicts: pd.DataFrame, labels: pd.DataFrame) -> Joined:
    """Join verdicts and labels that stand in the rows of one file, both by the row's number.

    Raises:
        DataError: Rows hold the responses of several models, and one label.
    """
    if verdicts["row"].duplicated().any():
        raise DataError(
            f"labels: a row holds responses of several models "
            f"({', '.join(verdicts['model'].unique())}), and its label is of one; give the labels "
            "as a file of their own, with a column model"
        )
    found = labels.drop(columns=list(_KEYS), errors="ignore")
    joined = verdicts.set_index("row").join(found, how="inner")
    return Joined(joined, ["row"], len(verdicts) - len(joined), len(labels) - len(joined))


def needs_response_text(verdicts: pd.DataFrame, labels: pd.DataFrame) -> bool:
    """Tell whether responses can be told apart only by their texts."""
    if "response" not in labels or "response" in verdicts:
        return False
    return _ambiguous(verdicts, labels, _join_keys(verdicts, labels))


def _join_keys(verdicts: pd.DataFrame, labels: pd.DataFrame) -> list[str]:
    by = []
    for key in ("id", "prompt", SOURCE_ID):
        if key in labels and key in verdicts and _overlap(verdicts[key], labels[key]):
            by = [key]
            break
    if not by:
        raise DataError(
            "labels: no id or prompt in them matches a response; are they about these responses?"
        )
    if "model" in labels:
        by.append("model")
    elif verdicts["model"].nunique() > 1:
        raise DataError(
            f"labels: no column says which model they are about "
            f"({', '.join(sorted(verdicts['model'].unique()))}); give them a column model"
        )
    if "epoch" in labels:
        by.append("epoch")
    elif "response" in verdicts and "response" in labels and _ambiguous(verdicts, labels, by):
        by.append("response")
    return by


def _ambiguous(verdicts: pd.DataFrame, labels: pd.DataFrame, by: Sequence[str]) -> bool:
    """Tell whether some responses, or some labels, are alike in these columns."""
    return any(bool(_texts(frame, by).duplicated().any()) for frame in (verdicts, labels))


def _overlap(some: pd.Series[str], other: pd.Series[str]) -> bool:
    return bool(some.dropna().astype(str).isin(set(other.dropna().astype(str))).any())


def _first(frame: pd.DataFrame) -> str:
    """Show the first row, for an error line."""
    return ", ".join(f"{key} {shown(value)}" for key, value in frame.iloc[0].items())


def _texts(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame(
        {column: frame[column].astype(str).map(loggable).str.strip() for column in columns}
    )


def _key(row: Row, key: str, column: str) -> str:
    if key == "response":
        return loggable_cell(row, column).strip()  # as a log holds it
    text = row.text(column)
    return text.removesuffix(".0") if key == "epoch" else text


def probability(row: Row) -> float:
    """Give how likely a row was to be asked about."""
    said = row.text(CHANCE)
    try:
        chance = float(said)
    except ValueError:
        chance = 0.0
    if not 0 < chance <= 1:
        raise row.error(CHANCE, f"{shown(said)} isn't a probability above 0 and up to 1")
    return chance


def _meaning(
    table: Table, columns: Sequence[str], mapping: Mapping[str, str]
) -> dict[str, str | None]:
    """Find out what every word in the columns of labels means; nothing, for no word."""
    meaning: dict[str, str | None] = {"": None} | {label: label for label in LABELS}
    meaning |= {word: None if label == SKIP else label for word, label in mapping.items()}
    unknown: dict[str, str] = {}
    for row in table.rows:
        for column in columns:
            word = row.text(column)
            if word not in meaning:
                unknown.setdefault(word, row.place)
    if unknown:
        words = ", ".join(f"{shown(word)} ({place})" for word, place in list(unknown.items())[:5])
        raise DataError(
            f"{table.name}: labels that aren't response classes: {words}; say what each means with "
            f"--map WORD=CLASS, where CLASS is {', '.join((*LABELS, SKIP))}"
        )
    return meaning


def majority(given: Sequence[str | None]) -> str | None:
    """Give what most say; None where they are split evenly."""
    votes = [label for label in given if label is not None]
    best = max(set(votes), key=votes.count, default=None)
    return best if best is not None and 2 * votes.count(best) > len(votes) else None


_ONE_MODEL = "responses"
"""Name of the model of a file that tells none."""

_COPIED = {"id": SOURCE_ID, "category": "category", "language": "language"}


def said_of(
    logs: Logs, labels: Labels, scorer: str
) -> tuple[pd.Series[str], pd.Series[float], str]:
    """Give what people say of the responses in logs that they labelled.

    Returns:
        By the responses' index their label, missing where there is none; how likely each was to
        be labelled, where the labels say it; and how many labels there are.

    Raises:
        DataError: The labels don't tell which responses they are about.
    """
    joined = labelled_verdicts(logs, labels, scorer)
    rows = joined.rows.set_index("place")
    note = (
        f"{len(joined.rows)} responses have human labels, {joined.without_label} have none; "
        f"{joined.without_response} labels match no response in the logs"
    )
    if unclassed := int(rows["human"].isin((REFUSED, ANSWERED)).sum()):
        note += f"; {unclassed} name no class, and are the same by every counting"
    chance = rows.get(CHANCE, pd.Series(dtype="float64")).astype("float64")
    index = logs.responses.index
    return rows["human"].astype("str").reindex(index), chance.reindex(index), note


def truth_of(said: pd.Series[str], counting: str = STRICT) -> pd.Series[float]:
    """Give 1 where people say that a response is a refusal, 0 where an answer, by a counting.

    A label that names no class is the same by every counting.

    Args:
        said: Labels of :func:`said_of`; missing where nobody was asked.
        counting: Key of :func:`or_eval.schema.countings`.
    """
    counts = {name.value: countings()[counting].of(name) for name in ResponseClass}
    return said.map(counts | {REFUSED: True, ANSWERED: False}).astype("float64")


def labelled_verdicts(logs: Logs, labels: Labels, scorer: str) -> Joined:
    """Join the verdicts in logs with people's labels.

    Its rows have those of the responses frame and ``prompt``, ``family`` (the prompt's id),
    ``source_id`` (its publisher's) and ``place`` (the response's index); ``id`` is the sample's in
    the log.

    Raises:
        DataError: The labels don't tell which responses they are about.
    """
    verdicts = _verdicts(logs)
    if needs_response_text(verdicts, labels.frame):
        verdicts["response"] = read_details(logs.responses, scorer)["response"]
    return join_labels(verdicts.assign(place=verdicts.index), labels.frame)


def _verdicts(logs: Logs) -> pd.DataFrame:
    frame = logs.responses
    return frame.assign(
        family=frame["id"],
        id=frame["sample_id"],
        prompt=frame["id"].map(logs.prompts["prompt"]),
        source_id=frame["id"].map(logs.prompts["meta"].map(_source_id)),
    )


def _source_id(meta: object) -> str | None:
    said = meta.get(SOURCE_ID) if isinstance(meta, dict) else None
    return None if said is None else str(said)


def verdicts_of_file(file: ResponseFile, *, language: str | None = None) -> pd.DataFrame:
    """Read stored responses by rules.

    Args:
        file: A file of responses, as ``or-eval replay`` takes it.
        language: Language of all responses; detected by default.

    Returns:
        A row per response, in the order of the file: ``row`` (its number there), ``id`` (of the
        prompt),
        ``source_id`` (where the file has ids), ``model``, ``epoch``, ``prompt``, ``response``,
        ``category``, ``language``, ``family``, and the verdict as in a responses frame, with its
        ``evidence``.
    """
    from or_eval.models.replay import stored_output
    from or_eval.scorers.exchange import Exchange, read_exchange
    from or_eval.scorers.fusion import fuse
    from or_eval.scorers.provider import read_output

    columns = file.columns
    records = []
    for model, answers in file.by_model.items():
        for id, stored in answers.items():
            for epoch, response in enumerate(stored, start=1):
                prompt, before = response.asked.prompt, response.asked.dialogue
                provider = read_output(stored_output(response.text, response.stop_reason))
                stages = read_exchange(Exchange(provider, response.text, prompt, before, language))
                decision, rules = fuse(stages), stages.rules
                texts = {
                    name: response.row.text(columns[role]) or None
                    for role, name in _COPIED.items()
                    if role in columns
                }
                record = {
                    "row": response.row.number,
                    "category": None,
                    "language": stages.language,
                    **texts,
                    "id": id,
                    "model": model or _ONE_MODEL,
                    "epoch": epoch,
                    "prompt": prompt,
                    "response": response.text,
                    "family": id,
                    "refused": None if decision.label is None else decision.label.refused,
                    "response_class": decision.label,
                    "unscored_because": decision.unscored_because,
                    "decided_by": decision.decided_by,
                    "certain": decision.certain,
                    "provenance": decision.provenance,
                    "reason": decision.reason,
                    "partial_kind": decision.partial_kind,
                    "evidence": [item.text for item in rules.evidence] if rules else [],
                }
                records.append(record)
    frame = pd.DataFrame(records).sort_values("row", kind="stable", ignore_index=True)
    words = (
        *("category", "language", "response_class", "unscored_because", "decided_by"),
        *("provenance", "reason", "partial_kind"),
    )
    return frame.astype(dict.fromkeys(words, "str") | {"refused": "boolean", "certain": "boolean"})
