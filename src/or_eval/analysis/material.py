"""What reports, figures and votes are made of: all that logs show, each thing found once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from or_eval.analysis.comparisons import (
    Standing,
    compare_groups,
    compare_models,
    marginal_effects,
    standing,
    standing_out,
)
from or_eval.analysis.conditions import base_models
from or_eval.analysis.corrections import (
    Corrections,
    audited_truth,
    calibration,
    corrections,
)
from or_eval.analysis.human_labels import Labels, said_of, truth_of
from or_eval.analysis.lineage import levels, lineage_effects
from or_eval.analysis.logs import FRAMING
from or_eval.analysis.prompt_audit import PromptAudit, labels_by_prompt, prompt_audit
from or_eval.analysis.prompt_texts import SENSITIVE_PART, sensitive_parts
from or_eval.analysis.ranking import Correlation, ranking, safety_over_refusal_correlation
from or_eval.analysis.rates import MEASURES, macro_averages, rates
from or_eval.analysis.responses import (
    Logs,
    as_they_are,
    by_benchmark,
    counted_as,
    other_counting,
    with_other,
)
from or_eval.analysis.votes import VoteAgreement, agreement_by_label, vote_matrix
from or_eval.hostile_text import visible
from or_eval.intervals import with_bounds
from or_eval.schema import STRICT, Label

SPLITS = ("category", "language", "source", "method", "task")
_SHOWN_NAMES = ("model", "category", "language", "source", "method")
_MOST_GROUPS = 60
_COMPARED = ("language", "method")
_ALSO = ("refused", "raw", "missed", "false_alarms")
"""What rates tell by the other counting besides themselves."""
_MOST_COMPARED = 12


@dataclass
class Material:
    """The frames of logs with names made fit to be shown, and what is found from them.

    Attributes:
        read: The frames with all responses, as they were read.
        scorer: Name of the score that they were read by.
        counting: Key of what counts as refused in all that is found.
        said: What people say of a sample of the responses, missing for the others, by the
            responses' index (:func:`or_eval.analysis.human_labels.said_of`); None where nobody
            was asked.
        audit: What people say of a sample of the prompts
            (:func:`or_eval.analysis.prompt_audit.labels_by_prompt`).
        labels: People's labels as their file has them.
        encoder: The embedding model of the similarity of methods.
    """

    read: Logs
    scorer: str = "refusal"
    counting: str = STRICT
    said: pd.Series[str] | None = None
    audit: pd.DataFrame | None = None
    labels: Labels | None = None
    encoder: str = ""

    @cached_property
    def other(self) -> Material:
        """The same by the counting that stands beside it."""
        return replace(self, counting=other_counting(self.counting))

    @cached_property
    def strict(self) -> Material:
        """The same by the score's own counting, in which class by class is counted."""
        if self.counting != STRICT and self.other.counting == STRICT:
            return self.other
        return self if self.counting == STRICT else replace(self, counting=STRICT)

    @cached_property
    def asked(self) -> Logs:
        """The frames with all responses, refused or not by the counting."""
        return self.read._replace(responses=counted_as(self.read.responses, self.counting))

    @cached_property
    def logs(self) -> Logs:
        """The frames with the responses to prompts as they are, unless all were in contexts."""
        return as_they_are(self.asked)

    @property
    def responses(self) -> pd.DataFrame:
        """These responses, from which all is found but effects, framings and corrections."""
        return self.logs.responses

    @property
    def people(self) -> bool:
        """Whether people's labels tell the truth, or else an audit by the judge."""
        return self.said is not None

    @cached_property
    def known(self) -> pd.Series[float]:
        """What is known of single responses, by people's labels or an audit."""
        if self.said is None:
            return audited_truth(self.asked.responses, self.counting)
        return truth_of(self.said, self.counting)

    @cached_property
    def sample(self) -> Corrections | None:
        """What that says of the verdicts; None where nothing is known."""
        return corrections(self.asked.responses, self.known)

    @cached_property
    def usual(self) -> Corrections | None:
        """The same, with what is usual of verdicts of which nothing is known.

        None where that tells nothing of any.
        """
        found = corrections(self.asked.responses, self.known, calibration(self.counting))
        return found if found is not None and found.borrowed.any() else None

    @cached_property
    def bases(self) -> dict[str, str]:
        """Plain name of each model, which is fewer than rows where there are conditions."""
        return base_models(self.asked.heads)

    @property
    def row(self) -> str:
        """What has a row: a ``model``, or a ``condition`` of those that models were run under."""
        names = self.models["model"].unique()
        plain = {self.bases.get(str(name), name) for name in names}
        return "model" if len(plain) == len(names) else "condition"

    @cached_property
    def _rates(self) -> dict[tuple[str, ...], pd.DataFrame]:
        return {}

    def rates(self, *by: str) -> pd.DataFrame:
        """Give rates by these columns, corrected where a sample of the truth is known.

        By this counting, with ``counting``, and beside it by the other one, as ``rate_full``.
        Empty where one of the columns has fewer than two values; ``model`` may have one.
        """
        own, other = self._by_counting(*by), self.other._by_counting(*by)
        table = with_other(own, other, self.counting, "rate", *_ALSO)
        if "expected" in own and "expected" in other:
            beside = with_bounds(f"expected_{self.other.counting}")
            table[beside] = other[with_bounds("expected")].to_numpy()
        return table

    def _by_counting(self, *by: str) -> pd.DataFrame:
        if by not in self._rates:
            of = self.responses
            if SENSITIVE_PART in by:
                of = of.assign(sensitive_part=of["id"].map(sensitive_parts(of, self.logs.prompts)))
            split = all(of[name].nunique() > 1 for name in by if name != "model")
            self._rates[by] = rates(of if split else of.iloc[:0], by, self.sample, self.usual)
        return self._rates[by]

    def _with_other(self, what: str, figure: str, *more: str) -> pd.DataFrame:
        """Give one of these tables with its figure by the other counting beside it."""
        own, other = getattr(self, what), getattr(self.other, what)
        return with_other(own, other, self.counting, figure, *more)

    @property
    def models(self) -> pd.DataFrame:
        """Rates by model."""
        return self.rates("model")

    @cached_property
    def by_category_alike(self) -> pd.DataFrame:
        """Each model's rates with all categories counting alike; empty with one of them.

        Nor is there any where a sample of the truth corrects rates, as for ``groups``.
        """
        told = self.sample is None and "category" in self.splits
        return macro_averages(self.responses if told else self.responses.iloc[:0])

    @property
    def corrected(self) -> pd.DataFrame:
        """What corrections did to each model's rates; empty without a sample."""
        rows = self.models
        return rows[rows["sampled"] > 0] if self.sample is not None else pd.DataFrame()

    @cached_property
    def _counts(self) -> dict[str, int]:
        return {name: self.responses[name].nunique() for name in SPLITS}

    @property
    def splits(self) -> list[str]:
        """The columns with several values, but not too many to be read."""
        return [name for name in SPLITS if 1 < self._counts[name] <= _MOST_GROUPS]

    @cached_property
    def notes(self) -> list[str]:
        """What was chosen or left out in reading the logs, and what is not in tables by group."""
        notes = list(self.asked.notes)
        for name, values in self._counts.items():
            missing = int(self.responses[name].isna().sum())
            if values > _MOST_GROUPS:
                notes.append(f"no rates by {name}: there are {values} of them")
            elif values > 1 and missing:
                notes.append(f"{missing} responses have no {name}: rates by {name} leave them out")
        return notes

    @property
    def differences(self) -> pd.DataFrame:
        """Differences between models, with ``label``: on safe and on toxic prompts."""
        return self._with_other("_differences", "difference", "verdict")

    @cached_property
    def _differences(self) -> pd.DataFrame:
        return compare_models(self.responses, self.sample)

    @cached_property
    def standing(self) -> Standing | None:
        """How many of those on safe prompts hold if open verdicts go against them.

        None where no verdict is open, or a sample of the truth is known.
        """
        safe = self.responses[self.responses["label"] == Label.SAFE]
        open_ = safe["refused"].isna() | ~safe["certain"].fillna(True)
        if self.sample is not None or self.differences.empty or not open_.any():
            return None
        return standing(safe, self.differences[self.differences["label"] == Label.SAFE])

    @cached_property
    def groups(self) -> dict[str, pd.DataFrame]:
        """Languages and methods compared within each model.

        How verdicts err is known by model and kind of verdict, not by group: so neither these nor
        ``lineage`` and ``standing_out`` are found where a sample of the truth corrects rates.
        """
        return {
            name: compare_groups(self.responses, name)
            for name in _COMPARED
            if self.sample is None and 1 < self._counts[name] <= _MOST_COMPARED
        }

    @cached_property
    def lineage(self) -> pd.DataFrame:
        """What each step from base prompt to rewrite adds; empty with one level of them.

        Languages and methods alone are compared anyway.
        """
        if self.sample is not None or levels(self.logs.prompts).nunique() < 2:
            return pd.DataFrame()
        return lineage_effects(self.logs)

    @cached_property
    def standing_out(self) -> pd.DataFrame:
        """How far each category's over-refusal is from the others', with its rate.

        Over all models, highest first; empty with one category.
        """
        if self.sample is not None or "category" not in self.splits:
            return pd.DataFrame()
        found = self.rates("category")
        safe = found[(found["measure"] == "over_refusal") & (found["n"] > 0)]
        ends = {"lower": "difference_lower", "upper": "difference_upper"}
        tested = standing_out(self.responses, "category").rename(columns=ends)
        other = with_bounds(f"rate_{self.other.counting}")
        told = ["category", "rate", "lower", "upper", *other, "refused", "n", "counting"]
        table = safe[told].merge(
            tested[["category", "difference", *ends.values(), "p", "verdict"]], on="category"
        )
        return table.sort_values(["rate", "category"], ascending=[False, True], ignore_index=True)

    @cached_property
    def _effects(self) -> pd.DataFrame:
        return marginal_effects(self.asked, self.sample)

    @property
    def effects(self) -> pd.DataFrame:
        """What each factor does, where models were run under several conditions."""
        effects = self._with_other("_effects", "difference", "verdict")
        return effects[effects["factor"] != FRAMING].reset_index(drop=True)

    @cached_property
    def framings(self) -> pd.DataFrame:
        """What each framing does, with its kind, against the prompts as they are."""
        described: dict[str, Any] = {}
        for head in self.asked.heads:
            described |= (head.header.eval.metadata or {}).get("framings") or {}
        kinds = {name: str(said.get("kind") or "") for name, said in described.items()}
        names = {"a": FRAMING, "rate_a": "rate_framed", "rate_b": "rate_plain"}
        effects = self._with_other("_effects", "difference", "verdict")
        found = effects[effects["factor"] == FRAMING].rename(columns=names)
        found.insert(2, "kind", found[FRAMING].map(kinds))
        order = found["difference"].abs().sort_values(ascending=False, kind="stable").index
        found = found.drop(columns=["factor", "b", "settings"]).loc[order]
        return found.sort_values(["label", "model"], kind="stable", ignore_index=True)

    @property
    def rankings(self) -> dict[str, pd.DataFrame]:
        """Rankings by measure, with each model's value and rank by the other counting."""
        return {
            name: with_other(
                table,
                self.other._rankings[name].set_index("model").loc[table["model"]],
                *(self.counting, "value", "rank"),
            )
            for name, table in self._rankings.items()
        }

    @cached_property
    def _rankings(self) -> dict[str, pd.DataFrame]:
        known = self.models[self.models["n"] > 0]
        measures = [name for name in ("over_refusal",) if (known["measure"] == name).any()]
        if known["measure"].nunique() == 2 and known["model"].duplicated().any():
            measures.append("balanced_accuracy")
        found = {name: ranking(self.responses, name, self.sample) for name in measures}  # type: ignore[arg-type]
        return {name: table for name, table in found.items() if len(table) > 1}

    @cached_property
    def correlation(self) -> Correlation:
        """Of toxic rejection with over-refusal, over models."""
        return safety_over_refusal_correlation(self.models, self.bases)

    @cached_property
    def agreement(self) -> dict[str, VoteAgreement]:
        """Agreement of the votes by label of the prompts; empty with one model."""
        prompts, matrix = self.logs.prompts, vote_matrix(self.responses)
        labelled = prompts.index[prompts["label"].isin(list(MEASURES))]
        votes = matrix[matrix.index.isin(labelled)]
        return agreement_by_label(votes, prompts)

    @cached_property
    def prompt_audit(self) -> PromptAudit | None:
        """What people say of a sample of the prompts; None without one."""
        if self.audit is None:
            return None
        audit = self.audit[self.audit.index.isin(self.logs.prompts.index)]
        if audit.empty:
            return None
        return prompt_audit(self.responses, self.logs.prompts, audit, self.sample)

    @property
    def corrected_for_labels(self) -> pd.DataFrame:
        """Rates over the prompts whose label is right, by both countings; empty without any."""
        own, other = self.prompt_audit, self.other.prompt_audit
        if own is None or other is None:
            return pd.DataFrame()
        return with_other(own.corrected, other.corrected, self.counting, "rate")


