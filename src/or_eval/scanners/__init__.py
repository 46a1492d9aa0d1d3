"""Scanners for Inspect Scout: refusals inside the transcripts of agents and dialogues."""

from or_eval.scanners.refusal_scanner import refusal

__all__ = ["refusal"]
