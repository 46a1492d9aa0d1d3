"""What or-eval uses of Inspect beyond its public interface is there, and used through one module."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from inspect_ai import __version__

import or_eval
from or_eval import inspect_private


@pytest.mark.parametrize("name", inspect_private.WHERE)
def test_inspect_still_has_it(name: str) -> None:
    module, there = inspect_private.WHERE[name]
    assert hasattr(import_module(module), there), (
        f"inspect-ai {__version__} has no '{there}' in {module}: see where it went, and what for"
    )
    assert getattr(inspect_private, name) is getattr(import_module(module), there)


def test_no_eval_runs() -> None:
    assert inspect_private.eval_is_running() is False


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        inspect_private.nothing  # noqa: B018


def test_nothing_else_uses_private_modules() -> None:
    sources = Path(or_eval.__file__).parent
    private = re.compile(r"^\s*(from|import) inspect_\w+(\.\w+)*\._", re.MULTILINE)
    users = [path.name for path in sources.rglob("*.py") if private.search(path.read_text("utf-8"))]
    assert users == ["inspect_private.py"]
