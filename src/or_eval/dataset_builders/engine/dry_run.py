"""What a build would do: rows, calls, tokens and money a stage, before any model is asked."""

from __future__ import annotations

from collections.abc import Mapping
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


class PlannedCalls(NamedTuple):
    """What one model would be asked in one stage.

    Attributes:
        model: Its name; empty for a role that no model is bound to.
        role: The role it is asked in; empty for a model under test.
        calls: Number of calls.
        input_tokens: Tokens sent.
        output_tokens: Tokens returned.
        dollars: What they cost at the price that Inspect knows; None where it knows none.
    """

    model: str
    role: str
    calls: int
    input_tokens: int
    output_tokens: int
    dollars: float | None


class PlannedStage(NamedTuple):
    """What a stage would do.

    Attributes:
        name: Its name.
        rows_in: Rows that go in.
        rows_out: Rows kept.
        row_tokens: Tokens of a row's prompt.
        done: Whether it is done, so that the numbers are counts and no estimates.
        why: Why it has to run again, where it ran before.
        asked: What models would be asked.
        parts: Rows of its subsets and, where it is done, those dropped by reason.
    """

    name: str
    rows_in: int
    rows_out: int
    row_tokens: int
    done: bool
    why: str
    asked: list[PlannedCalls]
    parts: Mapping[str, int]


def planned(build: Build) -> list[PlannedStage]:
    """Estimate what a build would do, from what is done already; no model is asked.

    It reckons with no row dropped by what isn't done, and with no question repeated; and where the
    build, or its preview, has asked already, with calls that take as many tokens as they did.

    Args:
        build: The build.
    """
    found: dict[str, PlannedStage] = {}
    measured = {(one.stage, one.role, one.model): one for one in spent_in(build.out, {})}
    for entry in build.recipe.stages:
        stored, why = (None, "") if not _reached(entry, build) else build.state(entry)
        if stored is None:
            found[entry.name] = _to_do(entry, build, found, measured, why)
        else:
            build.done[entry.name] = stored
            facts = stored.facts
            found[entry.name] = PlannedStage(
                entry.name,
                facts.rows_in,
                facts.rows_out,
                _tokens(entry, found),
                True,
                "",
                [],
                facts.dropped | facts.subsets,
            )
    return list(found.values())


def _reached(entry: RecipeStage, build: Build) -> bool:
    return all(needed in build.done for needed in entry.needs)


def _to_do(
    entry: RecipeStage,
    build: Build,
    found: Mapping[str, PlannedStage],
    measured: _Measured,
    why: str,
) -> PlannedStage:
    rows = _rows_in(entry, found, build.recipe)
    tokens = _tokens(entry, found)
    context = replace(build.planning_context(), row_tokens=tokens, models=build.models(entry))
    estimate = entry.stage.plan(rows, context)
    asked = [item for calls in estimate.calls for item in _asked(entry, calls, build, measured)]
    return PlannedStage(
        entry.name,
        rows,
        estimate.rows,
        estimate.row_tokens or tokens,
        False,
        why,
        asked,
        estimate.subsets,
    )


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
    entries = {entry.name: entry for entry in recipe.stages}
    found, left = set(), [name]
    while left:
        entry = entries[left.pop()]
        found.add(entry.name)
        if entry.stage.makes != "instead":
            left += entry.needs
    return found


def _tokens(entry: RecipeStage, found: Mapping[str, PlannedStage]) -> int:
    """Give the tokens of the rows that come into a stage."""
    return max((found[name].row_tokens for name in entry.needs), default=SHORT_PROMPT_TOKENS)


def _asked(
    entry: RecipeStage, calls: Calls, build: Build, measured: _Measured
) -> list[PlannedCalls]:
    """Give what each model of a role would be asked, with its price."""
    is_role = "/" not in calls.role
    models = build.models(entry)
    bound = models.get(calls.role) or models.get("")
    names = [model.name for model in bound.models] if bound is not None else [""]
    if not is_role:
        names = [calls.role]
    if entry.stage.roles.get(calls.role) == "turns":
        calls = calls._replace(
            calls=-(-calls.calls // len(names)),
            input_tokens=-(-calls.input_tokens // len(names)),
            output_tokens=-(-calls.output_tokens // len(names)),
        )
    planned = []
    for model in names:
        sent, returned = calls.input_tokens, calls.output_tokens
        took = measured.get((entry.name, calls.role if is_role else TARGET, model))
        # The first stage asks for as much at once as is wanted, which in a preview is little.
        if took is not None and entry.inputs:
            sent = round(calls.calls * took.input_tokens / took.calls)
            returned = round(calls.calls * took.output_tokens / took.calls)
        usage = ModelUsage(input_tokens=sent, output_tokens=returned)
        cost = dollars(model, usage, build.asking.prices)
        role = calls.role if is_role else ""
        planned.append(PlannedCalls(model, role, calls.calls, sent, returned, cost))
    return planned
