"""Who made a model: judges of the tested model's own make may be partial to it."""

from __future__ import annotations

from collections.abc import Sequence

from inspect_ai.model import Model, ModelName, get_model_info

# Providers that serve their own models only, for models that Inspect's table doesn't list yet.
_OWN_MODELS_ONLY = ("anthropic", "openai")


def of_same_maker(judges: Sequence[Model], tested: Model) -> list[str]:
    """Name the judges that come from the tested model's maker, the model itself aside."""
    maker = _maker(tested)
    others = [judge for judge in judges if str(judge) != str(tested)]
    return [str(judge) for judge in others if maker is not None and _maker(judge) == maker]


def _maker(model: Model) -> str | None:
    info = get_model_info(model)
    if info is not None and info.organization:
        return info.organization.casefold()
    provider = ModelName(model).api
    return provider if provider in _OWN_MODELS_ONLY else None
