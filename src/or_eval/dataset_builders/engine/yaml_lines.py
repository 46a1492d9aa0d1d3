"""YAML files that people write: an error in one names the line, and the nearest right word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from or_eval.dataset_builders.errors import BuildError
from or_eval.sources.errors import shown

Place = tuple[str | int, ...]

_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class Document:
    """A YAML file that holds a mapping.

    Attributes:
        file: What it is called in errors.
        text: Its text.
        data: Its content.
        lines: The line, from 1, of each value by its place (keys and positions from the top);
            for the values of a mapping, that of the key.
        changed: Options that gave values in place of the file's, by place.
    """

    file: str
    text: str
    data: dict[str, Any]
    lines: dict[Place, int]
    changed: dict[Place, str] = field(default_factory=dict)

    def error(self, place: Place, problem: str) -> BuildError:
        """Say what is wrong at a place, or in the innermost thing around it that has a line."""
        inwards = [place[:length] for length in range(len(place), 0, -1)]
        if option := next((self.changed[part] for part in inwards if part in self.changed), ""):
            return BuildError(f"{option}: {problem}")
        line = next((self.lines[part] for part in inwards if part in self.lines), 1)
        return BuildError(f"{self.file}, line {line}: {problem}")

    def checked(
        self, model: type[_Model], data: Any, place: Place = (), besides: Sequence[str] = ()
    ) -> _Model:
        """Check a part of the content.

        Args:
            model: What it has to be.
            data: The part.
            place: Where it stands.
            besides: Keys that may stand beside the model's own.

        Raises:
            BuildError: It isn't so.
        """
        try:
            return model.model_validate(data)
        except ValidationError as error:
            # A key written wrongly is missing as well; say the former.
            first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
            where = (*place, *first["loc"])
            raise self.error(where, _problem(model, first, besides)) from error


def read_yaml(path: Path, what: str) -> Document:
    """Read a YAML file.

    Args:
        path: The file.
        what: What its mapping has to be.

    Raises:
        BuildError: It can't be read, is no YAML or no mapping, names a key twice, or is nested
            without end.
    """
    lines: dict[Place, int] = {}
    try:
        text = path.read_text("utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None:
            _collect(root, (), lines)
        data = yaml.safe_load(text)
    except OSError as error:
        raise BuildError(f"{path}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BuildError(f"{path}: isn't UTF-8 text ({error.reason})") from error
    except RecursionError as error:
        raise BuildError(f"{path}: is nested too deeply, or within itself") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise BuildError(f"{path.name}, line {line}: {error.problem or error}") from error
    except yaml.YAMLError as error:
        raise BuildError(f"{path}: isn't YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise BuildError(f"{path.name}, line 1: {what}")
    return Document(path.name, text, data, lines)


def unknown_word(what: str, word: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    """Say that a word is none of those known, and which of them is the nearest."""
    if not known:
        return f"there is no {what} '{word}' here"
    near = get_close_matches(word, list(known), n=1, cutoff=0.5)
    hint = f"the nearest is '{near[0]}'" if near else f"there are: {', '.join(known)}"
    return f"there is no {what} '{word}' ({hint})"


def _problem(model: type[BaseModel], error: Any, besides: Sequence[str]) -> str:
    named = ".".join(map(str, error["loc"]))
    match error["type"]:
        case "extra_forbidden":
            *outer, key = error["loc"]
            return unknown_word("key", str(key), _keys(model, outer, besides))
        case "missing":
            return f"the key '{named}' is missing"
        case "value_error":  # said by a check of ours
            message = error["msg"].removeprefix("Value error, ")
            return f"'{named}': {message}" if named else message
        case _:
            return f"'{named}': {error['msg']}, not {shown(error['input'])}"


def _keys(model: Any, outer: Sequence[Any], besides: Sequence[str]) -> list[str]:
    """Give the keys that fit beside a wrong one; none where no model tells them."""
    for step in outer:
        told = getattr(model, "model_fields", {}).get(step)
        if told is not None:  # not a position in a list, or a user's name for one of several
            kinds = (told.annotation, *get_args(told.annotation))
            model = next((kind for kind in kinds if hasattr(kind, "model_fields")), None)
    fields = getattr(model, "model_fields", {}).items()
    return [*(told.alias or name for name, told in fields), *(() if outer else besides)]


def _collect(node: yaml.Node, place: Place, lines: dict[Place, int]) -> None:
    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*place, str(key.value))
            if inner in lines:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key.value}' appears twice here", key.start_mark
                )
            lines[inner] = key.start_mark.line + 1
            _collect(value, inner, lines)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            _collect(value, (*place, number), lines)
