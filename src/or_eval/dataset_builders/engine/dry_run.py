"""What a build would do: rows, calls, tokens and money a stage, before any model is asked."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from inspect_ai.model import ModelUsage

from or_eval.dataset_builders.engine.asking import spent_in
from or_eval.dataset_builders.engine.prices import dollars
from or_eval.dataset_builders.engine.recipe import Recipe, RecipeStage
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.engine.stage import (
    SHORT_PROMPT_TOKENS,
    TARGET,
    Calls,
    Spent,
)

_Measured: TypeAlias = Mapping[tuple[str, str, str], Spent]


class PlannedStage(NamedTuple):
    """What a stage would do.

    Attributes:
        name: Its name.
        rows_in: Rows that go in.
        rows_out: Rows kept.
        row_tokens: Tokens of a row's prompt.
        done: Whether it is done, so that the numbers are counts and no estimates.
        why: Why it has to run again, where it ran before.
        asked: What models would be asked; one under test in no role, and no model where none is
            bound.
        parts: Rows of its subsets and, where it is done, those dropped by reason.
    """

    name: str
    rows_in: int
    rows_out: int
    row_tokens: int
    done: bool
    why: str
    asked: list[Spent]
    parts: Mapping[str, int]


def planned(build: Build) -> list[PlannedStage]:
    """Estimate what a build would do, from what is done already; no model is asked.

    It reckons with no row dropped by what isn't done, and with no question repeated; and where the
    build, or its preview, has asked already, with calls that take as many tokens as they did.

    Args:
        build: The build.
    """
    found: dict[str, PlannedStage] = {}
    spent: list[Spent] = []
    with suppress(sqlite3.OperationalError):  # of a build that is running, which holds the replies
        spent = spent_in(build.out, {})
    measured = {(one.stage, one.role, one.model): one for one in spent}
    for entry in build.recipe.stages:
        tokens = max((found[name].row_tokens for name in entry.needs), default=SHORT_PROMPT_TOKENS)
        stored, why = build.state(entry)
        if stored is not None:
            build.done[entry.name] = stored
            facts, parts = stored.facts, stored.facts.dropped | stored.facts.subsets
            counts = (entry.name, facts.rows_in, facts.rows_out, tokens)
            found[entry.name] = PlannedStage(*counts, True, "", [], parts)
            continue
        rows = _rows_in(entry, found, build.recipe)
        context = replace(build.planning_context(), row_tokens=tokens, models=build.models(entry))
        plan = entry.stage.plan(rows, context)
        asked = [item for calls in plan.calls for item in _asked(entry, calls, build, measured)]
        estimates = (entry.name, rows, plan.rows, plan.row_tokens or tokens)
        found[entry.name] = PlannedStage(*estimates, False, why, asked, plan.subsets)
    return list(found.values())


def _rows_in(entry: RecipeStage, found: Mapping[str, PlannedStage], recipe: Recipe) -> int:
    """Count the rows of a stage's inputs; those that come from one another are the same rows."""
    rows = 0
    for reference in entry.inputs:
        name, _, part = reference.partition(".")
        others = set(entry.inputs) - {reference}
        if not part and others & _of_the_same_rows(name, recipe):
            continue
        rows += found[name].parts.get(part, 0) if part else found[name].rows_out
    return rows


def _of_the_same_rows(name: str, recipe: Recipe) -> set[str]:
    """Give the stages that a stage's rows come from and are the same in, not written anew."""
    found = {name}
    for entry in reversed(recipe.stages):
        if entry.name in found and entry.stage.makes != "instead":
            found.update(entry.needs)
    return found


def _asked(entry: RecipeStage, calls: Calls, build: Build, measured: _Measured) -> list[Spent]:
    """Give what each model of a role would be asked, with its price."""
    models, role = build.models(entry), "" if "/" in calls.role else calls.role
    bound = models.get(role) or models.get("")
    names = [model.name for model in bound.models] if bound is not None else [""]
    if not role:
        names = [calls.role]
    share = len(names) if entry.stage.roles.get(role) == "turns" else 1
    count, sent, returned = (-(-number // share) for number in calls[1:])
    planned = []
    for model in names:
        took = measured.get((entry.name, role or TARGET, model))
        # The first stage asks for as much at once as is wanted, which in a preview is little.
        if took is not None and entry.inputs:
            sent = round(count * took.input_tokens / took.calls)
            returned = round(count * took.output_tokens / took.calls)
        usage = ModelUsage(input_tokens=sent, output_tokens=returned)
        cost = dollars(model, usage, build.asking.prices)
        planned.append(Spent(entry.name, role, model, count, sent, returned, cost))
    return planned
