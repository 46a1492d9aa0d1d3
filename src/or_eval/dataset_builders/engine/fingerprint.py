"""What the result of a stage depends on, so that a change is noticed and can be named."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from or_eval.dataset_builders.engine.data_marks import data_mark
from or_eval.dataset_builders.engine.models import Binding, by_name, digest_of
from or_eval.dataset_builders.engine.recipe import Recipe, RecipeStage
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_files import digest


def ingredients(
    recipe: Recipe,
    entry: RecipeStage,
    models: Mapping[str, Binding],
    limit: int | None,
    earlier: Mapping[str, str],
) -> dict[str, Any]:
    """Give what the result of a stage depends on, by names that a person understands.

    Args:
        recipe: The recipe.
        entry: The stage.
        models: The models of each role, and under "" those of every other.
        limit: Most seeds to start from.
        earlier: Digests of the results of the stages before it.

    Raises:
        BuildError: A file that the stage needs can't be read.
    """
    try:
        prompts = {path.name: digest(path) for path in entry.stage.prompts()}
        data = {name: data_mark(name) for name in entry.stage.reads()}
    except OSError as error:
        raise BuildError(f"stage {entry.name}: {error.filename}: {error.strerror}") from error
    used = [recipe.name, recipe.taxonomy, recipe.language]
    inputs = {name: earlier[name] for name in entry.needs}
    return {
        "stage": [entry.kind, code_mark(entry)],
        "parameters": _parameters(entry),
        "recipe": recipe.published if entry.stage.describes_recipe else used,
        "limit": limit if not entry.inputs else None,
        "models": {
            role: [[model.name, model.identity] for model in bound.models]
            for role, bound in entry.stage.asked(models).items()
            if bound is not None
        },
        "prompts": prompts,
        "data": data,
        "input": inputs | (dict(earlier) if entry.stage.describes_recipe else {}),
    }


def fingerprint(parts: Mapping[str, Any]) -> str:
    """Give 16 hex digits that stand for what a stage's result depends on."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Say what changed between two sets of ingredients, shortly."""
    changed = [name for name in now if before.get(name) != now[name]]
    details = []
    for name in changed:
        old, new = before.get(name), now[name]
        if isinstance(old, dict) and isinstance(new, dict):
            keys = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
            details.append(f"{name} ({', '.join(Path(key).name for key in keys)})")
        else:
            details.append(name)
    return ", ".join(details)


def code_mark(entry: RecipeStage) -> str:
    """Give what stands for the code and data files that make a stage's result.

    Results are made again from the answers that are kept, which asks nobody and takes little
    time, so any change of or-eval's code counts, and of the module that a stage comes from.
    """
    own = Path(entry.kind if entry.kind.endswith(".py") else inspect.getfile(type(entry.stage)))
    return digest_of([code_of(""), digest(own.expanduser())])[:12]


@cache
def code_of(part: str) -> str:
    """Give what stands for the code and data files of a part of or-eval; of all for no part."""
    folder = Path(str(files("or_eval"))) / part
    found = sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".toml"))
    return digest_of([[path.name, digest(path)] for path in found])[:12]


def _parameters(entry: RecipeStage) -> dict[str, Any]:
    """Give a stage's parameters, with a digest of what models in them have beside their names."""
    said = entry.stage.model_dump(mode="json")
    shown: dict[str, Any] = by_name(said)
    return shown if shown == said else shown | {"in full": digest_of(said)[:12]}
