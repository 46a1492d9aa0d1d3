"""Read a task's ``-T`` options and load the prompts they ask for."""

from __future__ import annotations

from or_eval.sources import DataError, LoadedPrompts, load_prompts


def load_task_prompts(
    entry: str | None,
    data: object,
    *,
    source: object,
    label: object,
    language: object,
    category: object,
) -> LoadedPrompts:
    """Load the prompts of a task.

    Args:
        entry: The task's own catalogue entry: what it loads without `data`, and how it reads
            `data` without `source`. None for a task of no particular benchmark.
        data: Another copy of the data: a path, a Hub id or a catalogue name.
        source: Catalogue entry to read `data` by.
        label: Label of all prompts in a file of one kind.
        language: Keep prompts of this language.
        category: Keep prompts of this category.

    Raises:
        DataError: An option has no meaning, or the data can't be read.
    """
    place = typed_text("data", data) or entry
    if place is None:
        raise DataError("data: give a catalogue name, a Hub id or a path (-T data=...)")
    return load_prompts(
        place,
        source=typed_text("source", source) or (entry if place != entry else None),
        label=typed_text("label", label),
        language=typed_text("language", language),
        category=typed_text("category", category),
    )


def typed_text(option: str, value: object) -> str | None:
    """Give the text a person typed after ``-T option=``.

    Inspect reads each value as YAML and splits it at commas, so a sentence with a comma arrives
    as a list, Norwegian (``no``) as False and ``Note: be kind`` as a mapping.

    Raises:
        DataError: The text can't be told from what YAML made of it.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    if option == "language" and value is False:
        return "no"
    raise DataError(
        f"{option}: {value!r} is no text, since Inspect reads -T values as YAML; "
        f"""put double quotes inside single ones: -T {option}='"..."'"""
    )
