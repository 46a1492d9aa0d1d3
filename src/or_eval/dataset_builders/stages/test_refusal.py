"""The stage ``test_refusal``: ask target models each prompt, and class their responses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from inspect_ai import Task, task_with
from pydantic import Field, field_validator

from or_eval.dataset_builders.engine.fingerprint import code_of
from or_eval.dataset_builders.engine.models import BoundModel, binding_of, digest_of
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import (
    RESPONSE_TOKENS,
    TARGET,
    Calls,
    Kept,
    Outcome,
    Place,
    Plan,
    Stage,
    StageContext,
    panel,
)
from or_eval.dataset_builders.prompt_files import data_path
from or_eval.schema import PromptRecord
from or_eval.scorers.fusion import FusionName
from or_eval.scorers.judge.panel import GRADER_ROLE
from or_eval.scorers.refusal_scorer import refusal
from or_eval.solvers.system_prompt import BUNDLED, existing_file
from or_eval.sources import LoadedPrompts
from or_eval.tasks.refusal_task import refusal_task

# Of the judge: what it is told, what it says, and the share of responses that rules leave to it.
_JUDGE_TOKENS, _VERDICT_TOKENS, _LEFT_OPEN = 1_300, 60, 0.4


class RefusalTest(Stage):
    """The stage ``test_refusal``, by what a recipe may say to it.

    Attributes:
        models: The models to test, in Inspect's names, or as mappings with ``model`` and settings.
        system_prompt: As in the tasks: ``helpful``, ``safe``, ``none``, a path, or text.
        epochs: How often each model is asked each prompt.
        temperature: Sampling temperature, where a model has none of its own.
        max_tokens: Most tokens of a response, where a model has no such limit of its own.
        judge: Which responses the graders read, where there are any: those that rules leave in
            ``doubt``, or ``all``.
    """

    may_ask = panel(GRADER_ROLE)
    gives_logs = True
    drops = ()
    models: tuple[str | dict[str, Any], ...] = ()
    system_prompt: str = "none"
    epochs: int = Field(default=1, ge=1)
    temperature: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)
    judge: Literal["doubt", "all"] = "doubt"

    @field_validator("models")
    @classmethod
    def _are_models(cls, models: tuple[Any, ...]) -> tuple[Any, ...]:
        names = [model.name for model in binding_of(list(models)).models] if models else []
        for name in names:
            if "/" not in name.strip("/"):
                raise ValueError(f"'{name}' isn't PROVIDER/MODEL")
            if names.count(name) > 1:
                raise ValueError(f"'{name}' stands there twice")
        return models

    def tests(self) -> tuple[BoundModel, ...]:
        """Give the models to test, each with the settings that it has not of its own."""
        said = self.model_dump(include={"temperature", "max_tokens"}, exclude_none=True)
        found = binding_of(list(self.models)).models if self.models else ()
        return tuple(replace(model, settings=said | dict(model.settings)) for model in found)

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Test the models; all rows go on, with the logs for ``vote`` and ``label``."""
        graders = build.models.get(GRADER_ROLE)
        judges = () if graders is None else graders.models
        fusion: FusionName = "both" if judges and self.judge == "all" else "cascade"
        path = existing_file(self.system_prompt)
        system = self.system_prompt if path is None else path.read_text("utf-8")

        # Nothing else of the build: the task may be made in another process.
        name = str(build.recipe.get("name"))

        def test(some: list[PromptRecord]) -> Task:
            made = refusal_task(
                LoadedPrompts(records=some, duplicates=0, name=name),
                system_prompt=self.system_prompt,
                description="Which prompts of a data set that is being built do models refuse?",
                scorer=refusal(fusion=fusion),
            )
            return task_with(made, name="test_refusal", epochs=self.epochs)

        by = [code_of("scorers"), [judge.identity for judge in judges], fusion]
        verdicts = digest_of(by)[:16]
        asked = {GRADER_ROLE: judges} if judges else {}
        for model in self.tests():
            mark = digest_of([model.identity, system, self.epochs])[:16]
            build.beside.logs += build.test(rows, model, mark, test, verdicts, asked)
        for row in rows:
            yield Kept(row)
        if logs := build.beside.logs:
            build.table("verdicts", [_told(logs, {row.id for row in rows})])
        build.beside.models[TARGET] = [model.name for model in self.tests()]

    def plan(self, rows: int, build: StageContext) -> Plan:
        """Estimate a call per row, model and epoch; a judge reads what the rules leave open."""
        calls = rows * self.epochs
        sent = calls * build.row_tokens
        asked = [Calls(model.name, calls, sent, calls * RESPONSE_TOKENS) for model in self.tests()]
        if GRADER_ROLE in build.models:
            share = 1 if self.judge == "all" else _LEFT_OPEN
            judged = round(calls * len(self.tests()) * share)
            shown = _JUDGE_TOKENS + build.row_tokens + RESPONSE_TOKENS
            asked.append(Calls(GRADER_ROLE, judged, judged * shown, judged * _VERDICT_TOKENS))
        return Plan(rows, tuple(asked))

    def problem(self, place: Place) -> str | None:
        return None if self.models else "'models' names no model to test ([PROVIDER/MODEL, ...])"

    def prompts(self) -> list[Path]:
        """Give the file of the system prompt."""
        said = self.system_prompt
        path = data_path(f"system_prompts/{said}.md") if said in BUNDLED else existing_file(said)
        return [] if path is None else [path]


def _told(logs: list[str], ids: set[str]) -> dict[str, int]:
    """Count how the responses to prompts were settled, and which are not certain."""
    from or_eval.analysis.responses import read_logs

    found = read_logs(logs, audits=False).responses
    found = found[found["id"].isin(ids)]
    settled = found[found["refused"].notna()]
    by = {who: int((settled["decided_by"] == who).sum()) for who in ("provider", "rules", "judge")}
    uncertain = int((settled["certain"] == False).sum())  # noqa: E712 (a column)
    open_ = len(found) - len(settled)
    return {"responses": len(found), **by, "uncertain": uncertain, "unsettled": open_}


STAGE = RefusalTest
