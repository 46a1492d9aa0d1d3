"""Panels of models that judge texts: what they are asked, and what they agree on."""
