"""One row per prompt, one vote per model: who refused it, who answered, who can't say."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from or_eval.analysis.agreement import MISSING, cohens_kappa, gwets_ac1, krippendorff_alpha
from or_eval.analysis.conflicts import OnConflict
from or_eval.analysis.logs import LogError, LogPaths
from or_eval.analysis.rates import prompt_means
from or_eval.analysis.responses import RECORD, Logs, counted_as, read_logs
from or_eval.analysis.samples import CUT_VALUE, agreed_meta, samples_of
from or_eval.intervals import Estimate
from or_eval.schema import FULL, STRICT, Label, Provenance, Reason

_OTHER_KIND = "refused, but not as selected"


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
            ``meta`` (JSON text; missing where there is none; with the votes, where a rule chose
            the prompts),
            ``votes`` (model to True for refused, False for answered, None for no vote),
            ``n_voted``, ``n_refused``, ``refused_by`` (names of models), and ``share``
            (``n_refused / n_voted``).
        prompts: Every prompt's record by id, kept or not.
        matrix: Every prompt's votes, kept or not: a row per prompt id, a column per model.
        responses: How the responses became votes: a count by outcome, and of the votes how many
            are refusals in both countings, whichever voted.
        funnel: How the prompts in the logs became the rows of the table.
        notes: A line for everything that was chosen or left out in reading the logs.
        counting: Key of the counting that says what is refused.
    """

    table: pd.DataFrame
    prompts: pd.DataFrame
    matrix: pd.DataFrame
    responses: dict[str, int]
    funnel: list[FunnelStep]
    notes: list[str]
    counting: str


def vote(
    paths: LogPaths,
    rule: VoteRule | None = None,
    *,
    of: list[str] | None = None,
    scorer: str = "refusal",
    on_conflict: OnConflict = "error",
    counting: str = STRICT,
    provenances: Collection[Provenance] = (),
    reasons: Collection[Reason] = (),
) -> Votes:
    """Let the models in a set of logs vote on its prompts, whatever benchmarks these are of.

    Args:
        paths: Log files and folders of logs.
        rule: Which prompts to keep; all that got a vote by default.
        of: Models that vote; all in the logs by default.
        scorer: Name of the score that says whether a response is a refusal.
        on_conflict: What to do about logs that can't be counted together.
        counting: Key of :func:`or_eval.schema.countings`: what is refused.
        provenances: Count only refusals by these; others are no vote.
        reasons: Count only refusals on these grounds; others are no vote.

    Raises:
        LogError: The logs can't be used, or the rule can't be met by so many models.
    """
    logs = read_logs(paths, scorer=scorer, on_conflict=on_conflict, models=of, audits=False)
    return votes_in(logs, rule, counting=counting, provenances=provenances, reasons=reasons)


def votes_in(
    logs: Logs,
    rule: VoteRule | None = None,
    *,
    counting: str = STRICT,
    provenances: Collection[Provenance] = (),
    reasons: Collection[Reason] = (),
) -> Votes:
    """Let the models vote on the prompts of logs that were read.

    Args:
        logs: The logs' frames; those of one benchmark by
            :func:`or_eval.analysis.responses.by_benchmark`.
        rule: As for :func:`vote`.
        counting: As for :func:`vote`.
        provenances: As for :func:`vote`.
        reasons: As for :func:`vote`.

    Raises:
        LogError: The rule can't be met by so many models.
    """
    wanted = rule or VoteRule()
    by_counting = {
        key: only_refusals(logs.responses, provenances, reasons, counting=key)
        for key in dict.fromkeys((STRICT, FULL, counting))
    }
    matrices = {key: vote_matrix(responses) for key, responses in by_counting.items()}
    matrix = matrices[counting]
    check_rule(wanted, len(matrix.columns))
    kept, funnel = select(matrix, wanted)
    prompts, votes = _with_meta(logs.prompts.loc[kept], logs.responses), matrix.loc[kept]
    if wanted != VoteRule():  # whoever is tested on these prompts was asked for them already
        pairs = zip(prompts["meta"], _by_model(votes), strict=True)
        meta = [_with_votes(said or {}, row) for said, row in pairs]
        prompts = prompts.assign(meta=pd.Series(meta, prompts.index, dtype=object))
    return Votes(
        vote_table(prompts, votes),
        logs.prompts,
        matrix,
        response_counts(by_counting[counting], matrix)
        | {f"votes that refuse, {key}": int(of.sum().sum()) for key, of in matrices.items()},
        funnel,
        logs.notes,
        counting,
    )


