"""The catalogue of public prompt sets (``catalogue.toml``), checked when it is loaded."""

from __future__ import annotations

import difflib
import tomllib
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from or_eval.sources.layout import Layout


class HubPlace(BaseModel):
    """Where a set lies on the Hugging Face Hub.

    Attributes:
        id: ``owner/name``.
        config: Configuration; None: the data set's default.
        split: Split.
        revision: Commit that the catalogue was checked against; None: the newest.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    config: str | None = None
    split: str = "train"
    revision: str | None = None


class Entry(BaseModel):
    """A public prompt set: what it is, where it lies, how to read it.

    Attributes:
        name: What users call it by.
        title: Its publisher's name for it.
        about: What it holds, in a sentence.
        prompts: How many prompts it gives, where that is known.
        url: Its publisher's page.
        licence: Licence of the data, or "not stated".
        citation: Authors, year and paper.
        hub: Its place on the Hub, where it has one that anybody can read.
        bundled: Name of the file in or-eval's own ``data`` folder, where it is ours.
        same_file_as: The entry whose file this one reads in another way. A file is never taken for
            this one by its columns.
        note: What its users should know.
        warning: What whoever reads it is told each time, in a line.
        header: Names of the columns of its files, where those have no header.
        layout_from: What the layout was written from; None: the publisher's own file.
        languages: Languages of its prompts, where the layout doesn't tell them.
        layout: Which columns hold what.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    title: str
    about: str
    prompts: int | None = None
    url: str | None = None
    licence: str
    citation: str
    hub: HubPlace | None = None
    bundled: str | None = None
    same_file_as: str | None = None
    note: str | None = None
    warning: str | None = None
    header: tuple[str, ...] = ()
    layout_from: str | None = None
    languages: tuple[str, ...] = ()
    layout: Layout

    @property
    def unseen(self) -> str:
        """What to tell those whose file lacks a column, where the layout may be at fault."""
        if self.layout_from is None or "no file was seen" not in self.layout_from:
            return ""
        return (
            f"; they were written from {self.layout_from}: if the file is right, name its columns "
            "with prompt_column= and label_column= instead"
        )

    @property
    def all_languages(self) -> list[str]:
        """The languages of its prompts, as far as they are known."""
        return list(self.languages) or self.layout.languages


@cache
def catalogue() -> dict[str, Entry]:
    """Give all entries by name.

    Raises:
        pydantic.ValidationError: ``catalogue.toml`` has an unknown or missing field.
    """
    text = (files("or_eval.sources") / "catalogue.toml").read_text("utf-8")
    return {
        name: Entry.model_validate({"name": name, **fields})
        for name, fields in tomllib.loads(text).items()
    }


def catalogue_entry(name: str) -> Entry:
    """Give the entry of a name.

    Raises:
        DataError: There is none; the line names the nearest.
    """
    entries = catalogue()
    if name in entries:
        return entries[name]
    # Imported here: it loads Inspect, which the list of sets doesn't need.
    from or_eval.sources.errors import DataError, shown

    near = difflib.get_close_matches(name.casefold().replace("-", "_"), entries, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(entries)}"
    raise DataError(f"{shown(name)} is no catalogue entry; {hint}")
