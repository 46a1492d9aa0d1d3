"""``or-eval replay``: turn responses collected elsewhere into Inspect logs."""

from __future__ import annotations

import click


@click.command("replay")
@click.argument("file", metavar="FILE")
@click.option(
    "--log-dir",
    envvar="INSPECT_LOG_DIR",
    default="logs",
    show_default=True,
    help="Folder for the logs, one per model in FILE.",
)
@click.option("--model", metavar="NAME", help="The model's name, for a FILE with no model column.")
@click.option(
    "--prompts",
    metavar="DATA",
    help="Take the prompts, with their labels and categories, from a catalogue name, a Hub id or "
    "a path, and join FILE to them by the text.  [default: the prompts in FILE]",
)
@click.option("--source", metavar="ENTRY", help="Catalogue entry to read --prompts by.")
@click.option(
    "--label",
    metavar="LABEL",
    help="Label of all prompts, safe or toxic, where neither FILE nor --prompts tells it; or what "
    "the words in FILE's column of labels mean, as 0=safe,1=toxic.",
)
@click.option("--prompt-column", metavar="NAME")
@click.option("--response-column", metavar="NAME")
@click.option(
    "--response-columns",
    metavar="NAMES",
    help="Columns with the responses of a model each, with commas between them.  [default: those "
    "called after a model and a response, as llama_response]",
)
@click.option("--model-column", metavar="NAME")
@click.option("--label-column", metavar="NAME", help="Whether the prompt is safe or toxic.")
@click.option("--category-column", metavar="NAME")
@click.option("--id-column", metavar="NAME", help="The publisher's id of the prompt.")
@click.option("--language-column", metavar="NAME")
@click.option(
    "--score/--no-score",
    default=True,
    show_default=True,
    help="Class the responses by rules as they are logged.",
)
@click.option("--overwrite", is_flag=True, help="Replace the models' earlier logs in the folder.")
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
    (messages) holds prompts with what came before, and the responses where no column does.
    Columns are found by their names (prompt, response, model, label, category, id, language) or
    named by option; `none` says that FILE has no such column. Several responses of a model to one
    prompt become epochs, in the order of FILE; a prompt with no response becomes a failed sample.

    \b
    Responses with all there is to know beside them:
      or-eval replay responses.jsonl.gz --log-dir logs/replay
    Labels and categories from a public set:
      or-eval replay responses.csv --prompts xstest.csv --source xstest
    Prompts that are all harmless, with nothing that says so:
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
        scored=score,
        overwrite=overwrite,
    ):
        click.echo(line)
