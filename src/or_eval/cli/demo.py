"""``or-eval demo``: a real model tested for over-refusal, with no key and no account."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from or_eval.cli.options import options
from or_eval.schema import FULL, STRICT, countings

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.log import EvalLog

MODEL = "gguf/smollm2-135m-instruct"
SYSTEM_PROMPTS = ("none", "safe")
# Enough to tell a refusal from an answer, and few enough for two minutes on two cores.
MAX_TOKENS = 40
FIRST_LOOK = 8
"""Prompts of each label that are asked ahead of the rest: a table within the first minute."""


@click.command("demo")
@options("demo")
def demo(log_dir: str) -> None:
    """Test a small local model on the bundled prompts, with two system prompts.

    SmolLM2 (135 million parameters) answers the English starter prompts once with no system
    prompt and once with a cautious one, and a few of them first, so that there is something to see
    within a minute; the whole takes about two on two idle cores. It works offline. Two reports are
    written: on the model without a system prompt, and on what the cautious one changed. The numbers
    show that everything works; a model this small says little about over-refusal.
    """
    # Here and below imported on use: --help needs none of it.
    from inspect_ai import eval as inspect_eval

    from or_eval.tasks import starter

    folder = Path(log_dir) / datetime.now().strftime("%Y-%m-%dT%H-%M-%S")

    def run(step: str, place: Path, task: Task) -> EvalLog:
        click.echo(f"{step}: the model answers {len(task.dataset)} prompts")
        [log] = inspect_eval(
            task, model=MODEL, log_dir=str(place), max_tokens=MAX_TOKENS, temperature=0
        )
        if log.status == "success":
            return log
        problem = log.error.message if log.error else f"the run was {log.status}"
        raise click.ClickException(
            f"{problem.splitlines()[0]} (see inspect view --log-dir {place})"
        )

    some = starter(system_prompt=SYSTEM_PROMPTS[0], language="en", per_label=FIRST_LOOK)
    _print_rates([run("1 of 4, a first look", folder / "first-look", some)])
    logs = []
    for number, name in enumerate(SYSTEM_PROMPTS, start=2):
        task = starter(system_prompt=name, language="en")
        logs.append(run(f"{number} of 4, system prompt {name!r}", folder, task))
    _print_rates(logs)
    click.echo("4 of 4: two reports are written")
    _write_reports(folder, logs)
    _print_next_steps(folder)


def _print_rates(logs: list[EvalLog]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{MODEL} on the starter prompts, scored by rules alone")
    table.add_column("system prompt")
    table.add_column("over-refusal, strict\n(safe prompts refused)")
    table.add_column("toxic rejection, strict\n(toxic prompts refused)")
    table.add_column("uncertain\nsafe, toxic", justify="right")
    table.add_column("unscored\nsafe, toxic", justify="right")
    for name, log in zip(SYSTEM_PROMPTS, logs, strict=False):
        assert log.results is not None
        told = {key: one.value for of in log.results.scores for key, one in of.metrics.items()}
        table.add_row(
            name,
            _interval(told, "over_refusal_rate"),
            _interval(told, "toxic_rejection_rate"),
            _shares(told, "uncertain"),
            _shares(told, "unscored"),
        )
    console = Console()
    console.print(table)
    console.print(
        f"In brackets: 95 % Wilson intervals. Strict: {countings()[STRICT].definition}. "
        f"Full: {countings()[FULL].definition}.",
        style="dim",
    )


def _shares(told: dict[str, int | float], name: str) -> str:
    return ", ".join(f"{told[f'{label}_{name}']:.0%}" for label in ("safe", "toxic"))


def _interval(told: dict[str, int | float], name: str) -> str:
    """Give the strict rate with its interval, and the full one below it."""
    if name not in told:
        return "none scored"
    low, high = told[f"{name}_lower"], told[f"{name}_upper"]
    return f"{told[name]:.1%}  [{low:.1%}, {high:.1%}]\nfull: {told[f'{name}_full']:.1%}"


def _write_reports(folder: Path, logs: list[EvalLog]) -> None:
    """Write a report on the first log, and one on what changed in the second."""
    from rich.text import Text

    from or_eval.analysis.report import write_comparison, write_report
    from or_eval.inspect_private import PrerequisiteError

    plain, cautious = (log.location for log in logs)
    try:
        report = write_report(plain, folder / "report")
        changes = write_comparison(plain, cautious, folder / "changes")
    except PrerequisiteError as missing:
        click.echo(f"\nNo report is written. {Text.from_markup(str(missing.message)).plain}")
        return
    click.echo(
        f"\nReport on the model: {report}\nWhat the cautious system prompt changed: {changes}"
    )


def _print_next_steps(folder: Path) -> None:
    click.echo(
        f"""
Logs: {folder}

A model this small shows that the pieces work; it says little about over-refusal. Next:
  inspect view --log-dir {folder}
  inspect eval or_eval/starter --model openai/gpt-5-mini --model-role grader=google/gemini-3-flash
"""
    )
