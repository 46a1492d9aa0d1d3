"""Estimates as columns of frames: a figure and its bounds."""

from __future__ import annotations

from or_eval.intervals import Estimate


def with_bounds(*names: str) -> list[str]:
    """Give the names of figures, each with those of its bounds: ``x``, ``x_lower``, ``x_upper``."""
    return [f"{name}{end}" for name in names for end in ("", "_lower", "_upper")]


def bounded(name: str, estimate: Estimate) -> dict[str, float]:
    """Give an estimate under a name, its bounds under names of their own."""
    return dict(zip(with_bounds(name), estimate, strict=True))


def alone(name: str, estimate: Estimate) -> dict[str, float]:
    """Give an estimate under a name, its bounds as ``lower`` and ``upper``."""
    return dict(zip((name, "lower", "upper"), estimate, strict=True))
