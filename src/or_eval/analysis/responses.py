"""From logs to tidy frames: one row per response, one row per prompt."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any, NamedTuple

import pandas as pd
from inspect_ai.scorer import Score

from or_eval.analysis.conditions import name_benchmarks, name_conditions, several_conditions
from or_eval.analysis.configuration import mixed_scoring
from or_eval.analysis.conflicts import OnConflict, settle_logs
from or_eval.analysis.logs import LogError, LogHead, LogPaths, read_heads
from or_eval.analysis.progress import tracked
from or_eval.analysis.prompt_texts import PromptTexts, selection_notes, settle_texts
from or_eval.analysis.samples import CUT_VALUE, Summary, agreed_meta, read_summaries, samples_of
from or_eval.analysis.wording import counted
from or_eval.families import family_names
from or_eval.schema import FULL, PLAIN, STRICT, Label, ResponseClass, countings

RECORD = ("label", "category", "language", "source", "method", "seed_id", "pair_id")
VERDICT = (
    *("refused", "response_class", "unscored_because", "decided_by", "certain"),
    *("provenance", "reason", "partial_kind", "response_language", "audited", "judge_class"),
)
_FLAGS = ("refused", "certain", "audited")
_CLASSES = tuple(ResponseClass)
_LABELS = tuple(Label)
_FOR_THE_VIEWER = "outcome"
"""Score of or-eval's tasks that says for the viewer's list what the score used here says."""


class Logs(NamedTuple):
    """What a set of logs says.

    Attributes:
        heads: The logs used, oldest run first, with Inspect's headers.
        prompts: One row per prompt, by ``id``: ``prompt`` (exact text), the columns ``label`` to
            ``pair_id`` of the prompt record, ``family``, and ``meta``: a dict of what all logs say
            alike (in replayed logs some of it is about the response), None, or
            :data:`or_eval.analysis.samples.CUT_VALUE` where it is too long for a summary.
        responses: One row per model, sample and epoch: ``id`` (of the prompt), ``sample_id``
            (in the log), ``framing`` (the context that the prompt was set into: ``none`` for the
            prompt as it is, missing where the log has no framings), ``epoch``, ``model`` (where it
            was run under several conditions, with its own, as in ``m (system_prompt=safe)``),
            ``task``, ``benchmark``, ``log``; ``label`` to ``pair_id`` of the prompt record;
            ``refused`` (True, False, or missing where there is no verdict), ``response_class``,
            ``unscored_because`` (why there is no verdict), ``decided_by``, ``certain``,
            ``provenance`` (who refused), ``reason`` (on what ground), ``partial_kind`` (what a
            partial refusal holds back), ``response_language``, ``audited``, ``judge_class`` (the
            judge's class of an audited or judged response), ``chance`` (how likely an audited one
            was to be audited), ``error``, and the families of :func:`with_families`.
        notes: A line for everything that was chosen or left out.
    """

    heads: list[LogHead]
    prompts: pd.DataFrame
    responses: pd.DataFrame
    notes: list[str]


def read_logs(
    paths: LogPaths,
    *,
    scorer: str = "refusal",
    on_conflict: OnConflict = "error",
    models: Sequence[str] | None = None,
    audits: bool = True,
) -> Logs:
    """Read logs into frames, from the summaries of their samples.

    Args:
        paths: Log files and folders of logs.
        scorer: Name of the score that says whether the response is a refusal: 1 or 0, NaN
            where unscored, or a response class; its ``answer`` is the class.
        on_conflict: What to do about logs that can't be counted together (see
            :func:`or_eval.analysis.conflicts.settle_logs`) and about ids that stand for two
            texts: with ``latest`` the newest log's text stays, with ``all`` both, each under an
            id made from its text.
        models: Models wanted, with or without a condition; all by default.
        audits: Whether to read the judge's class of audited responses where the summary left
            it out for its length.

    Raises:
        LogError: Logs are unreadable, in conflict, or lack the score.
    """
    wanted = _of_models(name_conditions(read_heads(paths)), models)
    heads, notes = settle_logs(name_benchmarks(wanted), scorer, on_conflict)
    texts = PromptTexts()
    frames: list[pd.DataFrame] = []
    scores: dict[str, set[str]] = {}
    meta: dict[str, Any] = {}
    for head in tracked(heads, "Reading logs"):
        rows: dict[tuple[str, int], dict[str, Any]] = {}
        scores[head.location] = set()
        for summary in read_summaries(head.location):
            texts.add(head.location, summary)
            scores[head.location].update(summary.scores or {})
            key, said = str(summary.id), summary.metadata.get("meta")
            if isinstance(said, dict) or said == CUT_VALUE:
                meta[key] = agreed_meta(meta[key], said) if key in meta else said
            row = _row(head, summary, scorer)
            if models is None or {row["model"], head.bare_model} & set(models):
                rows[key, summary.epoch] = row  # of two, the later one
        texts.complete(head.location)
        frame = _frame(list(rows.values()))
        frames.append(_with_audits(frame, scorer) if audits else frame)
    responses = pd.concat(frames, ignore_index=True)
    notes = [*notes, *_check_scores(responses, scores, scorer)]
    responses, more = settle_texts(responses, texts, on_conflict)
    responses, disputed = _without_disputed_labels(responses)
    responses = with_families(responses)
    prompts, differing = _prompts(responses, texts, meta)
    chosen = selection_notes((head.bare_model for head in heads), prompts)
    ways = [*several_conditions(heads), *mixed_scoring(heads, responses, scorer)]
    notes = [*notes, *more, *disputed, *differing, *chosen, *ways, *_without_class(responses)]
    return Logs(heads, prompts, responses, notes)


def by_benchmark(logs: Logs) -> dict[str, Logs]:
    """Split what logs say by benchmark; rows of frames keep their index."""
    parts = {}
    for name, rows in logs.responses.groupby("benchmark", sort=False):
        heads = [head for head in logs.heads if head.benchmark == name]
        rows = with_families(rows)
        own = rows.drop_duplicates("id", keep="last").set_index("id")[[*RECORD, "family"]]
        prompts = logs.prompts[logs.prompts.index.isin(rows["id"])]
        prompts = prompts.assign(**own.reindex(prompts.index))
        parts[str(name)] = Logs(heads, prompts, rows, logs.notes)
    return parts


def with_families(responses: pd.DataFrame) -> pd.DataFrame:
    """Add the family of each response's prompt (:func:`or_eval.families.family_names`).

    ``family`` is for what is compared or counted over models. For a model's own rates, as in
    Inspect's results, ``own_family`` links prompts by those alone that the model has a verdict on;
    one without is by itself.

    Args:
        responses: Rows with ``id``, ``model``, ``seed_id``, ``pair_id`` and ``refused``.
    """
    own = responses["id"].copy()
    for _, scored in responses[responses["refused"].notna()].groupby("model"):
        own[scored.index] = scored["id"].map(_families(scored))
    return responses.assign(family=responses["id"].map(_families(responses)), own_family=own)


def _families(rows: pd.DataFrame) -> pd.Series[str]:
    prompts = rows.drop_duplicates("id")
    columns = [prompts[name].astype(object) for name in ("id", "seed_id", "pair_id")]
    records = zip(*(column.where(column.notna(), None) for column in columns), strict=True)
    return pd.Series(family_names(records), index=prompts["id"], dtype="str")


def counted_as(responses: pd.DataFrame, counting: str) -> pd.DataFrame:
    """Let ``refused`` say what another counting calls refused, by each response's class.

    Where a score names no class, its verdict stays what it is: nobody can say what it would be by
    another counting.

    Args:
        responses: Frame of :func:`read_logs`, whose ``refused`` is strict.
        counting: Key of :func:`or_eval.schema.countings`.
    """
    if counting == STRICT:
        return responses
    classes = responses["response_class"]
    refused = classes.isin(list(countings()[counting].refused)).astype("boolean")
    return responses.assign(refused=refused.where(classes.notna(), responses["refused"]))


def other_counting(counting: str) -> str:
    """Give the counting to show beside one: strict, or full where that is as strict."""
    known = countings()
    return FULL if known[counting].refused == known[STRICT].refused else STRICT


def with_other(
    table: pd.DataFrame, other: pd.DataFrame, counting: str, figure: str, *more: str
) -> pd.DataFrame:
    """Put beside a table's figures what they are by another counting.

    Args:
        table: The table; ``counting`` is added, which tells its own.
        other: The same rows by the other counting.
        counting: Key of the table's own counting.
        figure: Column whose bounds are called ``lower`` and ``upper``.
        more: Other columns to take.

    Returns:
        The table with the columns of the other one, each named with its counting: ``rate_full``,
        ``rate_full_lower``, ``rate_full_upper``.
    """
    key = other_counting(counting)
    names = {figure: f"{figure}_{key}"}
    names |= {end: f"{figure}_{key}_{end}" for end in ("lower", "upper")}
    names |= {name: f"{name}_{key}" for name in more}
    beside = {to: other[name].to_numpy() for name, to in names.items() if name in other}
    return table.assign(counting=counting, **beside)


def as_they_are(logs: Logs) -> Logs:
    """Leave out responses to prompts that were set into contexts, unless all of them were."""
    framing = logs.responses["framing"]
    plain = logs.responses[framing.isna() | (framing == PLAIN)]
    return logs if plain.empty else logs._replace(responses=plain)


def _of_models(heads: list[LogHead], models: Sequence[str] | None) -> list[LogHead]:
    if models is None:
        return heads
    known = {name for head in heads for name in (*head.models, head.bare_model)}
    if unknown := [model for model in models if model not in known]:
        raise LogError(
            f"No log of {', '.join(unknown)}; there are logs of: {', '.join(sorted(known))}"
        )
    return [head for head in heads if {*head.models, head.bare_model} & set(models)]


def _row(head: LogHead, summary: Summary, scorer: str) -> dict[str, Any]:
    data = summary.metadata
    score = (summary.scores or {}).get(scorer)
    error = _error(summary, score)
    framing = data.get("framing") if head.framings else None
    prompt = str(summary.id)
    if framing is not None:
        head = head.under(str(framing))
        prompt = prompt.removesuffix(f"@{framing}")
    row = {
        "id": prompt,
        "sample_id": str(summary.id),
        "framing": framing,
        "epoch": summary.epoch,
        "model": head.model,
        "task": head.task,
        "benchmark": head.benchmark,
        "log": head.location,
        **{column: data.get(column) for column in RECORD},
        **dict.fromkeys((*VERDICT, "chance")),
        "error": error,
    }
    if row["seed_id"] == prompt:  # a prompt in a context is of the prompt's family
        row["seed_id"] = None
    told = [said for said in (row["label"], summary.target) if said in _LABELS]
    row["label"] = told[0] if told else Label.UNLABELLED
    if score is not None:
        row.update(_verdict(score, scorer, row))
    else:
        row["unscored_because"] = "not_scored"
    if error is not None:
        row.update(refused=None, response_class=None, unscored_because="error")
    return row


def _error(summary: Summary, score: Score | None) -> str | None:
    """Give the first line of a sample's error; a block that came as one is none.

    Such a block was scored as the refusal it is.
    """
    if summary.error is None:
        return None
    said = (score.metadata or {}) if score is not None and score.answer else {}
    if said.get("decided_by") == "provider":
        return None
    return summary.error.strip().partition("\n")[0]


def _verdict(score: Score, scorer: str, row: dict[str, Any]) -> dict[str, Any]:
    value, data = score.value, score.metadata or {}
    label = score.answer if score.answer in _CLASSES else None
    if isinstance(value, str) and value in _CLASSES:
        label, refused = value, ResponseClass(value).refused
    elif isinstance(value, int | float) and value in (0, 1):
        refused = bool(value)
    elif isinstance(value, float) and isnan(value):
        label, refused = None, None
    else:
        raise LogError(
            f"{row['log']}: score '{scorer}' of sample {row['sample_id']} (epoch {row['epoch']}) "
            f"is {value!r}; wanted 1 (refused), 0 (answered) or a response class"
        )
    stages = data.get("stages")
    judge = stages.get("judge") if isinstance(stages, dict) else None
    decided_by = data.get("decided_by")
    judged = label if decided_by == "judge" else None
    return {
        "refused": refused,
        "response_class": label,
        "unscored_because": (score.reason or "unscored") if refused is None else None,
        "decided_by": decided_by,
        "provenance": data.get("provenance"),
        "reason": data.get("reason"),
        "partial_kind": data.get("partial_kind"),
        "certain": _flag(data.get("certain")),
        "response_language": data.get("language"),
        "audited": _flag(data.get("audited")),
        "chance": _share(data.get("audit_chance")),
        "judge_class": judge.get("label") if isinstance(judge, dict) else judged,
    }


def _flag(said: object) -> bool | None:
    """Give a flag of a score's metadata; other scorers may use its name for something else."""
    return said if isinstance(said, bool) else None


