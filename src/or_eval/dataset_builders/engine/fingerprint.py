"""What the result of a stage depends on, so that a change is noticed and can be named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from or_eval.dataset_builders.engine.asking import Asking, arguments_digest
from or_eval.dataset_builders.engine.data_marks import data_mark
from or_eval.dataset_builders.engine.ports import Stage
from or_eval.dataset_builders.engine.recipe import Recipe, RecipeStage
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_files import digest
from or_eval.dataset_builders.stages import stage

# What changes how a model is called, and not what it is asked. Headers may hold keys besides.
_TRANSPORT = {
    "extra_headers",
    *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout"),
    *("max_connections", "adaptive_connections", "batch", "cache", "cache_prompt"),
}


def ingredients(
    recipe: Recipe,
    entry: RecipeStage,
    asking: Asking,
    limit: int | None,
    earlier: Mapping[str, str],
) -> dict[str, Any]:
    """Give what the result of a stage depends on, by names that a person understands.

    Args:
        recipe: The recipe.
        entry: The stage.
        asking: The models.
        limit: Most seeds to start from.
        earlier: Marks of the results of the stages before it.

    Raises:
        BuildError: A file that the stage needs can't be read.
    """
    kind = stage(entry.kind)
    try:
        prompts = {path.name: digest(path) for path in kind.prompts(entry.params)}
        data = {name: data_mark(name) for name in kind.data(entry.params)}
    except OSError as error:
        raise BuildError(f"stage {entry.name}: {error.filename}: {error.strerror}") from error
    used = [recipe.name, recipe.taxonomy, recipe.language]
    inputs = {reference: earlier[reference.partition(".")[0]] for reference in entry.inputs}
    return {
        "stage": [entry.kind, kind.version],
        "parameters": entry.params.model_dump(mode="json"),
        "recipe": recipe.data if kind.describes_recipe else used,
        "limit": limit if not entry.inputs else None,
        "models": _models(kind, entry, asking),
        "prompts": prompts,
        "data": data,
        "input": inputs | (dict(earlier) if kind.describes_recipe else {}),
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


def _models(kind: Stage, entry: RecipeStage, asking: Asking) -> dict[str, Any]:
    """Give each role's models with the settings that change what they say."""
    bound = asking.role_models()
    default = asking.names().get("")
    asked = {role: bound.get(role, default) for role in kind.roles_asked(entry.params)}
    asked |= {role: bound[role] for role in kind.optional_roles if role in bound}
    return {
        role: [
            *(_model(model) for model in (models if isinstance(models, list) else [models])),
            *([digest] if (digest := arguments_digest({role: models})) else []),
        ]
        for role, models in asked.items()
        if models is not None
    }


def _model(model: Any) -> Any:
    if isinstance(model, str):
        return model
    return [str(model), model.config.model_dump(exclude_none=True, exclude=_TRANSPORT)]
