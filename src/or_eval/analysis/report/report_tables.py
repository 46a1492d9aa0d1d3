"""The tables of a report on models, in order, each with its words."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.card_coverage import CardCoverage
from or_eval.analysis.rates import LABEL_OF
from or_eval.analysis.refusal_kinds import refusal_shares
from or_eval.analysis.report.contents import ReportTable
from or_eval.analysis.report.findings import Findings
from or_eval.analysis.report.paper_tables import paper_tables
from or_eval.analysis.report.shown_tables import SHOWN_MEASURES
from or_eval.analysis.wording import COUNTS, doubt_shares

_WHO = {
    True: "People labelled a sample of the responses, which is taken for random.",
    False: "The judge, taken for right, checked a random part of the rules' certain verdicts.",
}
_CORRECTED = [
    *("model", "measure", "n", "raw", "raw_lower", "raw_upper", "rate", "lower", "upper"),
    *("known_lower", "known_upper", "sampled", "uncorrected", "missed", "false_alarms"),
]
_RANKED = {
    "over_refusal": ("over-refusal", "fewest safe prompts refused"),
    "balanced_accuracy": (
        "balanced accuracy",
        "highest mean of safe prompts answered and toxic ones refused",
    ),
}
_SPLIT = {
    "category": "category",
    "language": "language",
    "method": "rewriting method",
    "source": "source",
    "task": "benchmark",
}
_ALWAYS = ("over_refusal", "toxic_rejection")
_ONE_TEST = (
    "Intervals and p-values come from one test for all rows of a label, which knows of families. "
    "Detectable is the smallest difference that would be found four times in five."
)
_DOUBTS = (
    "Beside a rate stand the shares of those responses that could change it: whose verdict is not "
    "certain, and that have none."
)


def report_tables(found: Findings, covered: CardCoverage | None = None) -> list[ReportTable]:
    """Put findings into tables; those with nothing to say are left out."""
    tables = [
        ReportTable(
            "models",
            "Rates by model",
            "Safe and toxic responses are those with a verdict; unscored ones and errors enter no "
            f"rate. {_DOUBTS} A rate is a mean over prompts, however often each was asked; its "
            "95 % interval counts families (rewrites of a seed, pairs). Lowest and highest is what "
            "the rate would be if every uncertain verdict and every response without one fell to "
            "the answers, or to the refusals. Ordered by the first rate, highest first.",
            models_table(found.models),
            opened=True,
        ),
        ReportTable(
            "corrections",
            "Rates corrected by people's labels"
            if found.people
            else "Rates corrected by the audit",
            f"{_WHO[found.people]} Raw is the rate as the verdicts stand; rate is corrected for "
            "the errors found in the sample: missed are refusals that a verdict took for answers, "
            "false alarms answers taken for refusals. Known lower and upper is where the rate of "
            "these very responses lies. Uncorrected are responses whose kind of verdict (who "
            "decided, certain or not, refused or not) was not sampled: they count as they stand.",
            found.corrected.reindex(columns=_CORRECTED),
            opened=True,
        ),
        *_prompt_audit(found),
        ReportTable(
            "scorecard",
            "Verdicts against people's labels",
            "From the scorecard, for the configurations of rules and judges that these verdicts "
            "came from: n labels, kappa and F1 of refusal, the share of all responses whose "
            "verdict is certain, and how many of these people say otherwise of.",
            pd.DataFrame() if covered is None else covered.rows,
        ),
        ReportTable(
            "worst-categories",
            "Categories refused most",
            "Over-refusal over the responses of all models; n counts responses to safe prompts. "
            "The difference is that from all other safe prompts, in percentage points, with a "
            "95 % interval and a p-value that allow for the number of categories. Detectable is "
            "the smallest difference that would be found four times in five. Ordered by rate, "
            "highest first.",
            worst_categories(found),
            opened=True,
        ),
        *_rankings(found),
        ReportTable(
            "differences",
            "Differences between models",
            "On the n prompts to which both models have a response with a verdict. The difference "
            "is A less B in percentage points. Intervals and p-values come from one test, which "
            "flips the signs of whole families of prompts and allows for the number of pairs. "
            "Detectable is the smallest difference that would be found four times in five.",
            found.differences,
        ),
        ReportTable(
            "factors",
            "What each factor does",
            "Runs of a model that differ in this factor alone, averaged over the settings of the "
            f"others. The difference is A less B in percentage points. {_ONE_TEST}",
            found.effects,
            opened=True,
        ),
        ReportTable(
            "framings",
            "What each framing does",
            "Every prompt was asked as it is and set into contexts (who asks, what for, in which "
            "language, under which system prompt). The difference is the refused share under the "
            f"framing less that of the same prompts as they are, in percentage points. {_ONE_TEST} "
            "All other tables and figures are of prompts as they are.",
            found.framings,
            opened=True,
        ),
        ReportTable(
            "lineage",
            "What each step of the lineage adds",
            "Prompts that have their seed in common and differ in one step: level (base prompt, "
            "seed prompt, rewrite), method or language. The difference is A less B in percentage "
            f"points. {_ONE_TEST}",
            found.lineage,
        ),
        *(
            ReportTable(
                f"{name}-differences",
                f"Differences between {_SPLIT[name]}s",
                f"Within each model; A less B in percentage points. {_ONE_TEST}",
                frame,
            )
            for name, frame in found.groups.items()
        ),
        ReportTable(
            "steadiness",
            "How steady responses are",
            "Of prompts that were asked several times: how many were both refused and answered, "
            "and the share of the variance that lies within prompts. Where that is large, more "
            "epochs make a rate surer; where it is small, only more prompts do.",
            found.steadiness,
        ),
        *_fourfold(found),
        ReportTable(
            "classes",
            "Response classes",
            "Every class but direct_answer counts as refused. A partial refusal declines a part, "
            "or declines and then answers; an indirect one never says no and never answers.",
            found.classes,
        ),
        ReportTable(
            "who-refused",
            "Who refused",
            "The model in its text, or in the place its API has for refusals; a safety filter of "
            "its provider; or it declined and a fallback model answered. Shares are of all "
            "responses with a verdict and add up to the refusal rate. Blocks for recitation or "
            "personal data say nothing about refusing and stand among those without a verdict.",
            refusal_shares(found.logs.responses, "provenance"),
        ),
        ReportTable(
            "grounds",
            "On what ground",
            "The ground that a refusal names, by the stage that decided. Shares are of all "
            "responses with a verdict and add up to the refusal rate.",
            refusal_shares(found.logs.responses, "reason"),
        ),
        ReportTable(
            "pairs",
            "Safe and toxic twins",
            "A pair is right where the safe side is answered and the toxic one refused, reversed "
            "where it is the other way round. Balanced accuracy hangs on how eager a model is to "
            "refuse; d′ and the ROC area that it implies don't, if what makes the model refuse "
            "varies alike on both sides (no better than chance: 0 and 0.5).",
            found.pairs,
        ),
        *_agreement(found),
        *(
            ReportTable(
                f"rates-by-{name}",
                f"Rates by model and {_SPLIT[name]}",
                "As in the table of rates by model; n counts responses with a verdict.",
                frame.drop(columns="families"),
                opened=name == "task",
            )
            for name, frame in found.rates_by.items()
        ),
        *paper_tables(found),
        ReportTable(
            "without-verdict",
            "Responses without a verdict",
            "They count neither as refused nor as answered.",
            without_verdict(found.logs.responses),
        ),
    ]
    return [table for table in tables if not table.frame.empty]


def _prompt_audit(found: Findings) -> list[ReportTable]:
    if found.prompt_audit is None:
        return []
    labels, consensus, corrected = found.prompt_audit
    columns = ["model", "measure", "consensus", "n", "refused", "families", "rate"]
    return [
        ReportTable(
            "prompt-labels",
            "Are the prompts' labels right?",
            "People said of a sample of the prompts whether they are harmless, taken for random. A "
            "label is right where most call a safe prompt harmless, or a toxic one harmful; where "
            "most can't say it is not, and where they are split evenly the prompt doesn't count.",
            labels,
            opened=True,
        ),
        ReportTable(
            "corrected-for-labels",
            "Rates over prompts whose label is right",
            "As labelled is the rate over all prompts of the label; right the "
            "share of these prompts whose label is; rate that over them alone. Its interval holds "
            "what other prompts and the sample of prompts leave open, and what that of verdicts "
            "does where they are corrected.",
            corrected,
            opened=True,
        ),
        ReportTable(
            "rates-by-consensus",
            "Rates by what people say of the prompts",
            "As in the table of rates by model, over the prompts that people were asked about.",
            consensus[[*columns, "lower", "upper"]],
        ),
    ]


def headline(found: Findings) -> ReportTable:
    """Give the two rates of each model with what could change them, for the first screen."""
    rates = models_table(found.models)
    shown = [name for name in LABEL_OF if name in rates and rates[name].notna().any()]
    ends = ("", "_lower", "_upper", "_raw", "_lowest", "_highest")
    wanted = [name + end for name in shown for end in ends if name + end != "toxic_rejection_raw"]
    frame = rates.reindex(columns=["model", *(name for name in wanted if name in rates)])
    by = f"Ordered by {SHOWN_MEASURES[shown[0]]}, highest first. " if shown else ""
    note = f"{by}In brackets: 95 % intervals, where the rate may lie on other prompts of the kind."
    if not found.corrected.empty:
        who = "people's labels" if found.people else "the judge's audit"
        note += f" The rates are corrected by {who}."
    counts = found.models.groupby("model")[list(COUNTS)].sum().loc[frame["model"]]
    uncertain, missing = (shares.to_numpy() for shares in doubt_shares(counts))
    if uncertain.any() or missing.any():
        frame = frame.assign(uncertain_share=uncertain, without_verdict=missing)
        note += (
            " Could be: what the rate would be if every uncertain verdict and every response "
            "without one fell to the answers, or to the refusals."
        )
    return ReportTable("headline", "Rates by model", note, frame)


def models_table(rates: pd.DataFrame) -> pd.DataFrame:
    """Put each model's two rates side by side.

    Args:
        rates: Rates by model (:func:`or_eval.analysis.rates.rates`).

    Returns:
        A row per model, the highest first rate first: ``over_refusal`` and ``toxic_rejection``
        with ``_lower`` and ``_upper``, ``_lowest`` and ``_highest`` (and ``_raw``, where rates are
        corrected), ``safe_n`` and ``toxic_n`` (responses with a verdict), ``safe_uncertain``,
        ``safe_without_verdict`` and those of toxic prompts (shares of all responses, errors among
        those without a verdict), ``unscored``, ``errors``.
    """
    rows = []
    for model, group in rates.groupby("model", sort=True):
        by = group.set_index("measure")
        row: dict[str, object] = {"model": model}
        for measure, label in LABEL_OF.items():
            known = measure in by.index
            if not known and measure not in _ALWAYS:
                continue
            for column in ("rate", "lower", "upper", "lowest", "highest"):
                name = measure if column == "rate" else f"{measure}_{column}"
                row[name] = by.at[measure, column] if known else float("nan")
            row[f"{label}_n"] = by.at[measure, "n"] if known else 0
            shares = doubt_shares(by.loc[measure]) if known else (float("nan"),) * 2
            names = (f"{label}_uncertain", f"{label}_without_verdict")
            row |= zip(names, shares, strict=True)
            if known and "raw" in by:
                row[f"{measure}_raw"] = by.at[measure, "raw"]
        rows.append(row | {name: by[name].sum() for name in ("unscored", "errors")})
    frame = pd.DataFrame(rows)
    by_value = [name for name in LABEL_OF if name in frame and frame[name].notna().any()]
    if not by_value:
        return frame
    return frame.sort_values(by_value[0], ascending=False, ignore_index=True, kind="stable")


def without_verdict(responses: pd.DataFrame) -> pd.DataFrame:
    """Count each model's responses without a verdict, by reason."""
    missing = responses[responses["refused"].isna()]
    reasons = missing["unscored_because"].fillna("unscored")
    counts = reasons.groupby([missing["model"], reasons.rename("why")]).size()
    return counts.rename("responses").reset_index().rename(columns={"why": "reason"})


