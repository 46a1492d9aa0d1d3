"""The engine that runs recipes; from here come the words that a stage is written in."""

from or_eval.dataset_builders.engine.conversations import Question, Request
from or_eval.dataset_builders.engine.rows import Rows, with_meta, written_from
from or_eval.dataset_builders.engine.stage import (
    MODERATOR,
    Calls,
    Dropped,
    Kept,
    Plan,
    Stage,
    StageContext,
    panel,
    turns,
)

__all__ = [
    "MODERATOR",
    "Calls",
    "Dropped",
    "Kept",
    "Plan",
    "Question",
    "Request",
    "Rows",
    "Stage",
    "StageContext",
    "panel",
    "turns",
    "with_meta",
    "written_from",
]
