"""Which models a build asks: bound to roles by the user or the recipe, with their settings."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import yaml
from inspect_ai.model import CachePolicy, GenerateConfig, Model, get_model
from pydantic import ValidationError

from or_eval.dataset_builders.engine.prices import Prices
from or_eval.dataset_builders.engine.request_errors import tell_quotas_at_once
from or_eval.dataset_builders.errors import BuildError
from or_eval.key_like import key_like, secrets_of

Sense = Literal["panel", "turns", "pool"]
"""What a list of models is: all are asked, they take turns, or they are one model's endpoints."""

TRANSPORT = {
    "extra_headers",
    *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout"),
    *("max_connections", "adaptive_connections", "batch", "cache", "cache_prompt"),
}
"""What changes how a model is called, and not what it says; headers may hold keys besides."""
# Arguments of a model that say how it is reached, and not which one it is.
_REACHING = {"base_url", "api_key", "max_retries", "timeout", "http_client", "default_headers"}


@dataclass(frozen=True)
class BoundModel:
    """A model as it is to be asked.

    Attributes:
        name: Its name, as Inspect has it.
        settings: Inspect's generation settings.
        arguments: Arguments of its provider.
        members: Of a pool, the endpoints that stand for the one model.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    members: tuple[BoundModel, ...] = ()

    @cached_property
    def identity(self) -> str:
        """What stands for the model and all that changes what it says, in 12 hex digits.

        A digest, since arguments may hold secrets.
        """
        asked = self.members[0] if self.members else self
        told = [
            asked.name,
            {key: value for key, value in asked.settings.items() if key not in TRANSPORT},
            {key: value for key, value in asked.arguments.items() if key not in _REACHING},
        ]
        return digest_of(told)[:12]

    def make(self) -> Model:
        """Make the model, whose replies are cached apart from those of others of its name."""
        if self.members:
            from or_eval.dataset_builders.engine.endpoint_pool import pool_of

            return pool_of([member.make() for member in self.members], self.cached)
        config = GenerateConfig(**{"cache": self.cached, **self.settings})
        made = get_model(self.name, config=config, memoize=False, **self.arguments)
        made.model_args = {}  # Inspect logs them, and takes only some of the keys out
        tell_quotas_at_once(made)
        return made

    def shared(self, of: int) -> BoundModel:
        """Give the model to one of several workers, with its share of the calls at once."""
        members = tuple(member.shared(of) for member in self.members)
        return replace(self, settings=share_of(self.settings, of), members=members)

    @property
    def most_workers(self) -> float:
        """How many workers can have a call at once to it, or to each endpoint of a pool."""
        said = [member.settings.get("max_connections") for member in (*self.members, self)]
        return min((most for most in said if most), default=math.inf)

    @property
    def cached(self) -> CachePolicy:
        """How its replies are cached."""
        return CachePolicy(expiry=None, scopes={"asked": self.identity})


Make: TypeAlias = Callable[..., Model]
"""Makes a model for a role: of what it is bound to, and whether its replies are remembered."""


def made_of(roles: Mapping[str, Sequence[BoundModel]], make: Make) -> dict[str, Any]:
    """Make the models of roles, as Inspect takes them."""
    made = {role: [make(model, role) for model in models] for role, models in roles.items()}
    return {role: models if len(models) > 1 else models[0] for role, models in made.items()}


@dataclass(frozen=True, slots=True)
class Binding:
    """The models of a role, and what they are to each other; None where their stage decides."""

    models: tuple[BoundModel, ...]
    sense: Sense | None = None


def share_of(settings: Mapping[str, Any], of: int) -> dict[str, Any]:
    """Give generation settings to one of several workers, with its share of the calls at once."""
    said = dict(settings)
    if of > 1 and (most := said.get("max_connections")):
        said["max_connections"] = max(1, most // of)
    return said


def by_name(said: Any, *, models: bool = False) -> Any:
    """Leave of the models in a recipe their names alone; arguments and settings may hold keys.

    Args:
        said: A recipe, or parts of one, as plain data.
        models: Whether that is models.
    """
    if isinstance(said, Mapping):
        if models and isinstance(said.get("model"), str):
            return said["model"]
        return {
            key: by_name(item, models=models or key == "models")
            for key, item in said.items()
            if key != "model_args"
        }
    if isinstance(said, list | tuple):
        return [by_name(item, models=models) for item in said]
    return said


def digest_of(data: Any) -> str:
    """Give the SHA-256 of data that can be written as JSON."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def binding_of(said: Any) -> Binding:
    """Read what a recipe or an option says of the models of a role.

    Args:
        said: A name; a mapping with ``model``, its ``model_args`` and settings; a list of these;
            or a mapping that says what such a list is: ``{panel: [...]}``, ``{turns: [...]}``,
            ``{pool: [...]}``.

    Raises:
        ValueError: It is none of these.
    """
    sense = None
    if isinstance(said, Mapping) and "model" not in said:
        [sense] = [key for key in said if key in get_args(Sense)][:1] or [None]
        if len(said) != 1 or sense is None:
            raise ValueError("give a model, or one of panel, turns, pool with a list of models")
        said = said[sense]
    models = tuple(_model(item) for item in (said if isinstance(said, list | tuple) else [said]))
    if not models:
        raise ValueError("an empty list names no model")
    if sense == "pool":
        if len({model.identity for model in models}) > 1:
            raise ValueError("a pool is one model with the same settings at several places")
        return Binding((BoundModel(models[0].name, members=models),), "turns")
    return Binding(models, sense)


