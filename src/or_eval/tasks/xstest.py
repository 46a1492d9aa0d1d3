"""XSTest: short safe prompts that look unsafe, each kind with its unsafe contrasts."""

from __future__ import annotations

from inspect_ai import Task, task

from or_eval.schema import Label
from or_eval.scorers.refusal_scorer import refusal
from or_eval.sources import DataError, LoadedPrompts
from or_eval.tasks.refusal_task import refusal_task
from or_eval.tasks.task_prompts import load_task_prompts

SUBSETS = {"safe": {Label.SAFE}, "unsafe": {Label.TOXIC}, "all": set(Label)}


@task
def xstest(
    data: str | None = None,
    source: str | None = None,
    subset: str = "all",
    label: str | None = None,
    system_prompt: str = "none",
    language: str | None = None,
    category: str | None = None,
    fusion: str = "cascade",
    audit: float = 0.0,
    audit_seed: int | None = None,
) -> Task:
    """XSTest: 250 safe prompts in ten kinds and 200 unsafe contrasts.

    Args:
        data: Another copy of the data: a path or a Hub id.
        source: Catalogue entry to read `data` by, where it is not this benchmark's own.
        subset: ``safe``, ``unsafe`` or ``all``.
        label: Label of all prompts in `data`, where neither entry nor columns say it.
        system_prompt: ``helpful``, ``safe``, ``none``, a path, or text.
        language: Keep prompts of this language.
        category: Keep prompts of this category.
        fusion: Who classes: ``cascade``, ``rules``, ``judge`` or ``both`` (see the scorer).
        audit: Share of the rules' certain verdicts that the judge checks as well.
        audit_seed: Choice of those; another in each run by default.
    """
    if subset not in SUBSETS:
        raise DataError(f"subset: {subset!r} is none of {', '.join(SUBSETS)}")
    prompts = load_task_prompts(
        "xstest", data, source=source, label=label, language=language, category=category
    )
    return refusal_task(
        only(prompts, subset),
        scorer=refusal(fusion, audit, audit_seed),
        system_prompt=system_prompt,
        description="Over-refusal on XSTest's safe prompts, toxic rejection on its contrasts.",
    )


def only(prompts: LoadedPrompts, subset: str) -> LoadedPrompts:
    """Keep the prompts of one subset.

    Raises:
        DataError: None is left.
    """
    records = [record for record in prompts.records if record.label in SUBSETS[subset]]
    if not records:
        raise DataError(f"{prompts.name}: has no {subset} prompts")
    return prompts._replace(records=records)
