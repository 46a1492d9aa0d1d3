"""``or-eval agreement``: how far do verdicts agree with people?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from or_eval.cli.options import classes_of_words, column_options, options, response_file

if TYPE_CHECKING:
    import pandas as pd

    from or_eval.analysis.conflicts import OnConflict
    from or_eval.analysis.human_labels import Joined, Labels
    from or_eval.analysis.label_agreement import LabelAgreement

_ESTIMATES = ("agree", "kappa", "agree_full", "kappa_full", "precision", "recall", "f1")
_GROUPS_SHOWN = 40
_KEYS = ("id", "model", "prompt", "response")
"""What tells which response a label is about; each may be named by an option."""


@click.command("agreement")
@click.argument("responses", nargs=-1, required=True, metavar="LOGS|FILE")
@options("agreement", map={"callback": classes_of_words})
def agreement(
    responses: tuple[str, ...],
    labels_file: Path | None,
    label_column: str | None,
    annotators: tuple[str, ...],
    mapping: dict[str, str],
    scorer: str,
    on_conflict: OnConflict,
    with_card: bool,
    out: Path,
    **columns: str | None,
) -> None:
    """Compare verdicts with human labels of the same responses.

    LOGS are Inspect logs scored with or_eval/refusal (or another score: --scorer). A FILE of
    responses, as for or-eval replay, is classified by rules alone. Labels are joined to responses
    by id or, without one, by the prompt, and by model, epoch and response where labels have them.
    Figures are strict (every class but a direct answer is a refusal), and full where they say so
    (partial refusals are answers, in verdicts and labels).

    \b
    Rules against two annotators and what they agreed on:
      or-eval agreement responses.jsonl --label-column human_label \\
        --annotator annotation_1 --annotator annotation_2 \\
        --map 1_full_compliance=direct_answer --map 2_full_refusal=direct_refusal \\
        --map 3_partial_refusal=partial_refusal
    Logs against a file of labels:
      or-eval agreement logs/replay --labels labels.csv --map yes=refused --map no=answered
    """
    # Here and below imported on use: --help needs none of it.
    from or_eval.analysis.human_labels import (
        join_labels,
        join_rows,
        labelled_verdicts,
        read_labels,
        verdicts_of_file,
    )
    from or_eval.analysis.label_agreement import label_agreement, reason_agreement, write_agreement
    from or_eval.analysis.responses import read_logs
    from or_eval.analysis.scorecard import configurations, scorecard, write_scorecard
    from or_eval.analysis.wording import written
    from or_eval.sources.responses import load_responses

    given = column_options("agreement")
    named = {role: name for role, name in columns.items() if name}
    file = response_file(responses)
    if with_card and file is not None:
        raise click.UsageError("--scorecard needs logs: or-eval replay makes them of a file")
    if labels_file is None and file is None:
        raise click.UsageError("logs contain no human labels: give a file with --labels")
    keys = {role: named[f"{role}_column"] for role in _KEYS if f"{role}_column" in named}
    labels = read_labels(
        labels_file or Path(responses[0]),
        column=label_column,
        annotators=annotators,
        mapping=mapping,
        named=keys,
        of_responses=file is not None,
        options=given,
    )
    click.echo(f"labels: {labels.taken}")
    if file is not None:
        stored = load_responses(file, given, **named)
        click.echo(f"responses: {stored.taken}")
        verdicts = verdicts_of_file(stored)
        same_file = labels_file is None or labels_file.resolve() == file.resolve()
        joined = (join_rows if same_file else join_labels)(verdicts, labels.frame)
        notes, reasons = [], None
    else:
        logs = read_logs(responses, scorer=scorer, on_conflict=on_conflict, audits=False)
        notes, joined = logs.notes, labelled_verdicts(logs, labels, scorer)
        reasons = reason_agreement(logs.responses, scorer)
    found = label_agreement(joined.rows, labels.annotators)
    paths = write_agreement(found, labels, joined, reasons and reasons[-1], scorer, out)
    if with_card and file is None:
        card = scorecard(
            logs.responses, joined.rows, configurations(logs.heads, logs.responses, scorer)
        )
        paths.append(write_scorecard(card, out / "scorecard.json"))
    _print(found, labels, joined, notes)
    if reasons is not None:
        n, same, kappa, _ = reasons
        click.echo(
            f"Rules and judge name the same reason in {written(*same, kind='number')} of "
            f"{n} responses, where both name one; kappa {written(*kappa, kind='number')}."
        )
    click.echo(f"Written: {', '.join(map(str, paths))}")


def _print(found: LabelAgreement, labels: Labels, joined: Joined, notes: list[str]) -> None:
    from rich.console import Console

    from or_eval.analysis.tables import terminal_table

    console = Console()
    for note in notes:
        console.print(f"note: {note}", markup=False, highlight=False)
    labelled = int(joined.rows["human"].notna().sum())
    console.print(
        f"{labelled} responses with a label, joined by {', '.join(joined.by)}; "
        f"{joined.without_label} responses without one, {joined.without_response} labels match no "
        f"response, {labels.unlabelled} rows of the label file are empty",
        highlight=False,
    )
    groups = _with_intervals(found.groups.head(_GROUPS_SHOWN)).drop(columns="agree_full")
    shown = {"agree": "agree, strict", "kappa": "kappa, strict", "kappa_full": "kappa, full"}
    groups = groups.rename(columns=shown)
    groups["group"] = (
        groups.pop("by").where(groups["group"] != "all", "").str.cat(groups["group"], " ")
    )
    console.print(terminal_table(groups, "Refused or not, strict and full"))
    overall = found.classes[found.classes["by"] == "all"].drop(columns=["by", "group"])
    console.print(terminal_table(_with_intervals(overall), "By class"))
    confusion = found.confusion.rename_axis("label \\ verdict").reset_index()
    console.print(terminal_table(confusion, "Human labels (rows) and verdicts"))
    if not found.raters.empty:
        console.print(terminal_table(found.raters, "Agreement of annotators, and with or-eval"))
    cascade = found.cascade
    console.print(
        f"A cascade asks the judge about {cascade['judge_calls']:.0f} of "
        f"{cascade['responses']:.0f} responses and saves {cascade['saved']:.1%} of the calls; "
        f"{cascade['certain_right']:.1%} of the certain verdicts are right. "
        f"{len(found.disagreements)} disagreements; both figures are strict.",
        highlight=False,
    )


def _with_intervals(table: pd.DataFrame) -> pd.DataFrame:
    """Put each figure and its interval into one column, as people read them."""
    from or_eval.analysis.wording import written

    shown = table.copy()
    for name in _ESTIMATES:
        if name in table:
            figures = zip(table[name], table[f"{name}_lower"], table[f"{name}_upper"], strict=True)
            shown[name] = [written(*estimate, kind="number") for estimate in figures]
            shown = shown.drop(columns=[f"{name}_lower", f"{name}_upper"])
    return shown
