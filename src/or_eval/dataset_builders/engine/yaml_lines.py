"""Reading YAML with the line on which each value stands, so that an error can name it."""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

Place = tuple[str | int, ...]


class Document(NamedTuple):
    """A YAML document.

    Attributes:
        data: Its content.
        lines: The line, from 1, of each value by its place (keys and positions from the top);
            for the values of a mapping, that of the key.
    """

    data: Any
    lines: dict[Place, int]

    def line(self, place: Place) -> int:
        """Give the line of a place, or of the innermost thing around it that has one."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read_yaml(text: str) -> Document:
    """Read a YAML document.

    Raises:
        yaml.YAMLError: It is no YAML, names a key twice, or is nested without end.
    """
    lines: dict[Place, int] = {}
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None:
            _collect(root, (), lines)
        return Document(yaml.safe_load(text), lines)
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply, or within itself") from None


def _collect(node: yaml.Node, place: Place, lines: dict[Place, int]) -> None:
    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*place, str(key.value))
            if inner in lines:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key.value}' stands here twice", key.start_mark
                )
            lines[inner] = key.start_mark.line + 1
            _collect(value, inner, lines)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            _collect(value, (*place, number), lines)
