"""The page over many snapshots: each model's newest rates, and what changed between dates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from itertools import pairwise
from pathlib import Path

import pandas as pd

from or_eval.analysis.contrasts import MORE, contrasts
from or_eval.analysis.figures.differences import differences
from or_eval.analysis.figures.kinds import KINDS
from or_eval.analysis.logs import LogError
from or_eval.analysis.material import Material, with_shown_names
from or_eval.analysis.rates import MEASURES, by_prompt, measures_in, prompt_means
from or_eval.analysis.report.contents import Report, ReportTable, sentences, worded
from or_eval.analysis.report.model_report import overview
from or_eval.analysis.report.model_tables import models_table, wide_rates
from or_eval.analysis.report.sentences import answers
from or_eval.analysis.report.tested import facts, measured
from or_eval.analysis.responses import RECORD, Logs, with_families
from or_eval.analysis.snapshots import Run, Snapshot
from or_eval.analysis.tables import records
from or_eval.analysis.wording import counted
from or_eval.hostile_text import visible
from or_eval.intervals import with_bounds

_FIGURES = ("trade_off", "category", "language")
_FEW = 20
_MEASURES = tuple(MEASURES.values())


def leaderboard_report(snapshots: Sequence[tuple[Path, Snapshot]]) -> Report:
    """Put snapshots into a report, by benchmark where they are of several.

    Args:
        snapshots: The snapshots, with their folders.

    Raises:
        LogError: Two snapshots hold the same model of the same day.
    """
    rows, notes = _all_rows(sorted(snapshots, key=lambda one: (one[1].date, one[0].name)))
    runs = pd.DataFrame([_run(folder, run) for folder, one in snapshots for run in one.about.runs])
    parts = {
        str(name): _benchmark(str(name), part, runs[runs["benchmark"] == name], notes)
        for name, part in rows.groupby("benchmark", sort=False)
    }
    if len(parts) == 1:
        return next(iter(parts.values()))
    models = counted(rows["model"].nunique(), "model")
    prompts = rows.drop_duplicates("id")
    title = f"{measured(prompts)} of {models} on {len(parts)} benchmarks"
    return overview(parts, title, prompts)._replace(kind="leaderboards")


def _all_rows(snapshots: Sequence[tuple[Path, Snapshot]]) -> tuple[pd.DataFrame, list[str]]:
    """Put snapshots into one frame; what a prompt is says the first that has it."""
    frame = pd.concat(
        [one.responses.assign(snapshot=folder.name, date=one.date) for folder, one in snapshots],
        ignore_index=True,
    )
    named = frame.drop_duplicates(["benchmark", "model", "date", "snapshot"])
    for row in records(named[named.duplicated(["benchmark", "model", "date"])]):
        raise LogError(
            f"{row['snapshot']!r} and another snapshot both hold {row['model']!r} of "
            f"{row['date']}: leave one out"
        )
    keys = ["benchmark", "id"]
    first = frame.drop_duplicates(keys).set_index(keys)[list(RECORD)]
    told = frame[keys].join(first, on=keys)
    other = told["label"] != frame["label"]
    notes = [
        f"{visible(str(name))}: {counted(count, 'response')} left out, whose prompt an earlier "
        "snapshot labels otherwise"
        for name, count in frame.loc[other, "snapshot"].value_counts().items()
    ]
    return frame.assign(**told[list(RECORD)])[~other].reset_index(drop=True), notes


def _benchmark(benchmark: str, rows: pd.DataFrame, runs: pd.DataFrame, notes: list[str]) -> Report:
    newest = rows["date"] == rows.groupby("model")["date"].transform("max")
    latest = with_families(rows[newest].reset_index(drop=True))
    prompts = latest.drop_duplicates("id").set_index("id")[[*RECORD, "family"]]
    shown = with_shown_names(Logs([], prompts.assign(prompt="", meta=None), latest, notes))
    of = Material(shown)
    table = _rates(of)
    changed = _changes(rows)
    said = sentences(
        "leaderboard",
        changed=records(changed[changed["verdict"] == MORE]),
        compared=len(changed),
        dates=rows["date"].nunique(),
    )
    splits = {
        name: wide_rates(of.rates("model", name), name)
        for name in ("category", "language")
        if name in of.splits
    }
    tables = [
        worded("models", table, "leaderboard-models"),
        worded("changes", changed, "leaderboard-changes")._replace(opened=len(changed) <= _FEW),
        *(worded(f"models-by-{n}", wide, "models-by", column=n) for n, wide in splits.items()),
    ]
    figures = [KINDS[name].draw(of) for name in _FIGURES]
    steps = changed.assign(model=changed["model"] + ", " + changed["to"])
    steps = steps[steps["model"].isin(steps["model"].unique()[:_FEW])]
    figures.append(differences(steps, "leaderboard-changes"))
    title = f"{measured(prompts)} of {counted(len(table), 'model')} on {visible(benchmark)}"
    return Report(
        kind="leaderboard",
        counting=of.counting,
        title=title,
        tested={"Models": str(len(table)), **facts(runs, prompts)},
        headline=_first_screen(table),
        answers={**answers(of), **said},
        runs=worded("runs", runs, "leaderboard-runs"),
        tables=[one for one in tables if not one.frame.empty],
        notes=of.notes,
        findings={"models": records(table), "changes": records(changed)},
        figures=[figure for figure in figures if figure is not None],
    )


def _rates(of: Material) -> pd.DataFrame:
    """Give each model's rates by both countings with its rank, the best first."""
    table = models_table(of.models)
    dates = of.responses.groupby("model")["date"].max()
    table.insert(1, "date", table["model"].map(dates))
    if not of.rankings:
        return table.iloc[::-1].reset_index(drop=True)
    *_, ranks = of.rankings.values()  # by balanced accuracy, where there are toxic prompts
    table.insert(1, "rank", table["model"].map(ranks.set_index("model")["rank"]))
    order = ["rank", "over_refusal"]
    return table.sort_values(order, kind="stable", ignore_index=True)


