"""What a stage is: parameters, a function from prompt records to prompt records, a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from or_eval.schema import PromptRecord

if TYPE_CHECKING:
    from inspect_ai import Task

WRITER = "writer"
MODERATOR = "moderator"

SHORT_PROMPT_TOKENS = 40
"""Tokens of a prompt of a sentence or two, where nothing better is known."""


class StageParams(BaseModel):
    """What a recipe may say to a stage; each stage's own subclass names and explains its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Dropped(NamedTuple):
    """A row that a stage did not keep.

    Attributes:
        record: The row; for a text that never became one, a record of that text.
        reason: Why, in a word or two that is the same for all such rows; a row of the funnel.
            A later stage takes such rows with ``input: STAGE.REASON``.
        detail: What is particular about this row.
    """

    record: PromptRecord
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a stage gives.

    Attributes:
        rows: The rows kept, in an order that depends on the input alone.
        dropped: The rows not kept, with their reasons.
        subsets: Named selections of the rows; a later stage takes one with ``input: STAGE.NAME``.
        tables: Further tables by name, as rows of plain values; they are saved beside the rows.
        logs: Logs that the next stage reads (those of refusal tests).
        models: Names of models that it asked beside those of its roles, by what they are.
    """

    rows: list[PromptRecord]
    dropped: list[Dropped] = field(default_factory=list)
    subsets: dict[str, list[PromptRecord]] = field(default_factory=dict)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    logs: list[str] = field(default_factory=list)
    models: dict[str, list[str]] = field(default_factory=dict)


class Calls(NamedTuple):
    """An estimate of what one model of a role is asked.

    Attributes:
        role: The role, or the name of a model.
        calls: Number of calls.
        input_tokens: Tokens sent in all of them.
        output_tokens: Tokens returned in all of them.
    """

    role: str
    calls: int
    input_tokens: int = 0
    output_tokens: int = 0


class Plan(NamedTuple):
    """An estimate of what a stage will do.

    Attributes:
        rows: Rows kept, at most.
        calls: What models are asked.
        row_tokens: Tokens of a row's prompt; None where the stage doesn't change them.
    """

    rows: int
    calls: tuple[Calls, ...] = ()
    row_tokens: int | None = None


class Answer(NamedTuple):
    """What a task found out about one of its samples.

    Attributes:
        id: The sample's id.
        found: The metadata of its score.
    """

    id: str
    found: dict[str, Any]


class StageFacts(NamedTuple):
    """What is known of a stage that ran, for the funnel and the data card.

    Attributes:
        name: Its name in the recipe.
        kind: Which stage it is.
        rows_in: Rows that went in.
        rows_out: Rows kept.
        dropped: Rows dropped by reason.
        models: Names of the models asked, by role.
        prompts: First 12 hex digits of the SHA-256 of each prompt file used, by file name.
        subsets: Rows by subset.
    """

    name: str
    kind: str
    rows_in: int
    rows_out: int
    dropped: dict[str, int]
    models: dict[str, list[str]]
    prompts: dict[str, str]
    subsets: dict[str, int]


@dataclass(frozen=True, slots=True)
class StageContext:
    """What a stage may use beside its rows and parameters.

    Attributes:
        taxonomy: Name of the recipe's taxonomy.
        language: BCP-47 tag of the language the recipe writes in.
        limit: Most seeds to start from, where the build was given ``--limit``.
        out: Folder of the build.
        inputs: Rows by input, as the recipe names them (``moderate``, ``moderate.toxic``).
        subsets: Subsets of the inputs by name.
        input_logs: Logs of the inputs (:attr:`StageResult.logs`).
        earlier: The stages that ran before this one.
        recipe: The recipe as data, for the data card.
        models: Names of the models bound to each role, and under "" that of ``--model``.
        row_tokens: Estimate of the tokens of a row's prompt, for a plan.
        ask: Runs a task with the build's models and gives an answer per sample, in the order of
            the task's samples; a sample that failed stops the build, resumably. The task has one
            scorer, whose score's metadata is the answer.
        ask_each: Runs a task once for each of the models named, as an Inspect eval set; gives the
            locations of the logs.
    """

    taxonomy: str
    language: str
    limit: int | None
    out: Path
    inputs: Mapping[str, list[PromptRecord]]
    subsets: Mapping[str, list[PromptRecord]]
    input_logs: Sequence[str]
    earlier: Sequence[StageFacts]
    recipe: Mapping[str, Any]
    models: Mapping[str, list[str]]
    row_tokens: int
    ask: Callable[[Task], list[Answer]]
    ask_each: Callable[[Task, Sequence[str]], list[str]]


def _no_files(_: Any) -> Sequence[Path]:
    return ()


def _no_names(_: Any) -> Sequence[str]:
    return ()


def _always(_: Any) -> bool:
    return True


def _fits(_: Any, __: Place) -> None:
    return None


class Place(NamedTuple):
    """Where a stage stands in a recipe, for what it has to check before anything runs.

    Attributes:
        taxonomy: Name of the recipe's taxonomy.
        inputs: What it starts from, as the recipe names it.
        tested: Names of the models whose logs its inputs bring; None where they bring no logs.
    """

    taxonomy: str
    inputs: tuple[str, ...]
    tested: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: everything the pipeline needs to know of it.

    Attributes:
        params: What a recipe may say to it.
        run: From rows to rows. The rows of several inputs come one after the other, without
            duplicates.
        plan: From the number of rows that come in at most to an estimate.
        roles: Model roles that it asks.
        asks: Whether it asks them at all with given parameters.
        optional_roles: Model roles that it asks where they are bound.
        describes_recipe: Whether its result tells of the whole recipe, as a data card does; any
            change of the recipe reruns it.
        parts: Names of the subsets that it can give and of the reasons for which it can drop
            rows, which recipes may take as ``STAGE.PART``; one that ends in ``*`` stands for all
            that begin so. None where a stage doesn't tell.
        gives_logs: Whether it gives logs of tested models.
        tests: Names of the models that it tests.
        passes_logs: Whether it gives its inputs' logs on.
        problem: What keeps well-formed parameters from running where they stand, in a line.
        once: Whether a recipe may have only one such stage.
        writes: Files in the build's folder that it writes beside its rows; where one is gone, the
            stage runs again.
        prompts: Prompt files that its result depends on; a changed file reruns the stage.
        data: Data from outside that its result depends on: files, folders, catalogue names and
            Hub ids.
        version: Raised when the code changes what comes out of the same input.
    """

    params: type[StageParams]
    run: Callable[[list[PromptRecord], Any, StageContext], StageResult]
    plan: Callable[[int, Any, StageContext | None], Plan]
    roles: tuple[str, ...] = ()
    asks: Callable[[Any], bool] = _always
    optional_roles: tuple[str, ...] = ()
    describes_recipe: bool = False
    parts: Callable[[Any], Sequence[str]] | None = None
    gives_logs: bool = False
    tests: Callable[[Any], Sequence[str]] = _no_names
    passes_logs: bool = False
    problem: Callable[[Any, Place], str | None] = _fits
    once: bool = False
    writes: Callable[[StageFacts], Sequence[str]] = _no_names
    prompts: Callable[[Any], Sequence[Path]] = _no_files
    data: Callable[[Any], Sequence[str]] = _no_names
    version: int = 1

    def roles_asked(self, params: StageParams) -> tuple[str, ...]:
        """Give the roles that need a model with these parameters."""
        return self.roles if self.asks(params) else ()
