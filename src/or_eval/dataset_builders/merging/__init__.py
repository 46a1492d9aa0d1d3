"""Bringing prompt sets together: their rows in one schema, and what they share."""