def _first_screen(table: pd.DataFrame) -> ReportTable:
    ends = ("", "_lower", "_upper", "_lowest", "_highest")
    names = [name + end for name in _MEASURES for end in ends]
    names = ["model", "rank", "date", *names, *with_bounds("over_refusal_full"), "counting"]
    shown = table[[name for name in names if name in table]].dropna(axis=1, how="all")
    return worded("headline", shown, "leaderboard-headline").also("could-be")


def _changes(rows: pd.DataFrame) -> pd.DataFrame:
    """Compare each model with itself, from each date to its next, on the prompts of both."""
    rows = with_families(rows.assign(model=rows["model"].map(visible)))
    dates = {
        str(model): sorted(of["date"].unique()) for model, of in rows.groupby("model", sort=True)
    }
    steps = [(model, one, other) for model, of in dates.items() for one, other in pairwise(of)]
    parts = []
    for label in measures_in(rows):
        of_label = rows[rows["label"] == label]
        keys = pd.Series(list(zip(of_label["model"], of_label["date"], strict=True)))
        codes, names = pd.factorize(keys)
        means = prompt_means(of_label.assign(model=codes))
        place = {name: code for code, name in enumerate(names)}
        known = [
            (step, (place[step[0], step[2]], place[step[0], step[1]]))
            for step in steps
            if {(step[0], step[1]), (step[0], step[2])} <= place.keys()
        ]
        if known:
            tested = contrasts(means, by_prompt(rows, "family"), [pair for _, pair in known])
            told = pd.DataFrame([step for step, _ in known], columns=["model", "from", "to"])
            tested = tested.rename(columns={"rate_a": "rate_b", "rate_b": "rate_a"})
            columns = ["n", "families", "rate_a", "rate_b", "difference", "lower", "upper", "p"]
            part = pd.concat([told, tested[[*columns, "verdict"]]], axis=1)
            part.insert(1, "label", label.value)
            parts.append(part)
    columns = ["model", "label", "from", "to", "rate_a", "rate_b", "difference", "lower", "upper"]
    if not parts:
        return pd.DataFrame(columns=[*columns, "p", "verdict"])
    return pd.concat(parts).sort_values("p", kind="stable", ignore_index=True)


def _run(folder: Path, run: Run) -> dict[str, object]:
    return {
        "model": run.model,
        "benchmark": run.benchmark,
        "data": run.data,
        "date": run.date.astimezone(UTC).strftime("%Y-%m-%d %H:%M"),
        "prompts": run.prompts,
        "responses": run.responses,
        "system_prompt": (run.system_prompt_sha256 or "none")[:12],
        "settings": ", ".join(map(" ".join, run.settings.items())) or "the model's own",
        "scoring": ", ".join(map(" ".join, run.scoring.items())) or "not told",
        "scorer_version": run.scorer_version or "not told",
        "judge": run.judge,
        "or_eval": run.packages.get("or_eval", "not told"),
        "inspect": run.packages.get("inspect_ai", "not told"),
        "snapshot": folder.name,
    }
