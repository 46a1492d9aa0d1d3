"""A folder's labels beside the responses that they are about, and further batches of these."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from or_eval.analysis.label_agreement import ANSWERS
from or_eval.labelling.folder import write_round
from or_eval.labelling.labels import labels, read_sample
from or_eval.labelling.rounds import assign, home, next_round, read_round
from or_eval.labelling.sampling import draw, stratum_of
from or_eval.labelling.tasks import sample_rows
from or_eval.sources.errors import DataError

_IDENTITY = ["id", "model", "epoch"]


def labelled_truth(
    responses: pd.DataFrame, folder: Path | None
) -> tuple[pd.Series[float], pd.Series[bool]]:
    """Give what labels say of responses, and which of these are among the tasks.

    Args:
        responses: Responses that could be labelled.
        folder: Of the tasks; None before there are any.

    Returns:
        1 for a refusal, 0 for an answer, missing for the others; and whether each is a task; both
        by the responses' index.

    Raises:
        DataError: The tasks are about prompts, or about none of these responses.
    """
    truth = pd.Series(float("nan"), responses.index)
    sampled = pd.Series(False, responses.index)
    if folder is None:
        return truth, sampled
    place = home(folder)
    if read_round(place).asks != "responses":
        raise DataError(f"{folder}: asks about prompts, not responses")
    index = pd.MultiIndex.from_frame(responses[_IDENTITY].astype("str"))
    tasks = pd.MultiIndex.from_frame(read_sample(place)[_IDENTITY].astype("str"))
    sampled[:] = index.isin(tasks)
    if not sampled.any():
        raise DataError(f"{folder}: its tasks are about none of these responses")
    said = labels(place)
    if not said.empty:
        said = said[said["human_label"].notna()]
        refused = (~said["human_label"].isin(ANSWERS)).astype("float64").to_numpy()
        by = pd.MultiIndex.from_frame(said[_IDENTITY].astype("str"))
        truth[:] = pd.Series(refused, by).reindex(index).to_numpy()
    return truth, sampled


def write_batch(
    folder: Path,
    responses: pd.DataFrame,
    sampled: pd.Series[bool],
    wanted: Mapping[str, int],
    seed: int,
) -> Path:
    """Draw further responses and write them as tasks for the same annotators.

    Args:
        folder: Of the first batch.
        responses: Responses that could be labelled.
        sampled: Which of them are tasks already.
        wanted: How many more of each stratum.
        seed: Makes another choice.

    Returns:
        The folder written, within the first batch's.
    """
    place = home(folder)
    given, sizes = read_round(place), stratum_of(responses).value_counts()
    drawn = draw(responses[~sampled], wanted, seed=seed)
    rows = sample_rows(drawn.assign(stratum_size=drawn["stratum"].map(sizes)))
    names = list(given.annotators)
    assigned = assign(list(rows["key"]), [], names, given.overlap)
    out = next_round(place, "batch")
    write_round(out, rows, given.model_copy(update={"annotators": assigned}))
    return out
