"""What several of the commands take and check."""

from __future__ import annotations

from pathlib import Path

import click

_LONGEST_NAME = 60
EXISTING_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


def check_names(annotators: tuple[str, ...]) -> None:
    """Take annotators' names that are names of files anywhere.

    Raises:
        click.UsageError: One isn't, or one is there twice.
    """
    folded = [name.casefold() for name in annotators]
    for name in annotators:
        letters = name.replace("-", "").replace("_", "")
        fits = letters.isalnum() and name[0].isalnum() and len(name) <= _LONGEST_NAME
        if not fits or folded.count(name.casefold()) > 1:
            from or_eval.sources.errors import shown

            raise click.UsageError(
                f"--annotator {shown(name)}: give each a name of its own, of letters, digits, - "
                f"and _, {_LONGEST_NAME} at most, with a letter or digit first"
            )
