"""Read a task's ``-T`` options and load the prompts they ask for."""

from __future__ import annotations

from typing import Any

from or_eval.sources import DataError, LoadedPrompts, catalogue, load_prompts

_NO_TEXT = ("subset", "per_label")


def load_task_prompts(task: str, data: object, **options: object) -> LoadedPrompts:
    """Load the prompts of a task.

    Args:
        task: The task's name. If it is a catalogue entry's, that is what it loads without `data`,
            and how it reads `data` without a source.
        data: Another copy of the data: a path, a Hub id or a catalogue name.
        **options: What :func:`load_prompts` takes besides, as it came from ``-T``.

    Raises:
        DataError: An option has no meaning, or the data can't be read.
    """
    entry = task if task in catalogue() else None
    place = typed_text("data", data)
    if place is None and entry is None:
        raise DataError("data: give a catalogue name, a Hub id or a path (-T data=...)")
    given: dict[str, Any] = {
        name: value if name in _NO_TEXT else typed_text(name, value)
        for name, value in options.items()
    }
    if place is not None and place != entry:
        given["source"] = given.get("source") or entry
    return load_prompts(place or str(entry), **given)


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