def worst_categories(found: Findings) -> pd.DataFrame:
    """Give over-refusal by category over all models, highest first, and which stand out."""
    if found.standing_out is None:
        return pd.DataFrame()
    pooled = found.pooled[("category",)]
    safe = pooled[(pooled["measure"] == "over_refusal") & (pooled["n"] > 0)]
    rates = safe[["category", "rate", "lower", "upper", "refused", "n"]]
    other = {"lower": "difference_lower", "upper": "difference_upper"}
    tested = found.standing_out.rename(columns=other)
    columns = ["category", "difference", *other.values(), "p", "verdict", "detectable"]
    table = rates.merge(tested[columns], on="category")
    return table.sort_values(["rate", "category"], ascending=[False, True], ignore_index=True)


def _rankings(found: Findings) -> list[ReportTable]:
    return [
        ReportTable(
            f"ranking-{name.replace('_', '-')}",
            f"Ranking by {_RANKED[name][0]}",
            f"In order of {_RANKED[name][1]}. A model's rank is 1 and the number of models that "
            "are better by more than chance: models of one rank can't be told apart by it.",
            table,
        )
        for name, table in found.rankings.items()
    ]


def _fourfold(found: Findings) -> list[ReportTable]:
    note = (
        "Responses by label and verdict. To refuse is to call a prompt toxic: precision, recall "
        "and F1 are those of finding toxic prompts; specificity is the share of safe ones "
        "answered. Accuracy, precision and F1 hang on how many of the prompts are toxic; recall "
        "and specificity don't."
    )
    if not found.corrected.empty:
        note += " Corrected as the rates are: counts are what the sample makes of the verdicts."
    titles = {"fourfold": "Four outcomes", "fourfold-by-language": "Four outcomes by language"}
    return [ReportTable(name, titles[name], note, frame) for name, frame in found.fourfold.items()]


def _agreement(found: Findings) -> list[ReportTable]:
    if not found.agreement:
        return []
    alphas = "".join(
        f" Krippendorff's alpha over all models on {label} prompts: {alpha.value:.2f}"
        + ("." if pd.isna(alpha.lower) else f" ({alpha.lower:.2f} to {alpha.upper:.2f}).")
        for label, alpha in ((label, of.alpha) for label, of in found.agreement.items())
        if not pd.isna(alpha.value)
    )
    note = (
        "Between the votes of every two models, on safe and on toxic prompts apart: the share of "
        "prompts on which they did the same, Gwet's AC1 and Cohen's kappa (1: alike, 0: as by "
        "chance; kappa is low where one outcome is rare), and jaccard, the share of prompts "
        "refused by both among those refused by either." + alphas
    )
    pairs = [of.pairs.assign(label=label) for label, of in found.agreement.items()]
    table = pd.concat(pairs, ignore_index=True)
    table.insert(0, "label", table.pop("label"))
    return [ReportTable("vote-agreement", "Agreement of models", note, table)]
