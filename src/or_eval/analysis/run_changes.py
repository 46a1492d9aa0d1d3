"""What changed between two runs of the same prompts."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import pandas as pd

from or_eval.analysis.contrasts import ALIKE, contrasts
from or_eval.analysis.logs import LogError
from or_eval.analysis.rates import LABEL_OF, MEASURES, prompt_means, rates
from or_eval.analysis.responses import Logs, counted_as, other_counting, with_other
from or_eval.analysis.tables import records
from or_eval.analysis.votes import vote_matrix
from or_eval.analysis.wording import counted, doubt_shares
from or_eval.hostile_text import visible
from or_eval.schema import STRICT

RUNS = ("A", "B")
_BY_BOTH = ("rate_a", "rate_b", "verdict")
"""What is told by two countings, besides the difference."""


class Changes(NamedTuple):
    """What changed from run A to run B.

    Attributes:
        runs: The frames of both runs, reduced to the models and to the safe and toxic prompts
            that both have; labels are those of A.
        rates: A row per compared model and prompt label, as
            :func:`or_eval.analysis.contrasts.contrasts` gives it with ``model`` and
            ``label``; ``difference`` is B - A, ``p`` is corrected for all rows, ``counting`` says
            what counts as refused; ``_full`` or that of another counting is by the one beside it
            (:func:`or_eval.analysis.responses.with_other`). ``uncertain_a``
            and ``without_verdict_a`` are the shares of A's responses to these prompts whose
            verdict is not certain, and that have none; likewise those of B.
        flips: A row per model and prompt whose vote changed: ``model``, ``id``, ``prompt``, the
            prompt's record, ``change`` (``newly refused`` or ``newly answered``).
        prompts: Number of prompts in common.
        notes: What was chosen or left out.
    """

    runs: tuple[Logs, Logs]
    rates: pd.DataFrame
    flips: pd.DataFrame
    prompts: int
    notes: list[str]


def changes(before: Logs, after: Logs, counting: str = STRICT) -> Changes:
    """Compare two runs model by model, on the prompts that both have.

    Models are matched by name; where each run has one model, these two are compared whatever
    their names.

    Args:
        before: The frames of run A.
        after: The frames of run B.
        counting: Key of what counts as refused (:func:`or_eval.schema.countings`).

    Raises:
        LogError: The runs have no prompt or no model in common.
    """
    models = _matched(*(list(run.responses["model"].unique()) for run in (before, after)))
    a, left_out_of_a = _of_models(before, [one for _, one, _ in models])
    b, left_out_of_b = _of_models(after, [other for _, _, other in models])
    a, b, notes = _same_prompts(a, b)
    if left_out := sorted({*left_out_of_a, *left_out_of_b}):
        notes.append(f"models in one run only, left out: {', '.join(left_out)}")
    other_key = other_counting(counting)
    beside = _rates(_counted(a, other_key), _counted(b, other_key), models)
    a, b = _counted(a, counting), _counted(b, counting)
    votes_a, votes_b = _votes(a), _votes(b)
    flips = [
        _flips(
            pd.DataFrame({"B": votes_b.get(other), "A": votes_a.get(one)}, a.prompts.index),
            a.prompts,
        ).assign(model=name)
        for name, one, other in models
    ]
    return Changes(
        (a, b),
        with_other(_rates(a, b, models), beside, counting, "difference", *_BY_BOTH),
        pd.concat(flips, ignore_index=True),
        len(a.prompts),
        notes,
    )


def _counted(run: Logs, counting: str) -> Logs:
    return run._replace(responses=counted_as(run.responses, counting))


def _same_prompts(before: Logs, after: Logs) -> tuple[Logs, Logs, list[str]]:
    """Reduce two runs to the labelled prompts that have the same id and text in both."""
    shared = before.prompts.index.intersection(after.prompts.index)
    a, b = before.prompts.loc[shared], after.prompts.loc[shared]
    same = a["prompt"] == b["prompt"]
    labelled = a["label"].isin(list(MEASURES))
    disputed = labelled & b["label"].isin(list(MEASURES)) & (a["label"] != b["label"])
    kept = shared[same & labelled & ~disputed]
    notes = [
        *(f"run A: {note}" for note in before.notes),
        *(f"run B: {note}" for note in after.notes),
        *(
            f"{counted(extra, 'prompt')} only in run {run}, left out"
            for run, logs in zip(RUNS, (before, after), strict=True)
            if (extra := len(logs.prompts.index.difference(shared)))
        ),
    ]
    for number, what in (
        (int((~same).sum()), "with another text in run B than in run A, left out"),
        (int((same & ~labelled).sum()), "labelled neither safe nor toxic, left out"),
        (int(disputed.sum()), "safe in one run and toxic in the other, left out"),
        (
            int((labelled & ~disputed & (a["label"] != b["label"])).sum()),
            "without a label in run B: that of A is used",
        ),
    ):
        if number:
            notes.append(f"{counted(number, 'prompt')} {what}")
    if kept.empty:
        raise LogError(
            "The two runs have no safe or toxic prompt in common (the same id with the same text)"
        )
    one, other = (
        logs._replace(
            prompts=logs.prompts.loc[kept],
            responses=logs.responses[logs.responses["id"].isin(kept)],
        )
        for logs in (before, after)
    )
    return one, other, notes


def _of_models(logs: Logs, models: list[str]) -> tuple[Logs, list[str]]:
    """Reduce a run to some of its models; give it and the names of the others."""
    wanted = logs.responses["model"].isin(models)
    others = logs.responses.loc[~wanted, "model"].unique()
    reduced = logs._replace(
        heads=[head for head in logs.heads if visible(head.model) in models],
        prompts=logs.prompts[logs.prompts.index.isin(logs.responses.loc[wanted, "id"])],
        responses=logs.responses[wanted],
    )
    return reduced, [str(name) for name in others]


def _votes(logs: Logs) -> pd.DataFrame:
    return vote_matrix(logs.responses).reindex(logs.prompts.index)


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


def _rates(a: Logs, b: Logs, models: list[tuple[str, str, str]]) -> pd.DataFrame:
    """Compare each model's rates in both runs, on safe and on toxic prompts, all at once."""
    means_a = prompt_means(a.responses).reindex(a.prompts.index, columns=[m[1] for m in models])
    means_b = prompt_means(b.responses).reindex(a.prompts.index, columns=[m[2] for m in models])
    keys: list[tuple[str, str]] = []
    columns: list[pd.Series[float]] = []
    for (name, one, other), label in product(models, MEASURES):
        of_label = a.prompts["label"] == label
        before, after = means_a[one].where(of_label), means_b[other].where(of_label)
        if (before.notna() & after.notna()).any():
            keys.append((name, label.value))
            columns += [after, before]
    if not keys:
        raise LogError("The two runs have no prompt with a verdict in both")
    pairs = [(at, at + 1) for at in range(0, len(columns), 2)]
    means = pd.DataFrame(dict(enumerate(columns)))
    table = contrasts(means, a.prompts["family"], pairs)
    renamed = {"rate_a": "rate_b", "rate_b": "rate_a"}
    renamed |= {"a_more": "newly_refused", "b_more": "newly_answered"}
    table = table.drop(columns=["a", "b"]).rename(columns=renamed)
    table[["model", "label"]] = keys
    for run, logs, place in (("a", a, 1), ("b", b, 2)):
        doubts = _doubts(logs.responses, a.prompts["label"])
        asked = {model[0]: model[place] for model in models}
        table[[f"uncertain_{run}", f"without_verdict_{run}"]] = [
            doubts[asked[name], label] for name, label in keys
        ]
    order = ["model", "label", "n", "families", *_of("a"), *_of("b"), "difference"]
    tested = ["lower", "upper", "newly_refused", "newly_answered", "p", "verdict"]
    return table[[*order, *tested, *ALIKE]]


def _of(run: str) -> list[str]:
    return [f"{column}_{run}" for column in ("rate", "uncertain", "without_verdict")]


def _doubts(
    responses: pd.DataFrame, labels: pd.Series[str]
) -> dict[tuple[str, str], tuple[float, float]]:
    """Give the shares of responses that could change a rate, by model and label of the prompt."""
    found = rates(responses.assign(label=responses["id"].map(labels)))
    return {(row["model"], LABEL_OF[row["measure"]]): doubt_shares(row) for row in records(found)}


def _flips(votes: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    both = votes.dropna().astype("bool")
    changed = both[both["A"] != both["B"]]
    found = prompts.loc[changed.index, ["prompt", "label", "category", "language", "source"]]
    words = changed["B"].map({True: "newly refused", False: "newly answered"})
    return found.assign(change=words).rename_axis("id").reset_index()
