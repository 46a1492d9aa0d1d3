"""What a build would do: rows, calls, tokens and money a stage, before any model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import yaml
from inspect_ai.model import ModelCost, get_model_info
from pydantic import ValidationError

from or_eval.dataset_builders.engine.ports import SHORT_PROMPT_TOKENS, WRITER, Calls
from or_eval.dataset_builders.engine.recipe import RecipeStage
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.stages import stage


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
        rows_in: Rows that go in, at most.
        rows_out: Rows kept, at most.
        row_tokens: Tokens of a row's prompt.
        done: Whether it is done, so that the numbers are counts and no estimates.
        why: Why it has to run again, where it ran before.
        asked: What models would be asked.
    """

    name: str
    rows_in: int
    rows_out: int
    row_tokens: int
    done: bool
    why: str
    asked: list[PlannedCalls]


def read_prices(path: Path) -> dict[str, ModelCost]:
    """Read a file of prices in the form of Inspect's ``--model-cost-config``.

    Raises:
        BuildError: It can't be read.
    """
    try:
        prices = yaml.safe_load(path.read_text("utf-8"))
        return {name: ModelCost(**cost) for name, cost in prices.items()}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BuildError(f"{path}: can't be read: {' '.join(str(error).split())}") from error
    except (AttributeError, TypeError, ValidationError) as error:
        raise BuildError(
            f"{path}: is no file of prices (MODEL: {{input: ..., output: ..., "
            "input_cache_write: ..., input_cache_read: ...}, in dollars per million tokens)"
        ) from error


def planned(build: Build, prices: Mapping[str, ModelCost]) -> list[PlannedStage]:
    """Estimate what a build would do, from what is done already; no model is asked.

    The estimate is an upper one: it reckons with no row dropped.

    Args:
        build: The build.
        prices: Prices of models, beside those that Inspect knows.
    """
    found: dict[str, PlannedStage] = {}
    for entry in build.recipe.stages:
        stored, why = (None, "") if not _reached(entry, build) else build.state(entry)
        if stored is None:
            found[entry.name] = _to_do(entry, build, found, why, prices)
        else:
            build.done[entry.name] = stored
            facts = stored.facts
            found[entry.name] = PlannedStage(
                entry.name, facts.rows_in, facts.rows_out, _tokens(entry, found), True, "", []
            )
    return list(found.values())


def _reached(entry: RecipeStage, build: Build) -> bool:
    return all(needed in build.done for needed in entry.needs)


def _to_do(
    entry: RecipeStage,
    build: Build,
    found: Mapping[str, PlannedStage],
    why: str,
    prices: Mapping[str, ModelCost],
) -> PlannedStage:
    rows = sum(found[name].rows_out for name in entry.needs)
    tokens = _tokens(entry, found)
    context = replace(build.planning_context(), row_tokens=tokens)
    estimate = stage(entry.kind).plan(rows, entry.params, context)
    asked = [item for calls in estimate.calls for item in _asked(entry, calls, build, prices)]
    return PlannedStage(
        entry.name, rows, estimate.rows, estimate.row_tokens or tokens, False, why, asked
    )


def _tokens(entry: RecipeStage, found: Mapping[str, PlannedStage]) -> int:
    """Give the tokens of the rows that come into a stage."""
    return max((found[name].row_tokens for name in entry.needs), default=SHORT_PROMPT_TOKENS)


def _asked(
    entry: RecipeStage, calls: Calls, build: Build, prices: Mapping[str, ModelCost]
) -> list[PlannedCalls]:
    """Give what each model of a role would be asked, with its price."""
    is_role = "/" not in calls.role
    models = build.models(entry)
    bound = models.get(calls.role) or models.get("")
    names = [model.name for model in bound.models] if bound is not None else [""]
    if not is_role:
        names = [calls.role]
    if calls.role == WRITER:
        # Writers take turns; each moderator is asked everything.
        calls = calls._replace(
            calls=-(-calls.calls // len(names)),
            input_tokens=-(-calls.input_tokens // len(names)),
            output_tokens=-(-calls.output_tokens // len(names)),
        )
    return [
        PlannedCalls(
            model,
            calls.role if is_role else "",
            calls.calls,
            calls.input_tokens,
            calls.output_tokens,
            _dollars(prices.get(model) or _known_price(model), calls),
        )
        for model in names
    ]


def _known_price(model: str) -> ModelCost | None:
    info = get_model_info(model) if model else None
    return info.cost if info is not None else None


def _dollars(price: ModelCost | None, calls: Calls) -> float | None:
    if price is None:
        return None
    return (price.input * calls.input_tokens + price.output * calls.output_tokens) / 1e6
