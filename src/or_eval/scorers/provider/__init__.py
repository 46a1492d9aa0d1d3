"""The provider's own word on an output: blocks, refusal fields, fallbacks, texts of the API."""

from or_eval.scorers.provider.output import read_output, read_text
from or_eval.scorers.provider.verdict import ProviderVerdict

__all__ = ["ProviderVerdict", "read_output", "read_text"]
