"""Any prompts: a set of the catalogue, a data set on the Hub, or a file."""

from __future__ import annotations

from inspect_ai import Task, task

from or_eval.scorers.refusal_scorer import refusal
from or_eval.tasks.refusal_task import refusal_task
from or_eval.tasks.task_prompts import load_task_prompts


@task
def prompts(
    data: str | None = None,
    source: str | None = None,
    label: str | None = None,
    system_prompt: str = "none",
    language: str | None = None,
    category: str | None = None,
    fusion: str = "cascade",
    audit: float = 0.0,
    audit_seed: int | None = None,
) -> Task:
    """Prompts of your own, or any set of the catalogue.

    Args:
        data: A catalogue name, a Hub id, or a csv, tsv, jsonl, json, txt or parquet path.
        source: Catalogue entry to read `data` by; needed only where the columns don't tell.
        label: Label of all prompts in a file of one kind.
        system_prompt: ``helpful``, ``safe``, ``none``, a path, or text.
        language: Keep prompts of this language.
        category: Keep prompts of this category.
        fusion: Who classes: ``cascade``, ``rules``, ``judge`` or ``both`` (see the scorer).
        audit: Share of the rules' certain verdicts that the judge checks as well.
        audit_seed: Choice of those; another in each run by default.
    """
    loaded = load_task_prompts(
        None, data, source=source, label=label, language=language, category=category
    )
    return refusal_task(
        loaded,
        scorer=refusal(fusion, audit, audit_seed),
        system_prompt=system_prompt,
        description=f"Refusals on the prompts of {loaded.name}.",
    )
