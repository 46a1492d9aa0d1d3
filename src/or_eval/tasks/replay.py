"""Stored responses as a task: the prompts of a file of responses, answered by ``replay/MODEL``."""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task, task_with
from inspect_ai.model import get_model
from inspect_ai.solver import generate
from inspect_ai.util import EarlyStop

from or_eval.models.replay import PROVIDER, check_epochs
from or_eval.schema import prompt_id
from or_eval.scorers.choosing_stages import FusionName
from or_eval.scorers.refusal_scorer import refusal
from or_eval.tasks.refusal_task import JudgeFirst, judge_first, refusal_task


@task
def replay(
    responses: str,
    model: str,
    prompts: str | None = None,
    source: str | None = None,
    label: str | None = None,
    columns: dict[str, str] | None = None,
    fusion: FusionName = "cascade",
    audit: float = 0.0,
    audit_seed: int | None = None,
) -> Task:
    """Responses of one model that were collected elsewhere; ``or-eval replay`` runs this task.

    Args:
        responses: File of stored responses.
        model: The model, as it is named in the file.
        prompts: Prompts to ask instead of the file's own: a catalogue name, a Hub id or a path.
        source: Catalogue entry to read `prompts` by.
        label: Label of all prompts, where nothing else tells it: ``safe`` or ``toxic``; or what
            the words of the file's labels mean, as ``0=safe,1=toxic``.
        columns: Names of the file's columns where they don't tell, as ``prompt_column``.
        fusion: Who classes: ``cascade``, ``rules``, ``judge`` or ``both`` (see the scorer).
        audit: Share of the rules' certain verdicts that the judge checks as well.
        audit_seed: Choice of those; another in each run by default.
    """
    # Imported here, so that listing tasks doesn't load what only reading files needs.
    from or_eval.sources.answered_prompts import answered_prompts
    from or_eval.sources.responses import load_responses

    judge_first(fusion, audit)
    named: dict[str, Any] = columns or {}
    file = load_responses(responses, **named)
    answered = answered_prompts(file, model, prompts, source, label)
    built = refusal_task(
        answered.prompts,
        scorer=refusal(fusion, audit, audit_seed),
        system_prompt="none",
        description=f"Stored responses of {model} from {file.table.title}.",
    )
    answers = file.answers_of(model)
    check_epochs(file.table.title, answers)
    records = answered.prompts.records
    counts = {r.id: len(answers.get(prompt_id(r.prompt, r.before), [])) for r in records}
    return task_with(
        built,
        # What a dialogue leaves unanswered on the way stays so: only its last answer is stored.
        solver=generate(tool_calls="none"),
        model=get_model(f"{PROVIDER}/{model}", memoize=False, responses=responses, **named),
        epochs=max(*counts.values(), 1),
        early_stopping=_StoredEpochs(counts, fusion, audit),
        # A prompt without a response fails, and says so; the others are results all the same.
        fail_on_error=False,
        metadata={
            **(built.metadata or {}),
            "responses": {
                "file": str(responses),
                "sha256": str(file.table.revision).removeprefix("sha256:"),
                "model": model,
                "rows_repeated": file.copies,
                "prompts_contradictory": answered.contradictory,
                "prompts_left_out": answered.left_out,
            },
        },
    )


class _StoredEpochs(JudgeFirst):
    """Ends a prompt's epochs with its responses, where others have more.

    A prompt with no response at all has one epoch, in which the model says so.
    """

    def __init__(self, responses_by_id: dict[str, int], fusion: str, audit: float) -> None:
        super().__init__(fusion, audit)
        self._responses_by_id = responses_by_id

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        stored = self._responses_by_id[str(id)]
        if epoch <= max(stored, 1):
            return None
        return EarlyStop(id=id, epoch=epoch, reason=f"{stored} responses are stored")
