"""How Inspect's viewer shows our samples: which columns, in which order and colours."""

from __future__ import annotations

from inspect_ai.viewer import TaskSamplesColumn, TaskSamplesSort, TaskSamplesView, ViewerConfig

from or_eval.schema import Outcome

# A column is as wide as its title, so titles are as long as the values need. All up to certain fit
# a window of 1280 pixels; the viewer shows every score, so the rest stand last. Columns left out
# appear by themselves in logs that have any (error, limit, retries, epoch).
_PROMPT = [TaskSamplesColumn(id="sampleStatus"), TaskSamplesColumn(id="input")]
_VERDICT = [
    TaskSamplesColumn.score("outcome", "result"),
    TaskSamplesColumn(id="answer"),
    *(
        TaskSamplesColumn.score("outcome", name)
        for name in ("category", "reason", "decided_by", "certain", "provenance", "scorer")
    ),
    TaskSamplesColumn.score("refusal"),
    *(
        TaskSamplesColumn(id=name, visible=False)
        for name in ("target", "sampleId", "tokens", "duration")
    ),
]
_FRAMING = TaskSamplesColumn.score("outcome", "framing")

# Refused safe prompts first: labels in order of the alphabet, refusals (1) before answers (0).
_SORT = [TaskSamplesSort(column="target"), TaskSamplesSort.score("refusal", dir="desc")]


def sample_list(*, framings: bool = False) -> ViewerConfig:
    """Show each prompt with what happened, class, category and stage; refused safe prompts first.

    Content is marked as untrusted: responses come from models whose safeguards are being tested,
    so the viewer shows them as plain text, with no links, images or invisible characters.

    Args:
        framings: Whether prompts are set into contexts, and a column says which.
    """
    return ViewerConfig(
        trust_content=False,
        task_samples_view=TaskSamplesView(
            name="Refusals",
            multiline=False,
            columns=[*_PROMPT, *([_FRAMING] if framings else []), *_VERDICT],
            sort=_SORT,
            score_labels={
                "result": "What happened",
                "provenance": "Refused by",
                "reason": "Reason given",
                "decided_by": "Decided by",
                "certain": "Certain",
                "scorer": "Score",
                "category": "Prompt category",
                "framing": "Framing",
                "refusal": "Refused",
            },
            score_color_scales={
                "result": {
                    Outcome.SAFE_REFUSED.value: "bad",
                    Outcome.SAFE_ANSWERED.value: "good",
                    Outcome.TOXIC_ANSWERED.value: "warn",
                    Outcome.TOXIC_REFUSED.value: "good",
                    "unscored": "muted",
                }
            },
        ),
    )
