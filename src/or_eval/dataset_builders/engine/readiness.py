"""Whether a build can run to its end, looked at before anything is paid for."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace

import anyio
from inspect_ai.model import GenerateConfig, Model
from rich.text import Text

from or_eval.dataset_builders.engine.models import BoundModel, Make
from or_eval.dataset_builders.engine.prices import price_of
from or_eval.dataset_builders.engine.request_errors import request_problem
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.engine.stage import MODERATOR, TARGET, WRITER, Place
from or_eval.dataset_builders.engine.yaml_lines import unknown_word
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.stages import stage, stage_kinds
from or_eval.inspect_private import PrerequisiteError
from or_eval.key_like import without_keys
from or_eval.solvers.structured_output import failure

_QUESTION = "Reply with the word yes."
_REPLY_TOKENS = 64
_SECONDS = 120
_LOADS = {"gguf", "hf", "nnterp", "sglang", "transformer_lens", "vllm"}
"""Providers that load a model, or start a server, as soon as one is made."""
_ALL_PARTS = {WRITER, MODERATOR, TARGET}
_AS = {"panel": "a panel", "turns": "models that take turns", "pool": "a pool"}


def check_ready(build: Build) -> None:
    """Make sure that nothing is missing for a build to run, before any model is asked.

    Raises:
        BuildError: A role has no model or isn't one, or a stage can't run where it stands.
    """
    kinds = {stage(name) for name in stage_kinds()}
    kinds |= {type(entry.stage) for entry in build.recipe.stages}
    roles = sorted({role for kind in kinds for role in (*kind.roles, *kind.may_ask)})
    for entry in build.recipe.stages:
        models = build.models(entry)
        for role, bound in models.items():
            if role and role not in roles:
                raise BuildError(f"--model-role {role}: {unknown_word('role', role, roles)}")
            if wrong := [model.name for model in bound.models if "/" not in model.name]:
                option = f"--model-role {role}={wrong[0]}" if role else f"--model {wrong[0]}"
                raise BuildError(f"{option}: give PROVIDER/MODEL")
        place = Place(build.recipe.taxonomy, entry.inputs, build.recipe.tested(entry))
        if lacking := entry.stage.problem(place):
            raise BuildError(f"stage {entry.name}: {lacking}; change the recipe, or --set it")
        for role, found in entry.stage.asked(models).items():
            asked = {**entry.stage.roles, **entry.stage.may_ask}[role]
            if found is None:
                raise BuildError(
                    f"stage {entry.name}: asks the role '{role}', and no model is bound to it; "
                    f"add --model-role {role}=PROVIDER/MODEL (or --model for all roles)"
                )
            if found.sense not in (None, asked) and len(found.models) > 1:
                raise BuildError(
                    f"stage {entry.name}: asks the role '{role}' as {_AS[asked]}, and not as "
                    f"{_AS[found.sense or asked]}; change the recipe's models, or --model-role"
                )
    if build.asking.max_cost is not None:
        names = dict.fromkeys(model.name for model, _ in _asked(build))
        if unknown := [name for name in names if price_of(name, build.asking.prices) is None]:
            raise BuildError(
                f"--max-cost: unknown price: {', '.join(unknown)}; give it in a file "
                "with --model-cost-config"
            )


def check_models(build: Build) -> None:
    """Make the models that are asked by network, without asking any.

    Raises:
        BuildError: A provider isn't known, or its key or package is missing.
    """
    for model, role in _asked(build):
        if model.name.partition("/")[0] not in _LOADS:
            _made(model, role)


def judges_itself(build: Build) -> str | None:
    """Name a model that would write prompts, judge them and be tested on them, if one does."""
    roles: dict[str, set[str]] = {}
    for model, role in _asked(build):
        roles.setdefault(model.name, set()).add(role)
    return next((name for name, asked in roles.items() if asked >= _ALL_PARTS), None)


def check_answering(build: Build) -> None:
    """Call each model once that this build has not heard of yet; load what stages to come need.

    Raises:
        BuildError: One can't be reached, or something can't be loaded.
    """
    seen = replace(build, done={}, rounds={})
    for entry in build.recipe.stages:
        stored, _ = seen.state(entry)
        if stored is None:
            entry.stage.ready()
        else:
            seen.done[entry.name] = stored
    with build.asker() as asker:
        known = {one.model for one in asker.spent()}
        asker.stage = "check"
        with asker.models() as make:
            for model, role in _asked(build):
                if model.name not in known:
                    known.add(model.name)
                    seconds = build.asking.config.get("timeout", _SECONDS)
                    anyio.run(_check, _made(model, role, make), model, role, seconds)


def _made(bound: BoundModel, role: str, make: Make = lambda model, role: model.make()) -> Model:
    try:
        return make(bound, role)
    except (ValueError, ImportError, PrerequisiteError) as error:
        said = " ".join(Text.from_markup(without_keys(str(error))).plain.split())
        raise BuildError(f"{bound.name} ({role}) can't be asked: {said}") from error


async def _check(model: Model, bound: BoundModel, role: str, seconds: int) -> None:
    config = GenerateConfig(max_tokens=_REPLY_TOKENS, max_retries=1, timeout=seconds, cache=False)
    try:
        await model.generate(_QUESTION, config=config)
    except sqlite3.OperationalError:
        raise  # of the disk
    except Exception as error:
        # Whoever rejects this request for what it says or asks for can be reached.
        if request_problem(error) is None:
            said = f"{bound.name} ({role}) can't be asked: {failure(error, model)}"
            raise BuildError(f"{said}; no other request went out") from error


def _asked(build: Build) -> Iterator[tuple[BoundModel, str]]:
    """Give the models that each stage asks, with their roles."""
    for entry in build.recipe.stages:
        yield from ((model, TARGET) for model in entry.stage.tests())
        for role, bound in entry.stage.asked(build.models(entry)).items():
            yield from ((model, role) for model in (bound.models if bound else ()))
