"""The one error of this folder: data from outside that can't be used."""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from shutil import which
from urllib.parse import urlsplit
from urllib.request import url2pathname

from rich.markup import escape

from or_eval.inspect_private import PrerequisiteError
from or_eval.key_like import without_keys


class DataError(PrerequisiteError):
    """Says in one line what is wrong with data, where, and what to do.

    It is Inspect's own error for missing prerequisites, so Inspect and the command line print the
    line without a traceback. ``str(error)`` is the plain line, without keys and passwords.
    """

    def __init__(self, message: str) -> None:
        line = without_keys(message)
        # Inspect prints `message` as Rich markup, which would swallow what stands in brackets.
        super().__init__(escape(line))
        self.args = (line,)


def shown(value: object) -> str:
    """Quote a value for an error line: short, and with line breaks and the like escaped."""
    # Before it is cut: the half of a key isn't known as one.
    quoted = without_keys(repr(value))
    return quoted if len(quoted) <= 60 else quoted[:56] + "…" + quoted[0]


def how_to_install(extra: str) -> str:
    """Give the command that installs an extra here, from where or-eval was installed from."""
    beside = Path(which("pip") or "").parent == Path(sys.executable).parent
    pip = "pip" if beside else f"{sys.executable} -m pip"
    try:
        told = distribution("or-eval").read_text("direct_url.json")
    except PackageNotFoundError:
        told = None
    origin = json.loads(told) if told else {}
    place = urlsplit(origin.get("url", ""))
    if place.scheme != "file":
        return f"{pip} install 'or-eval[{extra}]'"
    path = url2pathname(place.path)
    pins = Path(path) / "constraints.txt"
    options = f"-c '{pins}' " if pins.is_file() else ""
    options += "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"{pip} install {options}'{path}[{extra}]'"