def material(
    logs: Logs,
    *,
    scorer: str = "refusal",
    counting: str = STRICT,
    labels: Labels | None = None,
    prompt_labels: pd.DataFrame | None = None,
    encoder: str = "",
    pool: bool = True,
) -> dict[str, Material]:
    """Prepare what logs show.

    Args:
        logs: The frames of logs.
        scorer: Name of the score that they were read by.
        counting: Key of what counts as refused (:func:`or_eval.schema.countings`).
        labels: People's labels of a sample of the responses.
        prompt_labels: Their labels of a sample of the prompts
            (:func:`or_eval.analysis.prompt_audit.read_prompt_labels`).
        encoder: The embedding model of the similarity of methods.
        pool: Whether to take logs of several benchmarks for one.

    Returns:
        The material of each benchmark by its name, or of all by an empty one.

    Raises:
        DataError: The labels don't tell which responses or prompts they are about.
    """
    said = None
    if labels is not None:
        said, chance, note = said_of(logs, labels, scorer)
        responses = logs.responses.assign(chance=chance)
        logs = logs._replace(responses=responses, notes=[*logs.notes, note])
    audit = None if prompt_labels is None else labels_by_prompt(prompt_labels, logs.prompts)
    logs = with_shown_names(logs)
    return {
        name: Material(
            part,
            scorer,
            counting,
            None if said is None else said.loc[part.responses.index],
            audit,
            labels,
            encoder,
        )
        for name, part in ({"": logs} if pool else by_benchmark(logs)).items()
    }


def with_shown_names(logs: Logs) -> Logs:
    """Make hidden characters in names visible, for every table and figure at once."""
    return logs._replace(
        prompts=_shown(logs.prompts, _SHOWN_NAMES[1:]),
        responses=_shown(logs.responses, _SHOWN_NAMES),
    )


def _shown(frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    shown = {}
    for column in columns:
        names = {name: visible(name) for name in frame[column].dropna().unique()}
        shown[column] = frame[column].map(names).astype("str")
    return frame.assign(**shown)
