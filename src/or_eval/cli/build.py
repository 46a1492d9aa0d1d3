"""``or-eval build``: make a data set by a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from or_eval.cli.broken_pipe import written_to_nobody_too

if TYPE_CHECKING:
    from or_eval.dataset_builders.engine.dry_run import PlannedCalls, PlannedStage
    from or_eval.dataset_builders.engine.ports import StageFacts

_INTERRUPTED = 130


@click.command("build")
@click.argument("recipe", required=False)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="The build's folder.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change the recipe: rewrite.count=2 for a parameter of the stage `rewrite`, language=zh "
    "for the recipe itself. VALUE is YAML.",
)
@click.option(
    "--model",
    help="Model for every role that none is bound to; those that the recipe names are left out.",
)
@click.option(
    "--model-role",
    "roles",
    multiple=True,
    metavar="ROLE=MODEL",
    help="Model of a role (writer, moderator, grader), in Inspect's syntax; moderator=[a,b,c] is a "
    "panel, 'writer={model: a, temperature: 0.9}' has settings.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Start from so many seeds at most.")
@click.option("--only", metavar="STAGE", help="Run this stage again, and no other.")
@click.option("--from", "start", metavar="STAGE", help="Run this stage again, and all after it.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and what it would cost.")
@click.option(
    "--model-cost-config",
    type=click.Path(path_type=Path),
    help="Inspect's file of prices, for models whose price it doesn't know.",
)
@click.option(
    "--batch",
    is_flag=False,
    flag_value="true",
    metavar="[SIZE]",
    help="Use the providers' batch interface, as in `inspect eval`.",
)
@click.option(
    "--cache",
    "shared_cache",
    is_flag=True,
    help="Keep replies in Inspect's own cache, which all builds share, rather than the build's.",
)
@click.option("--max-connections", type=click.IntRange(min=1), help="Calls at once to a model.")
@click.option("--max-retries", type=click.IntRange(min=0), help="Retries of a call.")
@click.option("--timeout", type=click.IntRange(min=1), help="Seconds until a call is given up.")
@click.option("--display", type=click.Choice(["full", "rich", "plain", "log", "none"]))
@click.option("--list", "listed", is_flag=True, help="List the recipes and stages there are.")
@click.option("--show", metavar="RECIPE", help="Print a recipe, as a start for one's own.")
def build(
    recipe: str | None,
    out: Path | None,
    changes: tuple[str, ...],
    model: str | None,
    roles: tuple[str, ...],
    limit: int | None,
    only: str | None,
    start: str | None,
    dry_run: bool,
    model_cost_config: Path | None,
    batch: str | None,
    shared_cache: bool,
    listed: bool,
    show: str | None,
    display: str | None,
    **settings: int | None,
) -> None:
    """Build the data set that RECIPE describes: a bundled recipe's name, or a YAML file.

    Every call of a model is an Inspect call, and its log is kept. What is done is never done
    again: the same command goes on where it was stopped, and a changed recipe runs again from the
    first stage that it changes.

    \b
    What there is, and what it would cost:
      or-eval build --list
      or-eval build or_bench --out or-bench --dry-run --model openai/gpt-5-mini
    A small one, to try:
      or-eval build or_bench --out try --set seeds.per_category=2 --set rewrite.count=2 \\
        --set test_refusal.models='[openai/gpt-5-mini]' --set hard.min_refusals=1 \\
        --model openai/gpt-5-mini
    Other models for writing and for moderating:
      or-eval build lto --out lto --model-role writer=openai/gpt-5 \\
        --model-role 'moderator=[openai/gpt-5-mini,google/gemini-3-flash,anthropic/claude-haiku-5]'
    """  # noqa: D301
    from or_eval.dataset_builders.engine.asking import Asking
    from or_eval.dataset_builders.engine.dry_run import planned, read_prices
    from or_eval.dataset_builders.engine.recipe import load_recipe
    from or_eval.dataset_builders.engine.run import Build, Selection, check_ready

    if listed:
        _list()
        return
    if show is not None:
        click.echo(load_recipe(show).text, nl=False)
        return
    if recipe is None:
        raise click.UsageError("name a RECIPE, or see --list")
    if only is not None and start is not None:
        raise click.UsageError("--only and --from exclude each other")
    loaded = load_recipe(recipe, changes)
    if out is None and not dry_run:
        raise click.UsageError("give --out, the folder of the build")
    config: dict[str, Any] = {key: value for key, value in settings.items() if value is not None}
    if batch is not None:
        config["batch"] = _batch(batch)
    asking = Asking(model, roles, shared_cache, config, display=display)
    job = Build(loaded, out or Path(loaded.name), asking, limit, say=click.echo)
    if dry_run:
        job.check_folder()
        _print_plan(planned(job, read_prices(model_cost_config) if model_cost_config else {}))
        check_ready(job)
        return
    check_ready(job)
    with written_to_nobody_too():
        try:
            facts = job.run(Selection(only, start))
        except KeyboardInterrupt:
            click.echo("Interrupted. What is done is kept: the same command goes on.", err=True)
            raise SystemExit(_INTERRUPTED) from None
        _print_funnel(facts)
        click.echo(f"Build: {job.out}")


def _batch(text: str) -> bool | int:
    if text == "true":
        return True
    try:
        return int(text)
    except ValueError:
        raise click.BadParameter(f"'{text}' is no number", param_hint="--batch") from None


def _list() -> None:
    from or_eval.dataset_builders.engine.recipe import load_recipe, recipe_names
    from or_eval.dataset_builders.stages import stage_kinds

    for name in recipe_names():
        click.echo(f"{name:12} {load_recipe(name).description}")
    click.echo(f"Stages: {', '.join(stage_kinds())}")


def _print_funnel(facts: Sequence[StageFacts]) -> None:
    import pandas as pd
    from rich.console import Console

    from or_eval.analysis.tables import terminal_table
    from or_eval.dataset_builders.engine.funnel import funnel_rows

    frame = pd.DataFrame(funnel_rows(facts), columns=["stage", "what", "rows"])
    Console().print(terminal_table(frame, "Funnel"))


def _print_plan(stages: Sequence[PlannedStage]) -> None:
    import pandas as pd
    from rich.console import Console

    from or_eval.analysis.tables import terminal_table

    rows = []
    for stage in stages:
        rows += [_plan_row(stage, item) for item in stage.asked] or [_plan_row(stage, None)]
    Console().print(terminal_table(pd.DataFrame(rows), "Plan (at most; tokens in + out)"))
    calls = [item for stage in stages for item in stage.asked]
    known = [item.dollars for item in calls if item.dollars is not None]
    unknown = sorted({item.model for item in calls if item.dollars is None and item.model})
    price = f", {sum(known):,.2f} dollars" if known else ""
    click.echo(f"{sum(item.calls for item in calls):,} calls{price}")
    if unknown:
        click.echo(f"Without a known price: {', '.join(unknown)} (see --model-cost-config)")


def _plan_row(stage: PlannedStage, item: PlannedCalls | None) -> dict[str, Any]:
    state = "done" if stage.done else stage.why
    row = {
        "stage": f"{stage.name} ({state})" if state else stage.name,
        "rows": f"{_short(stage.rows_in)}→{_short(stage.rows_out)}",
    }
    if item is None:
        return row
    return row | {
        "model": f"{item.role or 'target'}: {item.model or 'none bound'}",
        "calls": _short(item.calls),
        "tokens": f"{_short(item.input_tokens)}+{_short(item.output_tokens)}",
        "dollars": None if item.dollars is None else f"{item.dollars:,.2f}",
    }


def _short(count: int) -> str:
    """Write a number in four characters or so: 980, 20k, 143M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= 10 * size:
            return f"{count / size:.0f}{letter}"
        if count >= size:
            return f"{count / size:.1f}{letter}"
    return str(count)