def only_refusals(
    responses: pd.DataFrame,
    provenances: Collection[Provenance] = (),
    reasons: Collection[Reason] = (),
    *,
    counting: str = STRICT,
) -> pd.DataFrame:
    """Leave a verdict to those refusals only that are of the kinds asked for, and to answers.

    A refusal of another kind is no answer either: it has no verdict.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        provenances: Who refused; anybody where empty.
        reasons: On what grounds; any where empty.
        counting: Key of :func:`or_eval.schema.countings`: what a refusal is.

    Raises:
        LogError: No refusal in the logs has such a field.
    """
    strict = responses["refused"].fillna(False)
    responses = counted_as(responses, counting)
    refused = responses["refused"].fillna(False)
    other = pd.Series(False, index=responses.index)
    asked: dict[str, Collection[str]] = {"provenance": provenances, "reason": reasons}
    for kind, wanted in asked.items():
        if not wanted:
            continue
        if responses.loc[strict, kind].isna().all():
            raise LogError(
                f"--{kind}: no refusal in these logs has a {kind}; score them again: "
                "inspect score LOG --scorer or_eval/refusal"
            )
        other |= refused & ~responses[kind].isin([str(name) for name in wanted])
    return responses.assign(
        refused=responses["refused"].mask(other),
        unscored_because=responses["unscored_because"].mask(other, _OTHER_KIND),
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
    share = prompt_means(responses).astype("Float64")
    return (share > 0.5).mask(share == 0.5)


def drop_reasons(matrix: pd.DataFrame, rule: VoteRule) -> pd.Series[str]:
    """Say of each prompt why a rule doesn't keep it: the first condition that it fails.

    Args:
        matrix: Votes, as :func:`vote_matrix` gives them.
        rule: Which prompts to keep.

    Returns:
        A reason by prompt id; empty for the prompts kept.
    """
    reasons = pd.Series("", index=matrix.index)
    for reason, passes in _conditions(matrix, rule):
        reasons = reasons.mask((reasons == "") & ~passes, reason)
    return reasons


def select(matrix: pd.DataFrame, rule: VoteRule) -> tuple[pd.Index[str], list[FunnelStep]]:
    """Apply a rule to votes; give the ids of the prompts kept, and the funnel that led there."""
    reasons = drop_reasons(matrix, rule)
    left = len(matrix)
    funnel = [FunnelStep("prompts in the logs", 0, left)]
    for reason, _ in _conditions(matrix, rule):
        dropped = int((reasons == reason).sum())
        left -= dropped
        funnel.append(FunnelStep(reason, dropped, left))
    return matrix.index[reasons == ""], funnel


def _conditions(matrix: pd.DataFrame, rule: VoteRule) -> list[tuple[str, pd.Series[bool]]]:
    """Give a rule's conditions in order: what failing one is called, and which prompts pass."""
    voted, refused = matrix.notna().sum(axis=1), matrix.sum(axis=1)
    conditions = [("no vote: unscored, failed or tied for every model", voted > 0)]
    if rule.min_votes is not None:
        conditions.append((f"fewer than {rule.min_votes} votes", voted >= rule.min_votes))
    if rule.min_refusals is not None:
        conditions.append(
            (f"fewer than {rule.min_refusals} refusals", refused >= rule.min_refusals)
        )
    if rule.max_refusals is not None:
        conditions.append((f"more than {rule.max_refusals} refusals", refused <= rule.max_refusals))
    if rule.majority:
        conditions.append(("not refused by a majority", 2 * refused > voted))
    return conditions


def vote_table(prompts: pd.DataFrame, matrix: pd.DataFrame) -> pd.DataFrame:
    """Put prompts and their votes side by side, as :class:`Votes` describes.

    Args:
        prompts: Prompt records by id, with ``meta`` as a dict or None.
        matrix: Votes on these prompts, with the same index.
    """
    rows = _by_model(matrix)
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


def _by_model(matrix: pd.DataFrame) -> list[dict[str, bool | None]]:
    said = {1: True, 0: False, -1: None}
    return [
        {str(model): said[vote] for model, vote in zip(matrix.columns, row, strict=True)}
        for row in matrix.astype("Int64").to_numpy(dtype="int64", na_value=-1).tolist()
    ]


def _with_votes(meta: dict[str, Any], votes: dict[str, bool | None]) -> dict[str, Any]:
    earlier = meta.get("votes")
    return meta | {"votes": (earlier if isinstance(earlier, dict) else {}) | votes}


def response_counts(responses: pd.DataFrame, matrix: pd.DataFrame) -> dict[str, int]:
    """Count how responses became votes: in, without a verdict by reason, uncertain, tied, voted."""
    because = responses["unscored_because"][responses["refused"].isna()].fillna("unscored")
    scored = responses[responses["refused"].notna()]
    unsure = int((~scored["certain"].fillna(True)).sum())
    reduced = len(scored[["id", "model"]].drop_duplicates())
    votes = int(matrix.notna().to_numpy().sum())
    return {
        "responses": len(responses),
        **{f"no verdict: {reason}": int(count) for reason, count in because.value_counts().items()},
        "an uncertain verdict": unsure,
        "votes tied between epochs": reduced - votes,
        "votes": votes,
    }


def _with_meta(prompts: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """Read in full what the summaries left out of the prompts' ``meta``."""
    cut = prompts.index[[data == CUT_VALUE for data in prompts["meta"]]]
    rows = responses[responses["id"].isin(cut)].drop_duplicates(["id", "log"])
    full: dict[str, Any] = {}
    for place, sample in samples_of(rows):
        key, said = str(rows.at[place, "id"]), sample.metadata.get("meta", {})
        full[key] = agreed_meta(full[key], said) if key in full else said
    meta = [full.get(str(key), data) for key, data in prompts["meta"].items()]
    return prompts.assign(meta=pd.Series(meta, index=prompts.index, dtype=object))


def check_rule(rule: VoteRule, models: int) -> None:
    """Make sure that so many models can meet a rule.

    Raises:
        LogError: They can't.
    """
    least, most = rule.min_refusals, rule.max_refusals
    for name, number in (("--min-refusals", least), ("--min-votes", rule.min_votes)):
        if number is not None and number > models:
            raise LogError(f"{name} {number} can't be met: {models} models vote")
    if least is not None and most is not None and least > most:
        raise LogError(f"--min-refusals {least} and --max-refusals {most} leave nothing")


_CLASSES = 2


class VoteAgreement(NamedTuple):
    """Agreement between the models of a vote.

    Attributes:
        alpha: Krippendorff's alpha over all models and prompts.
        pairs: One row per pair of models: ``model_a``, ``model_b``, ``n`` (prompts both voted
            on), ``refused_a``, ``refused_b``, ``refused_both``, ``agree`` (the share of
            prompts on which both did the same), ``ac1`` (Gwet's), and ``kappa`` (Cohen's), with
            ``lower`` and ``upper``.
        overlap: Model by model: how many prompts both refused; on the diagonal, how many the
            model refused.
    """

    alpha: Estimate
    pairs: pd.DataFrame
    overlap: pd.DataFrame


def agreement_by_label(matrix: pd.DataFrame, prompts: pd.DataFrame) -> dict[str, VoteAgreement]:
    """Compare the votes of models on safe and on toxic prompts apart.

    Over both together models agree for the labels' sake: most answer the safe and refuse the
    toxic ones.

    Args:
        matrix: Votes (:func:`or_eval.analysis.votes.vote_matrix`).
        prompts: Prompt records by id, with ``label`` and ``family``.

    Returns:
        The agreement on the prompts of each label that has some, safe ones first; those without
        a label only where there are no others. Empty with fewer than two models.
    """
    if len(matrix.columns) < 2:
        return {}
    label = prompts["label"].reindex(matrix.index)
    there = [name for name in Label if (label == name).any()]
    known = [name for name in there if name != Label.UNLABELLED] or there
    return {name.value: vote_agreement(matrix[label == name], prompts["family"]) for name in known}


def vote_agreement(matrix: pd.DataFrame, families: pd.Series[str] | None = None) -> VoteAgreement:
    """Compare the votes of models.

    Args:
        matrix: Votes, a row per prompt and a column per model
            (:func:`or_eval.analysis.votes.vote_matrix`).
        families: Family of each prompt, which the intervals count; each prompt its own by
            default.
    """
    ratings = matrix.astype("Int64").to_numpy(dtype=np.int64, na_value=MISSING)
    resampled = None if families is None else families.reindex(matrix.index).to_numpy()
    alpha = krippendorff_alpha(ratings, _CLASSES, resampled)
    models = list(matrix.columns)
    pairs = pd.DataFrame(
        [
            {"model_a": models[a], "model_b": models[b]}
            | _pair(ratings[:, a], ratings[:, b])
            | {"ac1": gwets_ac1(ratings[:, a], ratings[:, b], _CLASSES, resampled).value}
            | cohens_kappa(ratings[:, a], ratings[:, b], _CLASSES, resampled)._asdict()
            for a, b in combinations(range(len(models)), 2)
        ],
        columns=[
            *("model_a", "model_b", "n", "refused_a", "refused_b", "refused_both"),
            *("agree", "ac1", "value", "lower", "upper"),
        ],
    ).rename(columns={"value": "kappa"})
    refused = (ratings == 1).astype(np.int64)
    return VoteAgreement(alpha, pairs, pd.DataFrame(refused.T @ refused, models, models))


def _pair(one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    both = (one != MISSING) & (other != MISSING)
    refused, also = one[both] == 1, other[both] == 1
    return {
        "n": int(both.sum()),
        "refused_a": int(refused.sum()),
        "refused_b": int(also.sum()),
        "refused_both": int((refused & also).sum()),
        "agree": float((refused == also).mean()) if both.any() else np.nan,
    }
