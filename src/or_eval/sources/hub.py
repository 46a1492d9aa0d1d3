"""Read a data set from the Hugging Face Hub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING

from or_eval.sources.catalogue import HubPlace
from or_eval.sources.errors import DataError
from or_eval.sources.tables import Row, Table, table_of

if TYPE_CHECKING:
    from datasets import Dataset

_BATCH = 2_000
# Seconds; whoever has a slower answer from the Hub can't load data sets from it either.
_PATIENCE = 5
_COPY = "or give a copy with -T data=PATH"
_NAME = r"[\w.-]+"
_HUB_ID = re.compile(rf"(?P<id>{_NAME}/{_NAME})(?::(?P<config>{_NAME})?)?(?::(?P<split>{_NAME}))?")


def hub_place(data: str) -> HubPlace | None:
    """Read ``owner/name``, ``owner/name:config`` or ``owner/name:config:split``.

    The split is ``train`` where none is given; ``owner/name::split`` gives a split of the
    default configuration.

    Returns:
        The place, or None where `data` is not of this form.
    """
    match = _HUB_ID.fullmatch(data)
    if match is None:
        return None
    return HubPlace.model_validate({k: v for k, v in match.groupdict().items() if v is not None})


def read_hub(place: HubPlace) -> Table:
    """Download a split (or take it from the Hub client's cache).

    Raises:
        DataError: The Hub can't be reached, or has no such data set, configuration or split, or
            doesn't let the user have it.
    """
    from datasets import load_dataset_builder
    from huggingface_hub import constants

    name = ":".join(part for part in (place.id, place.config) if part)
    offline = constants.HF_HUB_OFFLINE
    reached = not offline and _reached(constants.ENDPOINT)
    # Where the Hub can't be reached the client tries for minutes: it is to go by what it keeps.
    constants.HF_HUB_OFFLINE = not reached
    try:
        builder = load_dataset_builder(place.id, place.config, revision=place.revision)
        builder.download_and_prepare()
        rows = _HubRows(name, builder.as_dataset(place.split))
    except Exception as error:
        # The client raises errors of five libraries; whichever it is, the user can do the same.
        problem = _problem(place, error) if reached else _unreachable(error)
        raise DataError(f"{name} on the Hub: {problem}") from error
    finally:
        constants.HF_HUB_OFFLINE = offline
    return table_of(name, place.id, rows, builder.hash, rows.split.column_names)


def _reached(endpoint: str) -> bool:
    from huggingface_hub import get_session

    try:
        get_session().head(endpoint, timeout=_PATIENCE)
    except Exception:  # of whichever library the client speaks HTTP with
        return False
    return True


@dataclass(frozen=True)
class _HubRows:
    """The rows of a split, read from the client's copy each time that they are gone through."""

    name: str
    split: Dataset

    def __iter__(self) -> Iterator[Row]:
        batches = self.split.with_format("arrow").iter(_BATCH)
        cells = (cells for batch in batches for cells in batch.to_pylist())
        return starmap(partial(Row, self.name, "row"), enumerate(cells, start=1))


def _unreachable(error: Exception) -> str:
    return f"can't be reached ({_said(error)}); check the network, {_COPY}"


def _problem(place: HubPlace, error: Exception) -> str:
    from datasets.exceptions import DatasetNotFoundError

    said = _said(error)
    if isinstance(error, DatasetNotFoundError):
        if "gated" in said.casefold():
            page = f"https://huggingface.co/datasets/{place.id}"
            return f"access is given on request; ask at {page}, run `hf auth login`, {_COPY}"
        return f"{said}; check the name, run `hf auth login` if it is private, {_COPY}"
    if isinstance(error, ConnectionError):
        return _unreachable(error)
    if isinstance(error, ValueError):
        return f"{said}; name configuration and split: -T data={place.id}:CONFIG:SPLIT"
    return f"can't be read ({said}); {_COPY}"


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
