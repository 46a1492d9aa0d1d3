"""What a card says of each stage: sentences made from what ran, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from or_eval.dataset_builders.engine.ports import MODERATOR, TARGET, WRITER, Spent, StageFacts
from or_eval.dataset_builders.publishing.card_text import cell
from or_eval.dataset_builders.publishing.local_paths import without_folders


def sentence(stage: StageFacts) -> str:
    """Say what a stage did; of a stage of one's own, how many rows it kept."""
    said = _SENTENCES.get(stage.kind, _any_stage)(stage)
    short = f" {stage.missing} that were to be there are missing." if stage.missing else ""
    return f"{cell(stage.name)}: {said}{short}"


def spending(spent: Sequence[Spent]) -> str:
    """Say what a build cost in all, as far as prices are known."""
    calls = sum(one.calls for one in spent)
    priced = [one for one in spent if one.dollars is not None]
    if not calls:
        return "No model was asked in this build."
    tokens = f"{sum(one.input_tokens for one in spent):,} tokens in and "
    tokens += f"{sum(one.output_tokens for one in spent):,} out"
    said = f"{calls:,} calls were answered, with {tokens}"
    if priced:
        said += f", for about {sum(one.dollars or 0 for one in priced):,.2f} dollars"
    if unknown := calls - sum(one.calls for one in priced):
        said += f" ({unknown:,} of the calls went to models of unknown price)"
    return f"{said}, over all runs of the build."


def _seeds(stage: StageFacts) -> str:
    params = stage.params
    if params.get("data") is not None:
        label = "" if params["take"] == "all" else f"{params['take']} "
        data = cell(str(without_folders(params["data"])))
        return f"{stage.rows_out} {label}prompts were taken from {data}."
    each = f"{params['per_category']} were wanted of each category"
    return f"{stage.rows_out} toxic seeds were written by {_names(stage, WRITER)}; {each}."


def _merge(stage: StageFacts) -> str:
    sets = ", ".join(cell(str(without_folders(one["data"]))) for one in stage.params["sets"])
    said = f"{stage.rows_out} prompts were taken from {sets or 'the stages before'}."
    found = stage.figures.get("labels", {})
    if not (both := found.get("two labels")):
        return said
    named = cell(str(found["prompts"]))
    return f"{said} {both} that one set calls safe and another toxic were left out: {named}."


def _rewrite(stage: StageFacts) -> str:
    params = stage.params
    methods = ", ".join(params["methods"] or [params["method"]])
    way = f"by the method {cell(str(without_folders(methods)))}"
    count = "the method's number of" if params["count"] is None else f"{params['count']}"
    return (
        f"{count} rewrites of each of {stage.rows_in} seeds were asked of "
        f"{_names(stage, WRITER)}, {way}; {stage.rows_out} could be used."
    )


def _dedup(stage: StageFacts) -> str:
    threshold, model = stage.params["threshold"], _names(stage, "embedding")
    by = "by their letters" if stage.params["model"] is None else f"by embeddings of {model}"
    near = "" if threshold is None else f" or similar ({threshold} or more, {by})"
    return f"of {stage.rows_in} prompts, {_left(stage)} that are not equal{near}."


def _moderate(stage: StageFacts) -> str:
    side = f"for {stage.params['keep']}"
    return f"{_panel(stage, side)} {_agreement(stage)}"


def _assess(stage: StageFacts) -> str:
    return f"{_panel(stage, 'for harmless to answer')} {_agreement(stage)}"


def _test_refusal(stage: StageFacts) -> str:
    models = stage.models.get(TARGET, [])
    return f"{stage.rows_in} prompts were put to {len(models)} models ({_names(stage, TARGET)})."


def _vote(stage: StageFacts) -> str:
    params = stage.params
    rules = []
    if params["min_refusals"] is not None:
        rules.append(f"{params['min_refusals']} or more of the tested models refused")
    if params["max_refusals"] is not None:
        rules.append(f"{params['max_refusals']} or fewer of the tested models refused")
    if params["majority"]:
        rules.append("a majority of the tested models refused")
    if params["min_votes"] is not None:
        rules.append(f"{params['min_votes']} or more of the tested models have a vote on")
    return (
        f"of {stage.rows_in} prompts, {_left(stage)} that {' and '.join(rules) or 'were tested'}."
    )


def _split(stage: StageFacts) -> str:
    sizes = ", ".join(f"{cell(name)} with {count}" for name, count in stage.subsets.items())
    return f"of {stage.rows_in} prompts, {_left(stage)}, in the subsets {sizes}."


def _any_stage(stage: StageFacts) -> str:
    return f"{stage.rows_in} rows went in, and {stage.rows_out} came out."


def _panel(stage: StageFacts, side: str) -> str:
    models = stage.models.get(MODERATOR, [])
    agree = {"all": "all of", "majority": "most of", "any": "one or more of"}
    held = agree.get(stage.params["agree"], stage.params["agree"])
    return (
        f"of {stage.rows_in} prompts, {_left(stage)} that {held} {len(models)} moderators "
        f"({_names(stage, MODERATOR)}) held {side}."
    )


def _agreement(stage: StageFacts) -> str:
    panel = stage.figures.get("panel")
    if panel is None:
        return "With one moderator, there is no agreement to tell."
    alpha = panel["alpha"]
    if alpha is None:
        return "All moderators said the same throughout, so no alpha can be told."
    return (
        f"Their agreement on {panel['rows']} prompts, as Krippendorff's alpha (1 is complete, 0 is "
        f"chance), was {alpha:.2f} {_interval(panel)}."
    )


def _interval(panel: dict[str, Any]) -> str:
    if panel["lower"] is None:
        return "(no interval can be told)"
    return f"[{panel['lower']:.2f}, {panel['upper']:.2f}]"


def _left(stage: StageFacts) -> str:
    return f"{stage.rows_out} were kept"


def _names(stage: StageFacts, role: str) -> str:
    return (
        ", ".join(cell(str(without_folders(name))) for name in stage.models.get(role, []))
        or "no model"
    )


_SENTENCES: dict[str, Callable[[StageFacts], str]] = {
    "merge": _merge,
    "seeds": _seeds,
    "rewrite": _rewrite,
    "dedup": _dedup,
    "moderate": _moderate,
    "assess": _assess,
    "test_refusal": _test_refusal,
    "vote": _vote,
    "split": _split,
}
