"""What the result of a stage depends on, so that a change is noticed and can be named."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from or_eval.dataset_builders.engine.models import Binding, by_name, digest_of
from or_eval.dataset_builders.engine.recipe import Recipe, RecipeStage
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_files import digest
from or_eval.sources.catalogue import catalogue
from or_eval.sources.hub import hub_place

_HUB_SECONDS = 10.0


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
    said = entry.stage.model_dump(mode="json")
    parameters: dict[str, Any] = by_name(said)
    if parameters != said:  # of what models in them have beside their names, a digest
        parameters |= {"in full": digest_of(said)[:12]}
    # Results are made again from the replies that are kept, which asks nobody and takes little
    # time, so any change of or-eval's code counts, and of the module that a stage comes from.
    own = Path(entry.kind if entry.kind.endswith(".py") else inspect.getfile(type(entry.stage)))
    return {
        "stage": [entry.kind, digest_of([code_of(""), digest(own.expanduser())])[:12]],
        "parameters": parameters,
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


@cache
def code_of(part: str) -> str:
    """Give what stands for the code and data files of a part of or-eval; of all for no part."""
    folder = Path(str(files("or_eval"))) / part
    found = sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".toml"))
    return digest_of([[path.name, digest(path)] for path in found])[:12]


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
