"""Solvers: what stands before a prompt when it is sent to the model under test."""

from or_eval.solvers.dialogue import dialogue
from or_eval.solvers.system_prompt import system_prompt

__all__ = ["dialogue", "system_prompt"]