@dataclass(frozen=True, slots=True)
class Asking:
    """Which models the user asks for, and how; none of it changes what the stages ask.

    Attributes:
        model: The model for every role that none is bound to.
        roles: ``ROLE=MODEL`` in Inspect's syntax, lists and settings included.
        shared_cache: Use Inspect's own cache, which all builds share, rather than the build's.
        config: Inspect's generation settings (``max_connections``, ``batch``, ``timeout``, ...).
        retry_attempts: How often a sample that failed is tried again.
        display: Inspect's display; None for its default.
        prices: Prices of models that the user gives.
        max_cost: Most dollars that a build may cost, all its runs together.
    """

    model: str | None = None
    roles: tuple[str, ...] = ()
    shared_cache: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    retry_attempts: int = 1
    display: str | None = None
    prices: Prices = field(default_factory=dict)
    max_cost: float | None = None

    def bindings(self) -> dict[str, Binding]:
        """Give the models of each role that the user binds; under "" those of all others.

        Raises:
            BuildError: Inspect can't read a binding.
        """
        bound = {}
        if name := self.model or os.environ.get("INSPECT_EVAL_MODEL"):
            bound[""] = Binding((BoundModel(name),))
        for option in self.roles:
            role, equals, said = option.partition("=")
            if not equals:
                raise BuildError(f"--model-role {option}: give ROLE=PROVIDER/MODEL")
            try:
                # As Inspect does: YAML, or names with commas between them.
                value = yaml.safe_load(said)
                models = value.split(",") if isinstance(value, str) and "," in value else value
                bound[role.replace("-", "_")] = binding_of(models)
            except Exception as error:
                raise BuildError(f"--model-role: {' '.join(str(error).split())}") from error
        for role, binding in bound.items():
            for model in binding.models:
                if what := key_like(model.name, secrets_of(os.environ)):
                    option = f"--model-role {role}" if role else "--model"
                    raise BuildError(f"{option}: the model's name contains {what}; leave that out")
        return bound


def _model(said: Any) -> BoundModel:
    if isinstance(said, str):
        return BoundModel(said)
    if not isinstance(said, Mapping) or not isinstance(said.get("model"), str):
        # Not what it says, which may hold a key.
        raise ValueError("a model is PROVIDER/MODEL, or a mapping with 'model'")
    settings = {key: value for key, value in said.items() if key not in ("model", "model_args")}
    arguments = said.get("model_args", {})
    if not isinstance(arguments, Mapping):
        raise ValueError("model_args must be a mapping")
    try:
        GenerateConfig(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        setting = ".".join(map(str, first["loc"]))
        raise ValueError(f"the setting {setting}: {first['msg']}") from None
    return BoundModel(said["model"], settings, dict(arguments))