def _share(said: object) -> float | None:
    return said if isinstance(said, float) and 0 < said <= 1 else None


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    origin = ("id", "sample_id", "framing", "epoch", "model", "task", "benchmark", "log")
    columns = (*origin, *RECORD, *VERDICT, "chance", "error")
    frame = pd.DataFrame(rows, columns=list(columns))
    texts = [column for column in columns if column not in (*_FLAGS, "epoch", "chance")]
    numbers = {"epoch": "int64", "chance": "float64"}
    return frame.astype(dict.fromkeys(_FLAGS, "boolean") | dict.fromkeys(texts, "str") | numbers)


def _with_audits(frame: pd.DataFrame, scorer: str) -> pd.DataFrame:
    cut = frame["audited"].fillna(False) & frame["judge_class"].isna()
    for place, sample in samples_of(frame[cut]):
        judge = ((sample.scores or {})[scorer].metadata or {}).get("stages", {}).get("judge", {})
        frame.loc[place, "judge_class"] = judge.get("label")
    return frame


def _check_scores(responses: pd.DataFrame, scores: dict[str, set[str]], scorer: str) -> list[str]:
    failed = responses["error"].notna().groupby(responses["log"]).all().to_dict()
    lines = [
        f"{log}: no score '{scorer}'; it has {', '.join(sorted(found)) or 'no scores'}"
        for log, found in scores.items()
        if scorer not in found and not failed.get(log, False)
    ]
    if lines:
        raise LogError(
            "\n".join(lines) + "\nName another score with --scorer, or score these logs: "
            "inspect score LOG --scorer or_eval/refusal"
        )
    if others := sorted(set().union(*scores.values()) - {scorer, _FOR_THE_VIEWER}):
        return [f"score used: {scorer}; also in the logs: {', '.join(others)}"]
    return []


