"""The stage ``natural``: does a text read as one person would have written it?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from or_eval.dataset_builders.engine.ports import (
    MODERATOR,
    Dropped,
    Kept,
    Outcome,
    Plan,
    Stage,
    StageContext,
    StageParams,
)
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.engine.rows import Rows, with_meta
from or_eval.dataset_builders.panel.agreement import Agree, PanelTables, agreement, votes
from or_eval.dataset_builders.panel.moderators import (
    Wording,
    in_words,
    load_wording,
    opinions_on_prompts,
)
from or_eval.dataset_builders.panel.panel_plan import panel_calls
from or_eval.dataset_builders.prompt_files import prompt_path

NATURAL, PATCHED = "natural", "patched"


class NaturalParams(StageParams):
    """What a recipe may say to ``natural``.

    Attributes:
        agree: How many moderators must find a text natural; one that gives no readable answer
            doesn't.
    """

    agree: Agree = "majority"


def run(rows: Rows, params: NaturalParams, context: StageContext) -> Iterator[Outcome]:
    """Keep the rows that the panel finds natural; ``meta.reads`` has what each moderator said."""
    tables = PanelTables(NATURAL, (NATURAL, PATCHED))
    for row, opinions in opinions_on_prompts(rows, natural_wording(), context):
        if opinions is None:
            yield Dropped(row, "too long")
            continue
        tables.add(opinions)
        judged = with_meta(row, reads=votes(opinions))
        found = agreement(opinions, {NATURAL}, params.agree)
        if found == "agreed":
            yield Kept(judged)
        else:
            yield Dropped(judged, PATCHED if found == "opposed" else found, in_words(opinions))
    yield from tables.outcomes()


def plan(rows: int, params: NaturalParams, context: StageContext) -> Plan:
    """Estimate a call per row and moderator."""
    return Plan(rows, (panel_calls([(rows, context.row_tokens, natural_wording())]),))


@cache
def natural_wording() -> Wording:
    """Give what moderators are told."""
    return load_wording(
        "natural", "prompt", "reads", {said: said for said in (NATURAL, PATCHED)}, NATURAL
    )


STAGE = Stage(
    NaturalParams,
    run,
    plan,
    roles={MODERATOR: "panel"},
    prompts=lambda params: [prompt_path("natural")],
    parts=lambda params: [PATCHED, "disagreement", "unreadable", BLOCKED, FAILED, "too long"],
)
