"""Where files lay on the machine that a set was built on: nobody else's business."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from or_eval.dataset_builders.panel.moderators import numbered
from or_eval.schema import PromptRecord

_WHOLE_PATH = re.compile(r"\s*(?:~|[A-Za-z]:[\\/]|/|\\\\|file:)", re.IGNORECASE)
# A model that is a file: gguf//home/me/model.gguf
_MODEL_PATH = re.compile(r"([\w.-]+(?:/[\w.-]+)*/)(?:/|~|[A-Za-z]:[\\/]).*", re.DOTALL)
_PATH_WITHIN = re.compile(r"(?<![\w/:.~+-])(?:~|[A-Za-z]:)?[/\\](?:[\w.@+-]+[/\\])+")
# Nothing but a path with a folder in it, such as a model's.
_PATH_ALONE = re.compile(
    r"(?:[\w.-]+(?:/[\w.-]+)*/)?(?:~[/\\]|(?:file:/*|[A-Za-z]:)?[/\\]+[^/\\\n]+[/\\])[^\n]+"
)
_HOME = re.compile(r"(?i)(?:/home/|/Users/|[A-Z]:[\\/]Users[\\/])[\w.-]+|/root/\S")


def without_folders(value: Any) -> Any:
    """Leave out where files lay on the machine that a set was built on.

    Args:
        value: A text, or lists and mappings of such; a file's own name stays.
    """
    if isinstance(value, dict):
        return {without_folders(key): without_folders(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_folders(item) for item in value]
    if not isinstance(value, str):
        return value
    if _WHOLE_PATH.match(value) and "\n" not in value.strip():
        return _last(value)
    if "://" not in value and (model := _MODEL_PATH.fullmatch(value)):
        return model.group(1) + _last(value)
    return _PATH_WITHIN.sub("", value)


def _last(path: str) -> str:
    return PureWindowsPath(PurePosixPath(path.strip()).name).name


def published(row: PromptRecord, answers: Collection[str] = ()) -> PromptRecord:
    """Give a row whose facts name files without their folders; its prompt stays as it is.

    Args:
        row: The row.
        answers: Names of the facts that are left out, since they are answers to the prompt.
    """
    facts = {key: value for key, value in row.meta.items() if key not in answers}
    return replace(row, source=without_folders(row.source), meta=_public(facts, row.prompt))


def local_path(meta: Any, prompt: str) -> str | None:
    """Find a path among the facts of a row that isn't in its prompt; None where there is none."""
    return next((text for text in _texts(meta) if _is_local(text, prompt)), None)


def names_a_home(text: str) -> bool:
    """Tell whether a text names somebody's home folder."""
    return _HOME.search(text) is not None


def _public(value: Any, prompt: str) -> Any:
    if isinstance(value, dict):
        # Two files of one name in two folders are still two.
        names = numbered(_public(key, prompt) for key in value)
        return dict(zip(names, (_public(item, prompt) for item in value.values()), strict=True))
    if isinstance(value, list):
        return [_public(item, prompt) for item in value]
    if isinstance(value, str) and _is_local(value, prompt):
        return without_folders(value)
    return value


def _is_local(text: str, prompt: str) -> bool:
    return _PATH_ALONE.fullmatch(text) is not None and text not in prompt


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value
