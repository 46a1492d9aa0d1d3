"""Recipes, the stages they are made of, and how these are run, stored and resumed."""
