"""What models cost: by the user's file, by Inspect, or by the public list that is installed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml
from inspect_ai.model import ModelCost, ModelUsage, compute_model_cost
from pydantic import ValidationError

from or_eval.dataset_builders.errors import BuildError
from or_eval.inspect_private import _get_model_info_direct

Prices = Mapping[str, ModelCost]
"""Dollars per million tokens that the user gives, by the name of a model."""

_FREE = ModelCost(input=0, output=0, input_cache_write=0, input_cache_read=0)
# Providers that run a model on one's own machine.
_OWN = {"gguf", "replay", "mockllm", "hf", "vllm", "sglang", "ollama", "llama-cpp-python"}
# What the list calls providers, where Inspect has other names.
_LISTED_AS = {"grok": "x-ai", "bedrock": "aws", "azureai": "azure", "vertex": "google"}
_SERVICES = ("azure", "bedrock", "vertex")


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
            f"{path}: isn't a price file (MODEL: {{input: ..., output: ..., "
            "input_cache_write: ..., input_cache_read: ...}, in dollars per million tokens)"
        ) from error


def price_of(model: str, given: Prices) -> ModelCost | None:
    """Give the price of a model; None where nobody knows it."""
    if model in given:
        return given[model]
    info = _get_model_info_direct(model) if model else None
    return (info.cost if info is not None else None) or _listed(model)


def dollars(model: str, usage: ModelUsage, given: Prices) -> float | None:
    """Give what a model's tokens cost; None where nobody knows its price."""
    price = price_of(model, given)
    return None if price is None else compute_model_cost(price, usage)


@cache
def _listed(model: str) -> ModelCost | None:
    """Look a model up in the list of genai-prices, which asks no network."""
    from genai_prices import Usage, calc_price

    provider, _, name = model.removeprefix("openai-api/").partition("/")
    if provider in _OWN:
        return _FREE
    service, _, rest = name.partition("/")
    if service in _SERVICES:
        provider, name = service, rest

    def million(**tokens: int) -> float:
        # Of few tokens, as prices may rise with the length of a request.
        found = calc_price(Usage(**tokens), name, provider_id=_LISTED_AS.get(provider, provider))
        return float(found.total_price) * 1000

    try:
        return ModelCost(
            input=million(input_tokens=1000),
            output=million(output_tokens=1000),
            input_cache_write=million(input_tokens=1000, cache_write_tokens=1000),
            input_cache_read=million(input_tokens=1000, cache_read_tokens=1000),
        )
    except LookupError:
        return None
