"""The stage ``rewrite``: write several new prompts from each seed, by a named method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from or_eval.dataset_builders.engine.ports import (
    WRITER,
    Calls,
    Dropped,
    Place,
    Plan,
    Stage,
    StageContext,
    StageParams,
    StageResult,
)
from or_eval.dataset_builders.engine.rows import written_from
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_files import prompt_path
from or_eval.dataset_builders.writing.language import folded
from or_eval.dataset_builders.writing.methods import load_method, method_path
from or_eval.dataset_builders.writing.rewrite_checks import DUPLICATE, REASONS, Written
from or_eval.dataset_builders.writing.rewriting import AGAIN, Settings, rewrite_task, shares_of
from or_eval.schema import Label, PromptRecord, taxonomies

_CHARS_PER_TOKEN = 4
_TOKENS_PER_WORD = 1.4
_SEED_TOKENS = 150


class RewriteParams(StageParams):
    """What a recipe may say to ``rewrite``; what it leaves out is the method's.

    Attributes:
        method: ``or_bench``, ``lto``, or the path of a method file of one's own.
        count: Rewrites wanted of each seed.
        min_words: Least length of a rewrite.
        max_words: Greatest length of a rewrite.
    """

    method: str
    count: int | None = Field(default=None, ge=1)
    min_words: int | None = Field(default=None, ge=1)
    max_words: int | None = Field(default=None, ge=1)

    @field_validator("method")
    @classmethod
    def _exists(cls, method: str) -> str:
        method_path(method)
        return method


def run(rows: list[PromptRecord], params: RewriteParams, context: StageContext) -> StageResult:
    """Rewrite the rows: of each come as many rows, kept or dropped, as the method writes.

    A rewrite that could not be had is dropped with what there is of it, or else with its seed.
    """
    settings = _settings(params, context.language)
    if not rows:
        return StageResult([])
    task = rewrite_task(rows, settings, taxonomies()[context.taxonomy])
    kept: list[PromptRecord] = []
    dropped: list[Dropped] = []
    table = []
    seen: set[str] = set()
    for seed, answer in zip(rows, context.ask(task), strict=True):
        reasons: Counter[str] = Counter()
        for written in (Written(**item) for item in answer.found["written"]):
            reason, detail = written.reason, written.detail
            record = _record(seed, written, _name(params.method), context.language)
            if reason is None and folded(record.prompt) in seen:
                reason, detail = DUPLICATE, "of a text from another seed"
            if reason is None:
                seen.add(folded(record.prompt))
                kept.append(record)
            else:
                reasons[reason] += 1
                dropped.append(Dropped(record, reason, detail))
        table.append(
            {
                "seed_id": seed.id,
                "category": seed.category,
                "kept": settings.count - reasons.total(),
                "dropped": _listed(reasons),
            }
        )
    return StageResult(kept, dropped, tables={"seeds": table})


def plan(rows: int, params: RewriteParams, context: StageContext | None) -> Plan:
    """Estimate the questions without those that are asked again."""
    settings = _settings(params, context.language if context else "en")
    method = settings.load()
    shares = shares_of(method)
    asked = sum(
        (len(method.system_for(share.part)) + len(method.request)) // _CHARS_PER_TOKEN
        for share in shares
    )
    words = max(min(2 * method.min_words, method.max_words), 20)
    tokens = round(words * _TOKENS_PER_WORD)
    return Plan(
        rows * settings.count,
        (
            Calls(
                WRITER,
                rows * len(shares),
                rows * (asked + len(shares) * _SEED_TOKENS),
                rows * settings.count * tokens,
            ),
        ),
        tokens,
    )


def _settings(params: RewriteParams, language: str) -> Settings:
    method = load_method(params.method)
    settings = Settings(
        params.method,
        params.count or method.count,
        params.min_words or method.min_words,
        params.max_words or method.max_words,
        language,
    )
    if settings.min_words > settings.max_words:
        raise BuildError(
            f"min_words ({settings.min_words}) is above max_words ({settings.max_words})"
        )
    return settings


def _record(seed: PromptRecord, written: Written, method: str, language: str) -> PromptRecord:
    if not written.text:
        return seed
    meta: dict[str, Any] = {"writer": written.writer}
    if written.part is not None:
        meta["sensitive_part"] = written.part
    if written.sensitive_text:
        meta["sensitive_text"] = written.sensitive_text
    origin = replace(seed, language=language)
    # Nobody has decided yet what it is, whatever its seed was.
    return written_from(origin, written.text, method=method, label=Label.UNLABELLED, meta=meta)


def _name(method: str) -> str:
    return Path(method).stem if method.endswith(".toml") else method


def _listed(reasons: Counter[str]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())


def _prompts(params: RewriteParams) -> Sequence[Path]:
    return method_path(params.method), prompt_path(AGAIN)


def _parts(params: RewriteParams) -> Sequence[str]:
    return REASONS


def _problem(params: RewriteParams, place: Place) -> str | None:
    _settings(params, "en")
    return None


STAGE = Stage(
    RewriteParams, run, plan, roles=(WRITER,), prompts=_prompts, parts=_parts, problem=_problem
)
