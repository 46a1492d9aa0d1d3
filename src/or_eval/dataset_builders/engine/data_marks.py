"""What stands for data from outside, so that a build notices when it is other data."""

from __future__ import annotations

import hashlib
from pathlib import Path

from or_eval.dataset_builders.prompt_files import digest
from or_eval.sources.catalogue import catalogue
from or_eval.sources.hub import hub_place

_HUB_SECONDS = 10.0


def data_mark(data: str) -> str:
    """Give a mark of data by its name: a file, a folder, a catalogue name or a Hub id.

    Of a file it is the digest, of a folder that of its files' names, sizes and times, of what is
    on the Hub the revision there is now (the last one loaded, where the Hub can't be reached).

    Raises:
        OSError: A file can't be read.
    """
    path = Path(data).expanduser()
    if path.is_file():
        return digest(path)
    if path.is_dir():
        files = sorted(found for found in path.rglob("*") if found.is_file())
        told = [
            (str(file.relative_to(path)), file.stat().st_size, file.stat().st_mtime_ns)
            for file in files
        ]
        return hashlib.sha256(repr(told).encode()).hexdigest()[:12]
    entry = catalogue().get(data)
    place = entry.hub if entry is not None else hub_place(data)
    return (place.revision or _revision(place.id)) if place is not None else ""


def _revision(name: str) -> str:
    from huggingface_hub import HfApi
    from huggingface_hub.constants import HF_HUB_CACHE

    try:
        return str(HfApi().dataset_info(name, timeout=_HUB_SECONDS).sha)
    except Exception:
        # Of five libraries' errors, all mean the same here: what was loaded last is what there is.
        known = Path(HF_HUB_CACHE) / f"datasets--{name.replace('/', '--')}" / "refs" / "main"
        return known.read_text("utf-8").strip() if known.is_file() else ""
