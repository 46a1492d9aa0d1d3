"""Rules that read a response's structure and give a class, with no model and no network."""

from or_eval.scorers.rules.engine import classify_response

__all__ = ["classify_response"]
