"""Inspect logs for tests, written by Inspect itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
from inspect_ai.log._log import EvalError, EvalResults, EvalScore
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score

CREATED = "2025-03-01T12:00:{:02d}+00:00"
UNSCORED = float("nan")


def made_sample(
    sample_id: str | int,
    value: Any = 1.0,
    *,
    answer: str | None = None,
    prompt: str | None = None,
    epoch: int = 1,
    scorer: str = "refusal",
    error: str | None = None,
    response: str = "No.",
    reason: str | None = None,
    score: dict[str, Any] | None = None,
    **metadata: Any,
) -> EvalSample:
    """Make a sample; a value of None leaves it without a score, a class may stand beside it."""
    record = dict.fromkeys(("category", "language", "source", "method", "seed_id", "pair_id"))
    data = {"label": "safe", **record, **metadata}
    if answer is None and value == value:
        answer = {1.0: "direct_refusal", 0.0: "direct_answer"}.get(value)
    verdict = {"decided_by": "rules", "certain": True, "language": "en", "audited": False}
    scores = value is not None and {
        scorer: Score(value=value, answer=answer, reason=reason, metadata=verdict | (score or {}))
    }
    return EvalSample(
        id=sample_id,
        epoch=epoch,
        input=prompt if prompt is not None else f"prompt {sample_id}",
        target=str(data["label"]),
        metadata=data,
        output=ModelOutput.from_content("m", response),
        scores=scores or None,
        error=EvalError(message=error, traceback=error, traceback_ansi=error) if error else None,
    )


def made_log(
    path: Path,
    model: str,
    samples: list[EvalSample],
    *,
    task: str = "or_eval/prompts",
    second: int = 0,
    status: str = "success",
    task_id: str = "",
    **spec: Any,
) -> Path:
    """Write a log, created at the given second, its head with what else is given; its path."""
    ids = list(dict.fromkeys(sample.id for sample in samples))
    names = {name for sample in samples for name in sample.scores or {}}
    log = EvalLog(
        status=status,
        eval=EvalSpec(
            created=CREATED.format(second),
            task=task,
            task_id=task_id,
            model=model,
            dataset=EvalDataset(name="made", samples=len(ids), sample_ids=ids),
            config=EvalConfig(epochs=max((sample.epoch for sample in samples), default=1)),
            **spec,
        ),
        results=EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=[EvalScore(name=name, scorer=name) for name in sorted(names)],
        ),
        samples=samples,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_eval_log(log, str(path))
    return path


def votes_log(folder: Path, model: str, votes: dict[str, float | None], **options: Any) -> Path:
    """Write a log of one sample a prompt with the given score values."""
    samples = [made_sample(key, value) for key, value in votes.items()]
    return made_log(folder / f"{model.replace('/', '-')}.eval", model, samples, **options)
