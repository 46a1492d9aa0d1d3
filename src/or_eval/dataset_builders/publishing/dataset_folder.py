"""A published data set on disk: the card, and one Parquet file for each configuration."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import yaml

from or_eval.dataset_builders.engine.funnel import FUNNEL, RECIPE_COPY
from or_eval.dataset_builders.engine.rows import RowWriter
from or_eval.dataset_builders.errors import BuildError
from or_eval.schema import PromptRecord

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "dataset"
"""Name of the folder in a build's folder."""
CARD = "README.md"
SPLIT = "train"
"""The only split of each configuration; it is the one that is loaded by default."""


SNAPSHOT_TAG = "or-eval-snapshot"
"""Tag of a data set that holds verdicts (:mod:`or_eval.analysis.snapshots`), not prompts."""


class DatasetFolder(NamedTuple):
    """A folder that may be published.

    Attributes:
        path: The folder.
        card: Text of its card.
        header: The card's YAML header.
        configurations: Path of the one data file of each configuration, relative to the folder;
            None where the header doesn't say it as :class:`DatasetWriter` would.
        files: All files to publish, relative to the folder.
    """

    path: Path
    card: str
    header: dict[str, Any]
    configurations: dict[str, str | None]
    files: list[str]

    @property
    def is_snapshot(self) -> bool:
        """Whether it holds verdicts, not prompts."""
        return SNAPSHOT_TAG in tags_of(self.header)

    def table(self, configuration: str) -> pa.Table:
        """Read the rows of a configuration."""
        import pyarrow.parquet as pq

        # Not read_table: it would take the folder's name for a column of partitions.
        return pq.ParquetFile(self.path / str(self.configurations[configuration])).read()


def data_file(configuration: str) -> str:
    """Give the path of a configuration's data file, relative to the folder."""
    return f"{configuration}/{SPLIT}.parquet"


class DatasetWriter:
    """Writes the folder ``dataset`` of a build; the same rows and card give the same bytes.

    It is written beside its place, and moved there when it is whole; an earlier one is replaced.
    Left without :meth:`finish`, it changes nothing.

    Args:
        out: Folder of the build.
    """

    def __init__(self, out: Path) -> None:
        self._new, self._old = out / f".{FOLDER}.new", out / f".{FOLDER}.old"
        self.place = out / FOLDER
        self._files: dict[str, RowWriter] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for rest in (self._new, self._old):
            shutil.rmtree(rest, ignore_errors=True)
        self._new.mkdir(parents=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._stack.close()
        shutil.rmtree(self._new, ignore_errors=True)
        if isinstance(error, OSError):
            said = error.strerror or error
            raise BuildError(f"{self.place}: can't be written ({said})") from error

    def add(self, configuration: str, row: PromptRecord) -> None:
        """Write a row of a configuration."""
        if configuration not in self._files:
            writer = RowWriter(self._new / data_file(configuration))
            self._files[configuration] = self._stack.enter_context(writer)
        self._files[configuration].append(row)

    def finish(self, card: str) -> Path:
        """Write the card, and put the folder in its place."""
        self._stack.close()
        (self._new / CARD).write_text(card, encoding="utf-8", newline="\n")
        with suppress(FileNotFoundError):
            self.place.rename(self._old)
        self._new.rename(self.place)
        shutil.rmtree(self._old, ignore_errors=True)
        return self.place


def read_dataset(folder: Path) -> DatasetFolder:
    """Read the card of a build's folder, or of a folder such as :class:`DatasetWriter` writes.

    Raises:
        BuildError: There is no data set, or its card can't be read.
    """
    path = folder / FOLDER if (folder / FOLDER / CARD).is_file() else folder
    if path != folder and not _published_last(folder):
        raise BuildError(
            f"{folder}: the last build here did not come to its end, so {FOLDER}/ is that of an "
            f"earlier one; build again, or push {path} as it is"
        )
    if not (path / CARD).is_file():
        raise BuildError(
            f"{folder}: contains no built data set (no {FOLDER}/{CARD} and no {CARD}); "
            "`or-eval build RECIPE --out DIR` makes one"
        )
    try:
        card = (path / CARD).read_text("utf-8")
        return DatasetFolder(path, card, header := card_header(path / CARD),
                             configurations_of(header), sorted(_files(path)))  # fmt: skip
    except UnicodeDecodeError as error:
        raise BuildError(f"{path / CARD}: isn't UTF-8 text ({error.reason})") from error
    except OSError as error:
        raise BuildError(f"{path}: can't be read ({error.strerror})") from error
    except ValueError as error:
        raise BuildError(f"{path / CARD}: {error}") from error


def build_of(folder: Path) -> Path | None:
    """Give the folder of the build that a data set lies in; None where it lies in none."""
    around = folder.resolve()
    found = (place for place in (around, around.parent) if (place / RECIPE_COPY).is_file())
    return next(found, None)


def _published_last(build: Path) -> bool:
    """Whether a build's last run got as far as publishing; a run begins by removing its funnel."""
    try:
        stages = json.loads((build / FUNNEL).read_text("utf-8"))
    except FileNotFoundError:
        return not (build / RECIPE_COPY).exists()  # then it is no build's folder
    except (OSError, ValueError):
        return False
    return any(stage.get("kind") == "publish" for stage in stages)


def card_header(path: Path) -> dict[str, Any]:
    """Read the YAML header of a card.

    Raises:
        ValueError: It has none, or it is broken.
    """
    from huggingface_hub import metadata_load

    try:
        header = metadata_load(path)
    except yaml.YAMLError as error:
        raise ValueError(f"the header isn't YAML ({' '.join(str(error).split())})") from error
    if header is None:
        raise ValueError("has no YAML header between two lines of ---")
    return header


def configurations_of(header: Mapping[str, Any]) -> dict[str, str | None]:
    """Read the configurations in a card's header; see :class:`DatasetFolder`."""
    configs = header.get("configs")
    found: dict[str, str | None] = {}
    for config in configs if isinstance(configs, list) else []:
        match config:
            case {"config_name": str(name), "data_files": [{"split": "train", "path": str(path)}]}:
                found[name] = path
            case {"config_name": str(name)}:
                found[name] = None
    return found


def tags_of(header: Mapping[str, Any]) -> list[Any]:
    """Read the tags in a card's header."""
    tags = header.get("tags")
    return tags if isinstance(tags, list) else []


def _files(folder: Path) -> list[str]:
    """List what is to be published: all but hidden files and what is in hidden folders."""
    relative = [path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir()]
    return [path.as_posix() for path in relative if not path.as_posix().startswith(".")
            and "/." not in path.as_posix()]  # fmt: skip
