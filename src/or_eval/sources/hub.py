"""Read a data set from the Hugging Face Hub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import starmap
from typing import TYPE_CHECKING

from or_eval.sources.catalogue import HubPlace
from or_eval.sources.errors import DataError
from or_eval.sources.tables import Row, Table, table_of

if TYPE_CHECKING:
    from datasets import Dataset

_BATCH = 2_000
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

    name = ":".join(part for part in (place.id, place.config) if part)
    try:
        builder = load_dataset_builder(place.id, place.config, revision=place.revision)
        builder.download_and_prepare()
        rows = _HubRows(builder.as_dataset(place.split))
    except Exception as error:
        # The client raises errors of five libraries; whichever it is, the user can do the same.
        raise DataError(f"{name} on the Hub: {_problem(place, error)}") from error
    if len(rows) < 2:
        numbered = ((row.number, row.cells) for row in rows)
        return table_of(name, place.id, "row", numbered, builder.hash)
    return Table(name, place.id, "row", rows.columns, rows, builder.hash)


class _HubRows:
    """The rows of a split, read from the client's copy each time that they are gone through."""

    def __init__(self, split: Dataset) -> None:
        self._split = split
        self.columns = tuple(split.column_names)

    def __len__(self) -> int:
        return len(self._split)

    def __iter__(self) -> Iterator[Row]:
        batches = self._split.with_format("arrow").iter(_BATCH)
        cells = (cells for batch in batches for cells in batch.to_pylist())
        return starmap(Row, enumerate(cells, start=1))


def _problem(place: HubPlace, error: Exception) -> str:
    from datasets.exceptions import DatasetNotFoundError

    said = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
    copy = "or give a copy with -T data=PATH"
    if isinstance(error, DatasetNotFoundError):
        if "gated" in said.casefold():
            page = f"https://huggingface.co/datasets/{place.id}"
            return f"access is given on request; ask at {page}, run `hf auth login`, {copy}"
        return f"{said}; check the name, run `hf auth login` if it is private, {copy}"
    if isinstance(error, ConnectionError):
        return f"can't be reached ({said}); check the network, {copy}"
    if isinstance(error, ValueError):
        return f"{said}; name configuration and split: -T data={place.id}:CONFIG:SPLIT"
    return f"can't be read ({said}); {copy}"
