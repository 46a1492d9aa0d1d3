"""Golden files: what users see, kept beside the tests; ``pytest --update`` writes them anew."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
_SHOWN = 40


def assert_golden(name: str, lines: list[str], request: pytest.FixtureRequest) -> None:
    """Compare lines with a golden file, and show where they differ.

    Args:
        name: Path of the file below ``golden/``.
        lines: What is seen now.
        request: The test's, which tells whether to write the file anew.
    """
    path = GOLDEN / name
    if request.config.getoption("--update"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return
    kept = path.read_text("utf-8").splitlines()
    if kept != lines:
        moved = list(unified_diff(kept, lines, "golden", "now", lineterm="", n=0))
        changed = sum(line.startswith("+") for line in moved[2:])
        shown = "\n".join(moved[:_SHOWN])
        pytest.fail(f"{name}: {changed} lines moved (--update takes them)\n{shown}", pytrace=False)
