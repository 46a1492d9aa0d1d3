"""The report on what changed between two runs."""

from __future__ import annotations

from math import nan

import pandas as pd

from or_eval.analysis.conditions import differing_settings
from or_eval.analysis.configuration import mixed_scoring
from or_eval.analysis.contrasts import ALIKE, MORE
from or_eval.analysis.figures.differences import differences
from or_eval.analysis.figures.drawing import with_counting
from or_eval.analysis.report.browser import browse, concerns, picks
from or_eval.analysis.report.contents import Report, ReportTable, sentences, worded
from or_eval.analysis.report.tested import facts, log_folder, run_table, title_of
from or_eval.analysis.responses import other_counting
from or_eval.analysis.run_changes import RUNS, Changes
from or_eval.analysis.tables import records
from or_eval.intervals import with_bounds

_MOST_TOLD = 6


def comparison_report(found: Changes, scorer: str) -> Report:
    """Put changes into a report.

    Args:
        found: What changed.
        scorer: Name of the score that it was found from.
    """
    found = found._replace(rates=found.rates.drop(columns=list(ALIKE)))
    counting = str(found.rates["counting"].iloc[0])
    heads = [head for logs in found.runs for head in logs.heads]
    folder = log_folder([head.location for head in heads])
    both = list(zip(RUNS, found.runs, strict=True))
    runs = [run_table(of.heads, of.responses, scorer, folder).assign(run=run) for run, of in both]
    table = pd.concat(runs, ignore_index=True)
    table.insert(0, "run", table.pop("run"))
    settings = differing_settings(*(logs.heads for logs in found.runs))
    responses, flags = _responses(found)
    prompts, nobody = found.runs[0].prompts, pd.Series(nan, responses.index)
    browser = browse(responses, flags, prompts, folder, scorer, nobody, "")
    before = responses[responses["run"] == RUNS[0]]
    flips = found.flips[["model", "change", "label", "category", "language", "prompt", "id"]]
    tables = [worded("changes", found.rates), worded("flips", flips)]
    return Report(
        kind="comparison",
        counting=counting,
        title=f"What changed for {title_of(heads)}",
        tested=facts(table, prompts),
        headline=_headline(found.rates),
        answers=_sentences(found, mixed_scoring(heads, responses, scorer)),
        runs=worded("runs", table),
        tables=[table for table in tables if not table.frame.empty],
        notes=found.notes,
        findings={
            "prompts_compared": found.prompts,
            "settings": records(settings),
            "changes": records(found.rates),
            "flips": records(found.flips[["id", "model", "label", "change"]]),
        },
        log_dir=folder,
        settings=worded("settings", settings),
        figures=[with_counting(figure, counting)] if (figure := differences(found.rates)) else [],
        browser=browser,
        picks=picks(before, flags, browser) if len(flips) else [],
    )


def _responses(found: Changes) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Give the responses of both runs, each run's models by names of their own, and concerns."""
    runs = zip(RUNS, found.runs, strict=True)
    frame = pd.concat([of.responses.assign(run=run) for run, of in runs], ignore_index=True)
    names = found.rates["model"].unique()
    compared = frame["model"] if len(names) > 1 else names[0]  # which may be renamed in run B
    pairs = pd.MultiIndex.from_frame(frame.assign(model=compared)[["id", "model"]])
    flips = pd.MultiIndex.from_frame(found.flips[["id", "model"]])
    flags = concerns(frame, pd.Series(nan, frame.index))
    flags.insert(0, "changed", pairs.isin(flips))
    return frame.assign(model=frame["model"] + ", run " + frame["run"]), flags


def _headline(rates: pd.DataFrame) -> ReportTable:
    unsure = {
        f"rate_{run}_unsure": rates[f"uncertain_{run}"] + rates[f"without_verdict_{run}"]
        for run in "ab"
    }
    doubtful = any(shares.any() for shares in unsure.values())
    columns = ["model", "label", "rate_a", "rate_b", "difference", "lower", "upper", "verdict"]
    other = other_counting(rates["counting"].iloc[0])
    columns += [f"{name}_{other}" for name in ("rate_a", "rate_b", "verdict")]
    columns += [*with_bounds(f"difference_{other}"), "counting"]
    if doubtful:
        columns += unsure
    frame = rates.assign(**unsure)[columns]
    return worded("headline", frame, "changes-headline", "unsure" if doubtful else "")


def _sentences(found: Changes, mixed: list[str]) -> dict[str, list[str]]:
    """Tell the changes that are more than chance, and the others where there is room for them."""
    rows = records(found.rates)
    sure = [row for row in rows if row["verdict"] == MORE]
    told = rows if len(rows) <= _MOST_TOLD else sure
    return sentences(
        "comparison",
        models=found.rates["model"].nunique(),
        prompts=found.prompts,
        mixed=mixed,
        audited=any(logs.responses["audited"].fillna(False).any() for logs in found.runs),
        told=told,
        rest=len(rows) - len(told),
    )
