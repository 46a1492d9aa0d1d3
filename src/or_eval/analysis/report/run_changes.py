"""What changed between two runs of the same prompts."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from or_eval.analysis.comparisons import compare_votes, holm
from or_eval.analysis.families import prompt_families
from or_eval.analysis.logs import LogError
from or_eval.analysis.report.findings import with_shown_names
from or_eval.analysis.responses import Logs
from or_eval.analysis.votes import vote_matrix
from or_eval.schema import Label

RUNS = ("A", "B")


class Changes(NamedTuple):
    """What changed from run A to run B.

    Attributes:
        runs: The frames of both runs, reduced to the prompts they have in common.
        models: What is compared: a name for it, its model in A, its model in B.
        rates: A row per compared model and prompt label, as
            :func:`or_eval.analysis.comparisons.compare_votes` gives it with ``model`` and
            ``label``; ``difference`` is B - A, ``p_holm`` is corrected for all rows.
        flips: A row per model and prompt whose vote changed: ``model``, ``id``, ``prompt``, the
            prompt's record, ``change`` (``newly refused`` or ``newly answered``).
        prompts: Number of prompts in common.
        notes: What was chosen or left out.
    """

    runs: tuple[Logs, Logs]
    models: list[tuple[str, str, str]]
    rates: pd.DataFrame
    flips: pd.DataFrame
    prompts: int
    notes: list[str]


def changes(before: Logs, after: Logs) -> Changes:
    """Compare two runs model by model, on the prompts that both have.

    Models are matched by name; where each run has one model, these two are compared whatever
    their names.

    Raises:
        LogError: The runs have no prompt or no model in common.
    """
    a, b, notes = _same_prompts(with_shown_names(before), with_shown_names(after))
    matrices = vote_matrix(a.responses), vote_matrix(b.responses)
    models = _matched(list(matrices[0].columns), list(matrices[1].columns))
    left_out = sorted(
        (set(matrices[0].columns) - {one for _, one, _ in models})
        | (set(matrices[1].columns) - {other for _, _, other in models})
    )
    if left_out:
        notes.append(f"models in one run only, left out: {', '.join(left_out)}")
    families = prompt_families(a.prompts)
    rates, flips = [], []
    for name, one, other in models:
        votes = pd.DataFrame({"B": matrices[1][other], "A": matrices[0][one]})
        for label in (Label.SAFE, Label.TOXIC):
            of_label = votes.loc[a.prompts.index[a.prompts["label"] == label]]
            if of_label.dropna().empty:
                continue
            row = compare_votes(of_label, families).drop(columns=["a", "b"])
            rates.append(row.assign(model=name, label=label.value))
        flips.append(_flips(votes, a.prompts).assign(model=name))
    return Changes(
        (a, b), models, _rates(rates), pd.concat(flips, ignore_index=True), len(a.prompts), notes
    )


def _same_prompts(before: Logs, after: Logs) -> tuple[Logs, Logs, list[str]]:
    """Reduce two runs to the prompts that have the same id and text in both."""
    shared = before.prompts.index.intersection(after.prompts.index)
    same = before.prompts.loc[shared, "prompt"] == after.prompts.loc[shared, "prompt"]
    kept = shared[same]
    notes = [
        *(f"run A: {note}" for note in before.notes),
        *(f"run B: {note}" for note in after.notes),
    ]
    for run, logs in zip(RUNS, (before, after), strict=True):
        if extra := len(logs.prompts.index.difference(shared)):
            notes.append(f"{extra} prompts are in run {run} only and left out")
    if differing := len(shared) - len(kept):
        notes.append(f"{differing} ids have another text in run B than in run A and are left out")
    if kept.empty:
        raise LogError("The two runs have no prompt in common (the same id with the same text)")
    a, b = (
        logs._replace(
            prompts=logs.prompts.loc[kept],
            responses=logs.responses[logs.responses["id"].isin(kept)],
        )
        for logs in (before, after)
    )
    return a, b, notes


def _matched(one: list[str], other: list[str]) -> list[tuple[str, str, str]]:
    if len(one) == len(other) == 1 and one != other:
        return [(f"{one[0]} → {other[0]}", one[0], other[0])]
    shared = [(model, model, model) for model in one if model in other]
    if not shared:
        raise LogError(
            "The two runs have no model in common "
            f"(A: {', '.join(sorted(one))}; B: {', '.join(sorted(other))})"
        )
    return sorted(shared)


def _rates(rows: list[pd.DataFrame]) -> pd.DataFrame:
    """Turn comparisons of B with A into one table, corrected for all of them."""
    if not rows:
        raise LogError("The two runs have no prompt with a verdict in both")
    table = pd.concat(rows, ignore_index=True)
    table = table.rename(columns={"only_a": "newly_refused", "only_b": "newly_answered"})
    table = table.rename(columns={"rate_a": "rate_b", "rate_b": "rate_a"})
    table["p_holm"] = holm(table["p"].to_numpy())
    order = ["model", "label", "n", "rate_a", "rate_b", "difference", "lower", "upper"]
    return table[[*order, "newly_refused", "newly_answered", "p", "p_holm"]]


def _flips(votes: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    both = votes.dropna().astype("bool")
    changed = both[both["A"] != both["B"]]
    found = prompts.loc[changed.index, ["prompt", "label", "category", "language", "source"]]
    words = changed["B"].map({True: "newly refused", False: "newly answered"})
    return found.assign(change=words).rename_axis("id").reset_index()
