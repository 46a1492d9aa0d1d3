"""Addresses of samples in ``inspect view``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from posixpath import commonpath
from urllib.parse import quote

ADDRESS = "http://127.0.0.1:7575"
"""Where ``inspect view`` serves by default."""


def log_folder(logs: Sequence[str]) -> str:
    """Give the folder that all logs lie in, to start ``inspect view --log-dir`` on.

    Logs on different file systems have none: then that of the first.
    """
    folders = [_located(log).rpartition("/")[0] for log in logs]
    try:
        if "://" not in folders[0]:
            return commonpath(folders)
        scheme, _, _ = folders[0].partition("://")
        return f"{scheme}://{commonpath([f.removeprefix(f'{scheme}://') for f in folders])}"
    except ValueError:
        return folders[0]


def below(folder: str, log: str) -> str:
    """Name a log by its path below a folder of logs."""
    return _located(log).removeprefix(folder).lstrip("/")


def sample_link(folder: str, log: str, sample_id: str, epoch: int) -> str:
    """Give the address of a sample in a viewer that was started on a folder of logs."""
    name = quote(below(folder, log))
    return f"{ADDRESS}/#/logs/{name}/samples/sample/{quote(sample_id, safe='')}/{epoch}/"


def _located(log: str) -> str:
    return log if "://" in log else str(Path(log).absolute())
