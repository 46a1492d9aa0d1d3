"""The ``or-eval`` command line: one module a command, loaded when it is called."""

from __future__ import annotations

import traceback
from importlib import import_module

import click
from rich.text import Text

from or_eval import __version__

# The order is that of the help page: from first steps to building data sets.
_COMMANDS = {
    "demo": "Test a small local model on the bundled prompts.",
    "tasks": "List tasks and known prompt sets, with sizes and licences.",
    "replay": "Turn responses collected elsewhere into Inspect logs.",
    "classify": "Classify stored responses as refusals or answers.",
    "label": "Collect human labels for responses or prompts.",
    "agreement": "Compare verdicts with human labels.",
    "vote": "Count which prompts models refuse.",
    "report": "Write a report: findings, figures, tables.",
    "gate": "Fail a job where a model refuses too much, or too little.",
    "snapshot": "Write down verdicts and settings, for others to rely on.",
    "leaderboard": "Make a page of many snapshots.",
    "figures": "Draw one figure, or all that logs have data for.",
    "structure": "Relate the structure of prompts to refusal.",
    "crawl": "Find what people ask on the web.",
    "build": "Build a data set by a recipe.",
    "push": "Publish a built data set on the Hugging Face Hub.",
}


class _LazyGroup(click.Group):
    """A group whose commands are imported on use, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"or_eval.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort, click.ClickException, BrokenPipeError):
            raise  # click says these itself
        except Exception as error:
            # Imported here: Inspect takes a second, and not every command needs it.
            from or_eval.inspect_private import PrerequisiteError

            if not isinstance(error, PrerequisiteError):
                raise _told_without_keys(error) from None
            raise click.ClickException(Text.from_markup(str(error.message)).plain.strip()) from None


def _told_without_keys(error: Exception) -> SystemExit:
    """Show the traceback of an error that nobody expected; its text may hold a key."""
    from or_eval.key_like import without_keys

    click.echo(without_keys("".join(traceback.format_exception(error))), err=True, nl=False)
    return SystemExit(1)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="or-eval")
def main() -> None:
    """Measure over-refusal: a model declining prompts that look harmful and aren't.

    Testing a model is Inspect's own `inspect eval or_eval/starter --model ...`; these commands do
    what comes before and after.
    """
