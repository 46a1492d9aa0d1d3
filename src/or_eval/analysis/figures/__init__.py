"""Figures: each a function of a data frame, drawn with altair, or None without enough to draw."""
