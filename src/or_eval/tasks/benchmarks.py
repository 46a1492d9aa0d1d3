"""The refusal-testing tasks: published benchmarks, the bundled prompts, and prompts of your own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from inspect_ai import Task, task

from or_eval.scorers.refusal_scorer import refusal
from or_eval.sources.choosing_prompts import Subset
from or_eval.tasks.refusal_task import refusal_task
from or_eval.tasks.task_prompts import load_task_prompts


def benchmark_task(name: str, description: str, entry: str | None = None) -> Callable[..., Task]:
    """Make and register a task.

    Args:
        name: Its name.
        description: One sentence on what is tested, recorded in the log.
        entry: The catalogue entry that it loads without `data`, and that reads `data` without
            `source`; None for a task of no particular benchmark.

    Returns:
        The task, as ``@task`` gives it.
    """

    def build(
        data: str | None = None,
        source: str | None = None,
        label: str | None = None,
        prompt_column: str | None = None,
        label_column: str | None = None,
        subset: Subset = "all",
        language: str | None = None,
        category: str | None = None,
        per_label: int | None = None,
        system_prompt: str = "none",
        fusion: Literal["cascade", "rules", "judge", "both"] = "cascade",
        audit: float = 0.0,
        audit_seed: int | None = None,
    ) -> Task:
        """Build the task.

        Args:
            data: Prompts to ask: a catalogue name, a Hub id or a path; for a benchmark, another
                copy of its own. ``TASK=DATA`` is for the task of that name alone.
            source: Catalogue entry to read `data` by; needed only where the columns don't tell.
            label: Label of all prompts in `data`, where neither entry nor columns say it; or what
                its words for them mean, as ``0=safe,1=toxic``.
            prompt_column: The column of `data` with the prompts, where its name doesn't tell.
            label_column: The column of `data` with the labels, where its name doesn't tell.
            subset: Which prompts to keep: ``safe``, ``toxic`` (or ``unsafe``) or ``all``.
            language: Keep prompts of this language.
            category: Keep prompts of this category, or of these, with commas between them.
            per_label: Keep this many prompts of each label, spread over their categories.
            system_prompt: ``helpful``, ``safe``, ``none``, a path, or text.
            fusion: Who classes: ``cascade``, ``rules``, ``judge`` or ``both`` (see the scorer).
            audit: Share of the rules' certain verdicts that the judge checks as well.
            audit_seed: Choice of those; another in each run by default.
        """
        prompts = load_task_prompts(
            name,
            entry,
            data,
            source=source,
            label=label,
            prompt_column=prompt_column,
            label_column=label_column,
            subset=subset,
            language=language,
            category=category,
            per_label=per_label,
        )
        return refusal_task(
            prompts,
            scorer=refusal(fusion, audit, audit_seed),
            system_prompt=system_prompt,
            description=description,
        )

    build.__name__ = build.__qualname__ = name
    return task(name=name)(build)


def _of_entry(entry: str, description: str) -> Callable[..., Task]:
    return benchmark_task(entry, description, entry)


starter = _of_entry(
    "starter", "Over-refusal and toxic rejection on or-eval's bundled starter prompts."
)
or_bench_80k = _of_entry(
    "or_bench_80k", "Over-refusal on the 80,000 safe prompts of OR-Bench that look harmful."
)
or_bench_hard_1k = _of_entry(
    "or_bench_hard_1k", "Over-refusal on the hardest thousand safe prompts of OR-Bench."
)
or_bench_toxic = _of_entry("or_bench_toxic", "Toxic rejection on the toxic prompts of OR-Bench.")
lto = _of_entry("lto", "Over-refusal on long safe prompts with a sensitive part.")
xstest = _of_entry(
    "xstest", "Over-refusal on XSTest's safe prompts, toxic rejection on its contrasts."
)
prompts = benchmark_task("prompts", "Refusals on a set of prompts.")
