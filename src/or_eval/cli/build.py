"""``or-eval build``: make a data set by a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from or_eval.cli.broken_pipe import written_to_nobody_too
from or_eval.cli.build_tables import print_funnel, print_plan, print_preview

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
    help="Model for every role without one, unless the recipe names one.",
)
@click.option(
    "--model-role",
    "roles",
    multiple=True,
    metavar="ROLE=MODEL",
    help="Model of a role (writer, moderator, grader), in Inspect's syntax; moderator=[a,b,c] is a "
    "panel, 'writer={model: a, temperature: 0.9}' sets options.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Start from at most this many seeds.")
@click.option("--only", metavar="STAGE", help="Run this stage again, and no other.")
@click.option("--from", "start", metavar="STAGE", help="Run this stage again, and all after it.")
@click.option(
    "--retry-failed",
    is_flag=True,
    help="Retry requests that providers rejected for reasons other than content.",
)
@click.option(
    "--preview",
    type=click.IntRange(min=1),
    metavar="N",
    help="Carry N seeds through the whole recipe, in a separate folder, and show the rows of each "
    "stage.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show the plan and its approximate cost, without running it."
)
@click.option(
    "--model-cost-config",
    type=click.Path(path_type=Path),
    help="Inspect's price file, for models whose price is unknown or differs for you.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    metavar="DOLLARS",
    help="Stop near this sum, over all runs of the build, and resumably: no call goes out that "
    "might exceed it.",
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
    help="Keep replies in Inspect's cache, shared by all builds, instead of the build's own.",
)
@click.option("--max-connections", type=click.IntRange(min=1), help="Concurrent calls to a model.")
@click.option("--max-retries", type=click.IntRange(min=0), help="Retries of a call.")
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    help="Seconds until a call without an answer fails (300).",
)
@click.option(
    "--engine",
    type=click.Choice(["here", "ray"]),
    default="here",
    help="Where stages run: in this process, or on Ray workers (of the cluster that RAY_ADDRESS "
    "names, or else on this machine).",
)
@click.option("--display", type=click.Choice(["full", "rich", "plain", "log", "none"]))
@click.option("--list", "listed", is_flag=True, help="List the available recipes and stages.")
@click.option("--show", metavar="RECIPE", help="Print a recipe, as a start for your own.")
def build(
    recipe: str | None,
    out: Path | None,
    changes: tuple[str, ...],
    model: str | None,
    roles: tuple[str, ...],
    limit: int | None,
    only: str | None,
    start: str | None,
    retry_failed: bool,
    preview: int | None,
    dry_run: bool,
    model_cost_config: Path | None,
    max_cost: float | None,
    batch: str | None,
    shared_cache: bool,
    listed: bool,
    show: str | None,
    display: str | None,
    engine: Literal["here", "ray"],
    **settings: int | None,
) -> None:
    """Build the data set that RECIPE describes: a bundled recipe's name, or a YAML file.

    Every model call is an Inspect call, and its log is kept. Finished work is never repeated: run
    the same command to resume, and a changed recipe runs again from the first changed stage.

    \b
    What is available, and what it would cost:
      or-eval build --list
      or-eval build or_bench --out or-bench --dry-run --model openai/gpt-5-mini
    A small one, to try:
      or-eval build or_bench --out try --set seeds.per_category=2 --set rewrite.count=2 \\
        --set test_refusal.models='[openai/gpt-5-mini]' --set hard.min_refusals=1 \\
        --model openai/gpt-5-mini
    Other models for writing and for moderating:
      or-eval build lto --out lto --model-role writer=openai/gpt-5 \\
        --model-role 'moderator=[openai/gpt-5-mini,google/gemini-3-flash,anthropic/claude-haiku-5]'
    """
    from or_eval.dataset_builders.engine.dry_run import planned
    from or_eval.dataset_builders.engine.models import Asking
    from or_eval.dataset_builders.engine.prices import read_prices
    from or_eval.dataset_builders.engine.readiness import (
        check_answering,
        check_models,
        check_ready,
        judges_itself,
    )
    from or_eval.dataset_builders.engine.recipe import load_recipe
    from or_eval.dataset_builders.engine.run import PREVIEW, Build, Selection
    from or_eval.dataset_builders.errors import BuildError
    from or_eval.key_like import without_keys

    if listed:
        _list()
        return
    if show is not None:
        click.echo(load_recipe(show).shown, nl=False)
        return
    if recipe is None:
        raise click.UsageError("name a RECIPE, or see --list")
    if (only is not None) + (start is not None) + (preview is not None) + retry_failed > 1:
        raise click.UsageError("--only, --from, --preview and --retry-failed can't be combined")
    loaded = load_recipe(recipe, changes)

    def say(line: str) -> None:
        click.echo(without_keys(line))

    if out is None and not dry_run:
        raise click.UsageError("give --out FOLDER, where to build")
    config: dict[str, Any] = {key: value for key, value in settings.items() if value is not None}
    if batch is not None:
        config["batch"] = _batch(batch)
    asking = Asking(
        model,
        roles,
        shared_cache,
        config,
        display=display,
        prices=read_prices(model_cost_config) if model_cost_config else {},
        max_cost=max_cost,
    )
    job = Build(loaded, out or Path(loaded.name), asking, limit, engine, say=say)
    if dry_run:
        job.check_folder()
        print_plan(planned(job))
        check_ready(job)
        check_models(job)
        return
    if preview is not None:
        job.check_folder()
        # What it asks, the build itself won't ask again.
        folder = job.out / PREVIEW
        job = Build(loaded, folder, asking, preview, engine, say=say, replies=job.out)
    check_ready(job)
    if (model := judges_itself(job)) is not None:
        click.echo(
            f"Warning: {model} writes the prompts, judges them, and is tested on them: it will "
            "hardly refuse what it writes, or find it harmful",
            err=True,
        )
    with written_to_nobody_too():
        try:
            check_answering(job)
            facts = job.run(Selection(only, start, retry_failed))
        except KeyboardInterrupt:
            click.echo(
                "Interrupted. What is done is kept: run the same command to resume.", err=True
            )
            raise SystemExit(_INTERRUPTED) from None
        except BuildError:
            if preview is not None:
                print_preview(job.done.values())
            raise
        if preview is not None:
            print_preview(job.done.values())
        print_funnel(facts)
        click.echo(f"Build: {job.out}")


def _batch(text: str) -> bool | int:
    if text == "true":
        return True
    try:
        return int(text)
    except ValueError:
        raise click.BadParameter(f"'{text}' isn't a number", param_hint="--batch") from None


def _list() -> None:
    from or_eval.dataset_builders.engine.recipe import load_recipe, recipe_names
    from or_eval.dataset_builders.stages import stage_kinds

    for name in recipe_names():
        click.echo(f"{name:16} {load_recipe(name).description}")
    click.echo(f"Stages: {', '.join(stage_kinds())}")
