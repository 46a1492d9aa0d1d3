"""What the tasks of published benchmarks share: the same options on the same loader."""

from __future__ import annotations

from collections.abc import Callable

from inspect_ai import Task, task

from or_eval.scorers.refusal_scorer import refusal
from or_eval.tasks.refusal_task import refusal_task
from or_eval.tasks.task_prompts import load_task_prompts


def benchmark_task(entry: str, description: str) -> Callable[..., Task]:
    """Make and register the task of a benchmark.

    Args:
        entry: Its catalogue entry, which is the task's name too.
        description: One sentence on what is tested, recorded in the log.

    Returns:
        The task, as ``@task`` gives it.
    """

    def build(
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
        """Build the task.

        Args:
            data: Another copy of the data: a path or a Hub id.
            source: Catalogue entry to read `data` by, where it is not this benchmark's own.
            label: Label of all prompts in `data`, where neither entry nor columns say it.
            system_prompt: ``helpful``, ``safe``, ``none``, a path, or text.
            language: Keep prompts of this language.
            category: Keep prompts of this category.
            fusion: Who classes: ``cascade``, ``rules``, ``judge`` or ``both`` (see the scorer).
            audit: Share of the rules' certain verdicts that the judge checks as well.
            audit_seed: Choice of those; another in each run by default.
        """
        prompts = load_task_prompts(
            entry, data, source=source, label=label, language=language, category=category
        )
        return refusal_task(
            prompts,
            scorer=refusal(fusion, audit, audit_seed),
            system_prompt=system_prompt,
            description=description,
        )

    build.__name__ = build.__qualname__ = entry
    return task(name=entry)(build)
