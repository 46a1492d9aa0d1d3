"""``or-eval vote``: which prompts do models refuse?"""

from __future__ import annotations

import re
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import click

from or_eval.cli.options import options
from or_eval.schema import REFUSERS, Provenance, Reason, countings

if TYPE_CHECKING:
    from or_eval.analysis.conflicts import OnConflict
    from or_eval.analysis.vote_files import Format
    from or_eval.analysis.votes import VoteAgreement, Votes

_PAIRS_SHOWN = 28
"""Pairs printed at most (eight models); funnel.json has them all."""


@click.command("vote")
@click.argument("logs", nargs=-1, required=True)
@options("vote", provenance={"choices": REFUSERS}, reason={"choices": Reason})
def vote(
    logs: tuple[str, ...],
    min_refusals: int | None,
    max_refusals: int | None,
    min_votes: int | None,
    majority: bool,
    counting: str,
    provenances: tuple[Provenance, ...],
    reasons: tuple[Reason, ...],
    of: str | None,
    scorer: str,
    on_conflict: OnConflict,
    pool: bool,
    form: Format,
    out: Path | None,
) -> None:
    """Let the models in LOGS vote on their prompts, and keep the prompts you ask for.

    LOGS are Inspect logs or folders of them. Each model has one vote on a prompt: what most of its
    scored responses did, where --counting says what is refused. Unscored and failed responses count
    as neither; a tie gives no vote. Logs of several benchmarks give a table for each,
    OUT/BENCHMARK, unless they are pooled.

    \b
    Prompts that at least two models refuse:
      or-eval vote logs --min-refusals 2 --out contested
    Prompts that three named models all refuse, as a spreadsheet:
      or-eval vote logs --of openai/a,google/b,qwen/c --min-refusals 3 \\
        --format csv --out hard.csv
    Prompts that nobody refuses:
      or-eval vote logs --max-refusals 0 --min-votes 5 --out easy
    Prompts that two models refuse in full, where partial refusals are answers:
      or-eval vote logs --min-refusals 2 --counting full
    Prompts that two models refuse for policy reasons, in their own words:
      or-eval vote logs --min-refusals 2 --reason policy --provenance model_text

    funnel.json, beside the table, says how many prompts each condition dropped, how responses
    became votes, how far the models agree, and every choice made between logs.
    """
    from datasets import disable_progress_bars

    from or_eval.analysis.conditions import base_models
    from or_eval.analysis.responses import by_benchmark, read_logs
    from or_eval.analysis.vote_files import write_votes
    from or_eval.analysis.votes import VoteRule, agreement_by_label, votes_in

    disable_progress_bars()
    rule = VoteRule(min_refusals, max_refusals, min_votes, majority)
    models = [model.strip() for model in of.split(",")] if of else None
    read = read_logs(logs, scorer=scorer, on_conflict=on_conflict, models=models, audits=False)
    parts = by_benchmark(read)
    target = out or Path("votes" if form == "dataset" else f"votes.{form}")
    places = {name: _place(target, name, form) for name in parts}
    if pool or len(parts) == 1:
        parts, places = {"": read}, {"": target}
    found = {
        name: votes_in(part, rule, counting=counting, provenances=provenances, reasons=reasons)
        for name, part in parts.items()
    }
    bases = base_models(read.heads)
    thing = "condition" if len(set(bases.values())) < len(bases) else "model"
    for note in read.notes:
        click.echo(f"note: {note}")
    for name, votes in found.items():
        agreements = agreement_by_label(votes.matrix, votes.prompts)
        table, funnel = write_votes(votes, agreements, places[name], form)
        _print(votes, agreements, name, thing)
        click.echo(f"{len(votes.table)} prompts in {table}, the funnel in {funnel}")


def _place(target: Path, benchmark: str, form: Format) -> Path:
    """Give where the votes on one of several benchmarks go."""
    name = re.sub(r"[^\w.-]+", "-", benchmark)
    return target / name if form == "dataset" else target.with_stem(f"{target.stem}-{name}")


def _print(votes: Votes, agreements: dict[str, VoteAgreement], benchmark: str, thing: str) -> None:
    import pandas as pd
    from rich.console import Console
    from rich.text import Text

    from or_eval.analysis.tables import terminal_table
    from or_eval.analysis.wording import counted

    console = Console()
    if benchmark:
        console.rule(Text(benchmark), align="left")
    counts = pd.DataFrame(votes.responses.items(), columns=["responses", "count"])
    by = f"From responses to votes, {votes.counting}: {countings()[votes.counting].definition}"
    console.print(terminal_table(counts, by))
    console.print(terminal_table(pd.DataFrame(votes.funnel), "From prompts to rows"))
    numbers = {model: str(n) for n, model in enumerate(votes.matrix.columns, start=1)}
    for label, agreement in agreements.items():
        overlap = agreement.overlap.rename(columns=numbers).rename_axis("model").reset_index()
        overlap.insert(0, "", list(numbers.values()))
        console.print(terminal_table(overlap, f"{label.capitalize()} prompts refused by both"))
        pairs = agreement.pairs
        if len(pairs) <= _PAIRS_SHOWN:
            named = pairs["model_a"].map(numbers) + ", " + pairs["model_b"].map(numbers)
            # how many each of them and both refused says the table before
            shown = pairs[["n", "agree", "ac1", "kappa", "lower", "upper"]].copy()
            shown.insert(0, "models", named)
            console.print(terminal_table(shown, f"Agreement of models on {label} prompts"))
        alpha = agreement.alpha
        told = (
            "can't be computed: all votes are the same"
            if isnan(alpha.value)
            else f"{alpha.value:.3f}"
        )
        bounds = (
            "" if isnan(alpha.lower) else f" (95 % interval {alpha.lower:.3f} to {alpha.upper:.3f})"
        )
        console.print(
            f"Krippendorff's alpha over {counted(len(numbers), thing)} on {label} prompts: "
            f"{told}{bounds}",
            highlight=False,
        )
