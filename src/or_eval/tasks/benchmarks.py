"""The refusal-testing tasks: published benchmarks, the bundled prompts, and prompts of your own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inspect_ai import Task, task

from or_eval.scorers.fusion import FusionName
from or_eval.scorers.refusal_scorer import refusal
from or_eval.sources import DataError, LoadedPrompts, catalogue, load_prompts
from or_eval.sources.loader import Subset
from or_eval.tasks.refusal_task import judge_first, refusal_task, typed_text

_NO_TEXT = ("subset", "per_label")


def benchmark(declared: Callable[[], None]) -> Callable[..., Task]:
    """Give a task its options.

    Args:
        declared: A function named as the task; its docstring says in one sentence what is tested,
            and is recorded in the log. A task named as a catalogue entry loads that entry. It
            stands below ``@task``, where ``inspect list tasks`` looks for tasks.

    Returns:
        What builds the task, for ``@task`` to register.
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
        framing: str = "none",
        fusion: FusionName = "cascade",
        audit: float = 0.0,
        audit_seed: int | None = None,
    ) -> Task:
        """Build the task.

        Args:
            data: Prompts to ask: a catalogue name, a Hub id or a path; for a benchmark, another
                copy of its own.
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
            framing: Contexts to set each prompt into: ``none``, ``all``, names or kinds, or a file
                (see ``docs/framing.md``).
            fusion: Who classes: ``cascade``, ``rules``, ``judge`` or ``both`` (see the scorer).
            audit: Share of the rules' certain verdicts that the judge checks as well.
            audit_seed: Choice of those; another in each run by default.
        """
        first = judge_first(fusion, audit)
        prompts = _load(
            declared.__name__,
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
            early_stopping=first,
            system_prompt=system_prompt,
            framing=framing,
            description=declared.__doc__ or "",
        )

    build.__name__ = build.__qualname__ = declared.__name__
    return build


def _load(task: str, data: object, **options: object) -> LoadedPrompts:
    """Load the prompts of a task.

    Args:
        task: The task's name. If it is a catalogue entry's, that is what it loads without `data`,
            and how it reads `data` without a source.
        data: Another copy of the data: a path, a Hub id or a catalogue name.
        **options: What :func:`load_prompts` takes besides, as it came from ``-T``.

    Raises:
        DataError: An option has no meaning, or the data can't be read.
    """
    entry = task if task in catalogue() else None
    place = typed_text("data", data)
    if place is None and entry is None:
        raise DataError("data: give a catalogue name, a Hub id or a path (-T data=...)")
    given: dict[str, Any] = {
        name: value if name in _NO_TEXT else typed_text(name, value)
        for name, value in options.items()
    }
    if place is not None and place != entry:
        given["source"] = given.get("source") or entry
    return load_prompts(place or str(entry), **given)


@task
@benchmark
def starter() -> None:
    """Over-refusal and toxic rejection on or-eval's bundled starter prompts."""


@task
@benchmark
def or_bench_80k() -> None:
    """Over-refusal on the 80,000 safe prompts of OR-Bench that look harmful."""


@task
@benchmark
def or_bench_hard_1k() -> None:
    """Over-refusal on the hardest thousand safe prompts of OR-Bench."""


@task
@benchmark
def or_bench_toxic() -> None:
    """Toxic rejection on the toxic prompts of OR-Bench."""


@task
@benchmark
def lto() -> None:
    """Over-refusal on long safe prompts with a sensitive part."""


@task
@benchmark
def xstest() -> None:
    """Over-refusal on XSTest's safe prompts, toxic rejection on its contrasts."""


@task
@benchmark
def prompts() -> None:
    """Refusals on prompts of your own, or on any set of the catalogue."""
