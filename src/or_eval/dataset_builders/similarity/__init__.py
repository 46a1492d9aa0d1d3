"""Texts that are the same, or mean nearly the same."""
