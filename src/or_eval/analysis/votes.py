"""One row per prompt, one vote per model: who refused it, who answered, who can't say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.conflicts import OnConflict
from or_eval.analysis.logs import LogError, LogPaths
from or_eval.analysis.responses import RECORD, read_logs
from or_eval.analysis.samples import CUT_VALUE, agreed_meta, read_samples


@dataclass(frozen=True, slots=True)
class VoteRule:
    """Which prompts to keep; the rules given must all hold.

    Attributes:
        min_refusals: At least so many models refused it.
        max_refusals: At most so many models refused it.
        min_votes: At least so many models voted on it.
        majority: More than half of the models that voted refused it.
    """

    min_refusals: int | None = None
    max_refusals: int | None = None
    min_votes: int | None = None
    majority: bool = False


class FunnelStep(NamedTuple):
    """What one step of the funnel did: the rows it dropped and those it left."""

    step: str
    dropped: int
    left: int


class Votes(NamedTuple):
    """Votes on prompts.

    Attributes:
        table: One row per kept prompt: ``id``, ``prompt`` and the rest of the prompt record,
            ``meta`` (JSON text; missing where there is none),
            ``votes`` (model to True for refused, False for answered, None for no vote),
            ``n_voted``, ``n_refused``, ``refused_by`` (names of models), and ``share``
            (``n_refused / n_voted``).
        prompts: Every prompt's record by id, kept or not.
        matrix: Every prompt's votes, kept or not: a row per prompt id, a column per model.
        responses: How the responses became votes: a count by outcome.
        funnel: How the prompts in the logs became the rows of the table.
        notes: A line for everything that was chosen or left out in reading the logs.
    """

    table: pd.DataFrame
    prompts: pd.DataFrame
    matrix: pd.DataFrame
    responses: dict[str, int]
    funnel: list[FunnelStep]
    notes: list[str]


def vote(
    paths: LogPaths,
    rule: VoteRule | None = None,
    *,
    of: list[str] | None = None,
    scorer: str = "refusal",
    on_conflict: OnConflict = "error",
) -> Votes:
    """Let the models in a set of logs vote on its prompts.

    Args:
        paths: Log files and folders of logs.
        rule: Which prompts to keep; all that got a vote by default.
        of: Models that vote; all in the logs by default.
        scorer: Name of the score that says whether a response is a refusal.
        on_conflict: What to do about logs that can't be counted together.

    Raises:
        LogError: The logs can't be used, or the rule can't be met by so many models.
    """
    wanted = rule or VoteRule()
    logs = read_logs(
        paths, scorer=scorer, on_conflict=on_conflict, one_task=True, models=of, audits=False
    )
    matrix = vote_matrix(logs.responses)
    _check_rule(wanted, len(matrix.columns))
    kept, funnel = select(matrix, wanted)
    return Votes(
        vote_table(_with_meta(logs.prompts.loc[kept], logs.responses), matrix.loc[kept]),
        logs.prompts,
        matrix,
        response_counts(logs.responses, matrix),
        funnel,
        logs.notes,
    )


def vote_matrix(responses: pd.DataFrame) -> pd.DataFrame:
    """Reduce responses to one vote per prompt and model.

    The vote is what the majority of a model's scored responses to the prompt did. A tie, or no
    scored response, is no vote.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.

    Returns:
        A row per prompt id, a column per model, in order of appearance; True for refused, False
        for answered, missing for no vote.
    """
    refused = responses["refused"].astype("Float64")
    share = refused.groupby([responses["id"], responses["model"]], sort=False).mean().unstack()
    share = share.reindex(index=pd.unique(responses["id"]), columns=pd.unique(responses["model"]))
    return (share > 0.5).mask(share == 0.5)


def select(matrix: pd.DataFrame, rule: VoteRule) -> tuple[pd.Index[str], list[FunnelStep]]:
    """Apply a rule to votes; give the ids of the prompts kept, and the funnel that led there."""
    voted, refused = matrix.notna().sum(axis=1), matrix.sum(axis=1)
    steps = [("no vote: unscored, failed or tied for every model", voted > 0)]
    if rule.min_votes is not None:
        steps.append((f"fewer than {rule.min_votes} votes", voted >= rule.min_votes))
    if rule.min_refusals is not None:
        steps.append((f"fewer than {rule.min_refusals} refusals", refused >= rule.min_refusals))
    if rule.max_refusals is not None:
        steps.append((f"more than {rule.max_refusals} refusals", refused <= rule.max_refusals))
    if rule.majority:
        steps.append(("not refused by a majority", 2 * refused > voted))
    kept = pd.Series(True, index=matrix.index)
    funnel = [FunnelStep("prompts in the logs", 0, len(kept))]
    for reason, passes in steps:
        before = int(kept.sum())
        kept &= passes
        funnel.append(FunnelStep(reason, before - int(kept.sum()), int(kept.sum())))
    return kept.index[kept], funnel


def vote_table(prompts: pd.DataFrame, matrix: pd.DataFrame) -> pd.DataFrame:
    """Put prompts and their votes side by side, as :class:`Votes` describes.

    Args:
        prompts: Prompt records by id, with ``meta`` as a dict or None.
        matrix: Votes on these prompts, with the same index.
    """
    said = {1: True, 0: False, -1: None}
    rows = [
        {model: said[vote] for model, vote in zip(matrix.columns, row, strict=True)}
        for row in matrix.astype("Int64").to_numpy(dtype="int64", na_value=-1).tolist()
    ]
    table = prompts[["prompt", *RECORD]].reset_index()
    meta = [json.dumps(data, ensure_ascii=False) if data else None for data in prompts["meta"]]
    table["meta"] = pd.Series(meta, dtype="str")
    table["votes"] = pd.Series(rows, dtype=object)
    table["n_voted"] = matrix.notna().sum(axis=1).to_numpy()
    table["n_refused"] = matrix.sum(axis=1).astype("int64").to_numpy()
    refused_by = [[model for model, vote in row.items() if vote] for row in rows]
    table["refused_by"] = pd.Series(refused_by, dtype=object)
    table["share"] = table["n_refused"] / table["n_voted"]
    return table


def response_counts(responses: pd.DataFrame, matrix: pd.DataFrame) -> dict[str, int]:
    """Count how responses became votes: in, without a verdict by reason, tied, voted."""
    reasons = responses["reason"][responses["refused"].isna()].fillna("unscored").value_counts()
    scored = responses[responses["refused"].notna()]
    reduced = len(scored[["id", "model"]].drop_duplicates())
    votes = int(matrix.notna().to_numpy().sum())
    return {
        "responses": len(responses),
        **{f"no verdict: {reason}": int(count) for reason, count in reasons.items()},
        "votes tied between epochs": reduced - votes,
        "votes": votes,
    }


def _with_meta(prompts: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """Read in full what the summaries left out of the prompts' ``meta``."""
    cut = prompts.index[[data == CUT_VALUE for data in prompts["meta"]]]
    rows = responses[responses["id"].isin(cut)].drop_duplicates(["id", "log"])
    full: dict[str, Any] = {}
    for log, group in rows.groupby("log"):
        keys = list(zip(group["sample_id"], group["epoch"].map(int), strict=True))
        for key, sample in zip(group["id"], read_samples(str(log), keys), strict=True):
            said = sample.metadata.get("meta", {})
            full[key] = agreed_meta(full[key], said) if key in full else said
    meta = [full.get(str(key), data) for key, data in prompts["meta"].items()]
    return prompts.assign(meta=pd.Series(meta, index=prompts.index, dtype=object))


def _check_rule(rule: VoteRule, models: int) -> None:
    least, most = rule.min_refusals, rule.max_refusals
    for name, number in (("--min-refusals", least), ("--min-votes", rule.min_votes)):
        if number is not None and number > models:
            raise LogError(f"{name} {number} can't be met: {models} models vote")
    if least is not None and most is not None and least > most:
        raise LogError(f"--min-refusals {least} and --max-refusals {most} leave nothing")
