"""The one builder behind every refusal-testing task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalSpec, HeadlineMetric
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
)
from inspect_ai.scorer import SampleScore, Scorer
from inspect_ai.solver import Solver, generate
from inspect_ai.util import EarlyStop
from inspect_ai.viewer import TaskSamplesColumn, TaskSamplesSort, TaskSamplesView, ViewerConfig
from pydantic import JsonValue

from or_eval.inspect_private import PrerequisiteError, roles_are_bound
from or_eval.schema import PLAIN, Label, Outcome, PromptRecord, Turn
from or_eval.scorers.fusion import Fusion, checked_audit, checked_fusion
from or_eval.scorers.judge.panel import bound_judges, check_answering
from or_eval.scorers.outcome_scorer import outcome
from or_eval.scorers.refusal_scorer import refusal
from or_eval.solvers import system_prompt as system_prompt_solver
from or_eval.solvers.dialogue import dialogue
from or_eval.solvers.system_prompt import NONE
from or_eval.sources import DataError, LoadedPrompts
from or_eval.tasks.framing import framed, read_framings

# Raised when a change to the tasks changes results; logs carry it.
TASK_VERSION = 2

# A run in which half of the samples failed measures nothing: its log is marked failed, so that
# eval-set and eval-retry ask those samples again. Fewer failures leave the rest a result.
FAILED_SHARE = 0.5

_MESSAGES: dict[str, type[ChatMessageUser | ChatMessageAssistant | ChatMessageSystem]] = {
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
    "system": ChatMessageSystem,
}

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


def refusal_task(
    prompts: LoadedPrompts,
    *,
    system_prompt: object,
    description: str,
    framing: object = PLAIN,
    scorer: Scorer | None = None,
    early_stopping: JudgeFirst | None = None,
) -> Task:
    """Build the task that asks a model each prompt and classes its responses.

    A sample that fails (a provider's error, a time-out) ends neither the run nor unseen: it keeps
    its error and is scored as unscored.

    Args:
        prompts: The prompts, one sample each.
        system_prompt: What ``or_eval/system_prompt`` takes, as it came from ``-T``.
        description: One sentence on what is tested, recorded in the log.
        framing: What :func:`or_eval.tasks.framing.read_framings` takes, as it came from ``-T``.
        scorer: A ``refusal()`` with options of its own; one with none by default.
        early_stopping: :func:`judge_first` with the scorer's options.

    Raises:
        DataError: An option has no meaning, or two of them give a system prompt.
    """
    shared = typed_text("system_prompt", system_prompt) or NONE
    framings = read_framings(typed_text("framing", framing) or PLAIN)
    samples = [sample(record) for record in prompts.records]
    metadata = {"prompts": prompts_summary(prompts)}
    if framings:
        own = [framing.name for framing in framings if framing.system is not None]
        if own and shared != NONE:
            raise DataError(
                f"framing: {', '.join(own)} bring a system prompt of their own; leave out these or "
                "system_prompt"
            )
        samples = framed(samples, framings)
        metadata["framings"] = {one.name: one._asdict() for one in framings}
    return Task(
        dataset=MemoryDataset(samples, name=prompts.name),
        solver=_solvers(shared, prompts.records),
        scorer=[scorer or refusal(), outcome()],
        score_on_error=True,
        fail_on_error=FAILED_SHARE,
        early_stopping=early_stopping,
        headline_metric=headline(prompts),
        viewer=sample_list(framings=bool(framings)),
        version=TASK_VERSION,
        description=description,
        metadata=metadata,
    )


def typed_text(option: str, value: object) -> str | None:
    """Give the text a person typed after ``-T option=``.

    Inspect reads each value as YAML and splits it at commas, so a sentence with a comma arrives
    as a list, Norwegian (``no``) as False and ``Note: be kind`` as a mapping.

    Raises:
        DataError: The text can't be told from what YAML made of it.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    if option == "language" and value is False:
        return "no"
    raise DataError(
        f"{option}: {value!r} isn't text, since Inspect reads -T values as YAML; "
        f"""put double quotes inside single ones: -T {option}='"..."'"""
    )


class JudgeFirst:
    """Has the judges called once before the first prompt is asked, and stops the task otherwise.

    It stops nothing early: of what Inspect asks of a task, this alone comes before all samples.

    Args:
        fusion: Of the scorer.
        audit: Of the scorer.

    Raises:
        PrerequisiteError: One of them has no valid value.
    """

    def __init__(self, fusion: str, audit: float) -> None:
        self.mode = checked_fusion(fusion)
        self.audit = checked_audit(audit, self.mode)

    async def start_task(self, task: EvalSpec, samples: list[Sample], epochs: int) -> str:
        try:
            await check_answering(bound_judges(self.mode, self.audit))
        except PrerequisiteError as error:
            raise error.with_traceback(None) from None  # Inspect would show all of it
        return "judge first"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        return None

    async def complete_sample(
        self, id: str | int, epoch: int, scores: dict[str, SampleScore]
    ) -> None:
        pass

    async def complete_task(self) -> dict[str, JsonValue]:
        return {}


def judge_first(fusion: str, audit: float) -> JudgeFirst | None:
    """Give what makes sure of the judges at the start of a task; None where none is asked.

    Raises:
        PrerequisiteError: An option has no valid value; or Inspect is making the task for a run
            that needs a judge and has none, which then ends in one line.
    """
    first = JudgeFirst(fusion, audit)
    if first.mode is Fusion.RULES and first.audit == 0:
        return None
    return first if not roles_are_bound() or bound_judges(first.mode, first.audit) else None


def _solvers(system_prompt: str, records: Sequence[PromptRecord]) -> list[Solver]:
    # A solver that does nothing still costs events in every sample's transcript.
    first = [] if system_prompt == NONE else [system_prompt_solver(system_prompt)]
    # A model may call a tool that nobody offered. Inspect would tell it so and ask again, for ever.
    dialogues = any(record.before for record in records)
    return [*first, dialogue() if dialogues else generate(tool_calls="none")]


def sample(record: PromptRecord) -> Sample:
    """Make the Inspect sample of a prompt record; its metadata always has all keys."""
    metadata: dict[str, Any] = {
        "label": record.label.value,
        "category": record.category,
        "language": record.language,
        "source": record.source,
        "method": record.method,
        "seed_id": record.seed_id,
        "pair_id": record.pair_id,
    }
    if record.meta:
        metadata["meta"] = record.meta
    turns = [*record.before, Turn("user", record.prompt)]
    messages: list[ChatMessage] = [_MESSAGES[turn.role](content=turn.text) for turn in turns]
    return Sample(
        input=messages if record.before else record.prompt,
        target=record.label.value,
        id=record.id,
        metadata=metadata,
    )


def headline(prompts: LoadedPrompts) -> HeadlineMetric:
    """Name the rate that sums a run up; one over safe and toxic prompts together means nothing."""
    labels = {record.label for record in prompts.records}
    if Label.SAFE in labels:
        rate = "over_refusal_rate"
    else:
        rate = "toxic_rejection_rate" if Label.TOXIC in labels else "refusal_rate"
    return HeadlineMetric(scorer="refusal", metric=rate)


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


def prompts_summary(prompts: LoadedPrompts) -> dict[str, Any]:
    """Say what was loaded, and of which state; count what was dropped, labels and languages."""
    return {
        "name": prompts.name,
        "revision": prompts.revision,
        "duplicates_dropped": prompts.duplicates,
        "labels": dict(Counter(record.label.value for record in prompts.records)),
        "languages": dict(Counter(record.language for record in prompts.records)),
    }
