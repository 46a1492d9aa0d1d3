"""Prompts set into contexts: who asks, what for, in which language, under which system prompt."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser

from or_eval.schema import PLAIN
from or_eval.solvers.system_prompt import existing_file
from or_eval.sources import DataError

ALL = "all"
SLOT = "{prompt}"


class Framing(NamedTuple):
    """A context that prompts are set into.

    Attributes:
        name: Its name in logs and reports.
        kind: What it varies, as ``profession``.
        prompt: What is asked, with ``{prompt}`` where the prompt goes.
        system: System prompt, or None.
        language: BCP-47 tag of its own words, or None.
    """

    name: str
    kind: str = ""
    prompt: str = SLOT
    system: str | None = None
    language: str | None = None


_KEYS = sorted({*Framing._fields} - {"name"})


def read_framings(framing: str) -> list[Framing]:
    """Read what ``-T framing=`` asks for; the prompt as it is comes first.

    Args:
        framing: ``none``, ``all``, names or kinds of bundled framings joined by commas, or the
            path of a TOML file of one's own, which is used whole.

    Returns:
        The framings; none for ``none``.

    Raises:
        DataError: A name is unknown, or the file can't be read as framings.
    """
    if framing == PLAIN:
        return []
    path = existing_file(framing)
    return [Framing(PLAIN), *(_bundled(framing) if path is None else _read(path, str(path)))]


def _bundled(wanted: str) -> list[Framing]:
    known = _read(files("or_eval") / "data" / "framings.toml", "framings.toml")
    if wanted == ALL:
        return known
    names = [name.strip() for name in wanted.split(",") if name.strip() != PLAIN]
    there = {name for framing in known for name in (framing.name, framing.kind)}
    if unknown := [name for name in names if name not in there]:
        kinds = "; ".join(
            f"{kind} ({', '.join(f.name for f in known if f.kind == kind)})"
            for kind in dict.fromkeys(f.kind for f in known)
        )
        raise DataError(
            f"framing: '{unknown[0]}' isn't a framing, a kind of framing or a file; give "
            f"{ALL}, {PLAIN}, the path of a TOML file, or some of: {kinds}"
        )
    return [framing for framing in known if {framing.name, framing.kind} & {*names}]


def _read(file: Traversable, place: str) -> list[Framing]:
    try:
        tables = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"framing: can't read '{place}': {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"framing: '{place}' isn't TOML: {error}") from error
    if not tables:
        raise DataError(f"framing: '{place}' has no framings; see docs/framing.md for the form")
    return [_framing(name, table, place) for name, table in tables.items()]


def _framing(name: str, table: object, place: str) -> Framing:
    where = f"framing: '{place}', [{name}]"
    if name in (PLAIN, ALL) or not name.replace("_", "").replace("-", "").isalnum():
        raise DataError(
            f"{where}: a name has letters, digits, - and _ only, and is neither {PLAIN} nor {ALL}"
        )
    if not isinstance(table, dict) or not ({"prompt", "system"} & table.keys()):
        raise DataError(f'{where}: needs prompt = "... {SLOT} ..." or system = "..."')
    for key, value in table.items():
        if key not in _KEYS:
            raise DataError(f"{where}: '{key}' is none of {', '.join(_KEYS)}")
        if not isinstance(value, str) or not value.strip():
            raise DataError(f"{where}: {key} must be text")
    framing = Framing(name, **table)
    if framing.prompt.count(SLOT) != 1:
        raise DataError(f"{where}: prompt must contain {SLOT} once, where the prompt goes")
    return framing


def framed(samples: Iterable[Sample], framings: list[Framing]) -> list[Sample]:
    """Give every sample under every framing, those of one prompt side by side.

    A prompt as it is keeps its id; under a framing it is ``ID@FRAMING``, and its ``seed_id`` that
    of the prompt, so that all of them count as one family.
    """
    return [_under(framing, sample) for sample in samples for framing in framings]


def _under(framing: Framing, sample: Sample) -> Sample:
    metadata = {**(sample.metadata or {}), "framing": framing.name}
    if framing.name == PLAIN:
        return sample.model_copy(update={"metadata": metadata})
    metadata["seed_id"] = metadata.get("seed_id") or sample.id
    return sample.model_copy(
        update={
            "id": f"{sample.id}@{framing.name}",
            "input": _framed_input(framing, sample.input),
            "metadata": metadata,
        }
    )


def _framed_input(framing: Framing, asked: str | list[ChatMessage]) -> str | list[ChatMessage]:
    """Set what the user says last into the context."""
    if isinstance(asked, str) and framing.system is None:
        return framing.prompt.replace(SLOT, asked)
    said: list[ChatMessage] = (
        [ChatMessageUser(content=asked)] if isinstance(asked, str) else [*asked]
    )
    last = max(n for n, message in enumerate(said) if message.role == "user")
    text = framing.prompt.replace(SLOT, said[last].text)
    said[last] = said[last].model_copy(update={"content": text})
    return said if framing.system is None else [ChatMessageSystem(content=framing.system), *said]