def _without_class(responses: pd.DataFrame) -> list[str]:
    count = int((responses["refused"].fillna(False) & responses["response_class"].isna()).sum())
    if not count:
        return []
    return [
        f"{counted(count, 'refusal')} of no class: strict, full and any other counting count "
        f"{'it' if count == 1 else 'them'} alike"
    ]


def _without_disputed_labels(responses: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Take the label from prompts that logs of a benchmark say are safe, and toxic: a revision.

    Rates, comparisons and counts are then over the same prompts, whichever log is the newer one.
    """
    known = responses[responses["label"] != Label.UNLABELLED]
    counts = known.groupby(["benchmark", "id"])["label"].nunique()
    disputed = counts.index[counts > 1]
    if disputed.empty:
        return responses, []
    rows = pd.MultiIndex.from_frame(responses[["benchmark", "id"]]).isin(disputed)
    first = responses.loc[rows, "sample_id"].iloc[0]
    one = len(disputed) == 1
    return responses.assign(label=responses["label"].mask(rows, Label.UNLABELLED.value)), [
        f"{counted(len(disputed), 'prompt')} {'is' if one else 'are'} labelled safe in one log and "
        f"toxic in another (as {first}): {'it is' if one else 'they are'} in neither rate"
    ]


def _prompts(
    responses: pd.DataFrame, texts: PromptTexts, meta: dict[str, Any]
) -> tuple[pd.DataFrame, list[str]]:
    records = responses[["id", "sample_id", *RECORD, "family"]].drop_duplicates(["id", *RECORD])
    prompts = records.drop_duplicates("id", keep="last").set_index("id")
    sample_ids = prompts.pop("sample_id")
    # Where a prompt was never asked as it is, its text is what was asked.
    prompts.insert(
        0,
        "prompt",
        pd.Series(
            [texts.texts.get(str(key), texts.texts[one]) for key, one in sample_ids.items()],
            index=prompts.index,
            dtype="str",
        ),
    )
    prompts["meta"] = pd.Series(
        [meta.get(key) for key in sample_ids], index=prompts.index, dtype=object
    )
    differing = records["id"][records["id"].duplicated()].unique()
    if not len(differing):
        return prompts, []
    return prompts, [
        f"{len(differing)} prompts have another label or category in one log than in another "
        f"(as {differing[0]}); the newest log's is used"
    ]
