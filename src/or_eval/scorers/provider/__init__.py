"""The provider's own word on an output: blocks, refusal fields, fallbacks, texts of the API."""

from or_eval.scorers.provider.output import read_output, read_text

__all__ = ["read_output", "read_text"]
