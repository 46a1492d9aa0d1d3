"""The one error of this folder: a recipe, a stage or a published set that can't go on."""

from or_eval.sources.errors import DataError


class BuildError(DataError):
    """Says in one line what stops a build, where, and what to do."""
