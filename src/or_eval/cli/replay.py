"""``or-eval replay``: turn responses collected elsewhere into Inspect logs."""

from __future__ import annotations

import click

from or_eval.cli.options import column_options, options


@click.command("replay")
@click.argument("file", metavar="FILE")
@options("replay")
def replay(
    file: str,
    log_dir: str,
    model: str | None,
    prompts: str | None,
    source: str | None,
    label: str | None,
    score: bool,
    overwrite: bool,
    **columns: str | None,
) -> None:
    """Turn the responses stored in FILE into Inspect logs, one per model; no model is called.

    FILE is csv, tsv, jsonl or json (each also .gz), xlsx or parquet, with a row for each response,
    or a row for each prompt and a column for each model's responses. A column of dialogues
    (messages) gives the prompts with earlier turns, and the responses where no column does.
    Columns are found by their names (prompt, response, model, label, category, id, language) or
    named by option; `none` says that FILE has no such column. Several responses of a model to one
    prompt become epochs, in the order of FILE; a prompt with no response becomes a failed sample.

    \b
    Responses with everything in the file:
      or-eval replay responses.jsonl.gz --log-dir logs/replay
    Labels and categories from a public set:
      or-eval replay responses.csv --prompts xstest.csv --source xstest
    Safe prompts only, in a file without labels:
      or-eval replay responses.csv --label safe
    A column for each model:
      or-eval replay table.csv --response-columns llama3,qwen3
    One model, under other column names:
      or-eval replay out.parquet --model my-model --response-column text
    """
    # Imported here: it brings Inspect, which --help can do without.
    from or_eval.tasks.replaying import replay_file

    named = {name: column for name, column in columns.items() if column is not None}
    for line in replay_file(
        file,
        log_dir,
        model=model,
        data=prompts,
        source=source,
        label=label,
        columns=named,
        options=column_options("replay"),
        scored=score,
        overwrite=overwrite,
    ):
        click.echo(line)
