"""Figures: each a function of a data frame, drawn with altair and saved in four forms."""
