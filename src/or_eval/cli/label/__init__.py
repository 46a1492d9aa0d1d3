"""``or-eval label``: what people think of responses and of prompts, asked and brought back."""

from __future__ import annotations

import click

from or_eval.cli.label.answers import adjudicate, import_, status
from or_eval.cli.label.export import export
from or_eval.cli.label.start import start


@click.group("label")
def label() -> None:
    """Collect human labels, in Label Studio or in spreadsheets.

    \b
      or-eval label export logs --out labels --size 400 --annotator ana --annotator bo
      or-eval label start labels        # or fill in labels/ana.xlsx and labels/bo.xlsx
      or-eval label import labels       # from Label Studio, or else the sheets in labels
      or-eval label status labels
      or-eval report logs --labels labels/labels.jsonl
    """


for command in (export, start, import_, status, adjudicate):
    label.add_command(command)
