"""What a stage is: parameters, a function from prompt records to prompt records, a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from or_eval.dataset_builders.engine.conversations import Question, Talk
from or_eval.dataset_builders.engine.models import Binding, BoundModel, digest_of
from or_eval.dataset_builders.engine.rounds import Short
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.workers import Map
from or_eval.schema import PromptRecord
from or_eval.sources import catalogue

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.scorer import Scorer

WRITER = "writer"
MODERATOR = "moderator"
CLASSIFIER = "classifier"
TRANSLATOR = "translator"
TARGET = "target"
"""Stands among the roles for the models under test."""

Item = TypeVar("Item")

SHORT_PROMPT_TOKENS = 40
"""Tokens of a prompt of a sentence or two, where nothing better is known."""
RESPONSE_TOKENS = 300
"""Tokens of a response, where nothing better is known."""


_CHARS_PER_TOKEN = 4


def estimated_tokens(*texts: str) -> int:
    """Estimate the tokens of texts together."""
    return sum(map(len, texts)) // _CHARS_PER_TOKEN


class StageParams(BaseModel):
    """What a recipe may say to a stage; each stage's own subclass names and explains its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Kept(NamedTuple):
    """A row that a stage keeps."""

    record: PromptRecord


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


class Chosen(NamedTuple):
    """A row of a subset of what a stage keeps; a later stage takes it with ``STAGE.SUBSET``.

    Attributes:
        subset: Name of the subset.
        record: The row; None to say that there is such a subset, which may stay empty.
    """

    subset: str
    record: PromptRecord | None


class Table(NamedTuple):
    """A further table, which is saved beside the rows.

    Attributes:
        name: Its name.
        rows: Rows of plain values.
    """

    name: str
    rows: list[dict[str, Any]]


class Tested(NamedTuple):
    """Logs of refusal tests, for the stages that follow."""

    logs: list[str]


class Used(NamedTuple):
    """Names of models that a stage used beside those of its roles, by what they are."""

    models: dict[str, list[str]]


Outcome: TypeAlias = Kept | Dropped | Chosen | Table | Tested | Used | Short
"""What a stage gives, one after the other, in an order that depends on its input alone."""


Asked: TypeAlias = Literal["panel", "turns"]
"""How a stage asks the models of a role: all of them, or each thing one of them in turn."""


Makes: TypeAlias = Literal["nothing", "beside", "instead"]
"""Which rows a stage makes or brings from elsewhere: none, so that each row that comes in is kept
or dropped, once; some beside those; or others instead of those, which say what they came from."""


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
        rows: Rows kept, where none is dropped.
        calls: What models are asked.
        row_tokens: Tokens of a row's prompt; None where the stage doesn't change them.
        subsets: Rows of its subsets.
    """

    rows: int
    calls: tuple[Calls, ...] = ()
    row_tokens: int | None = None
    subsets: Mapping[str, int] = MappingProxyType({})


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
        params: Its parameters, defaults included.
        figures: Its tables of one row, by name, such as the agreement of a panel.
        sources: Rows kept by source.
        missing: Rows that were to be there at its end and aren't.
        made: Rows that it made or brought from elsewhere. Rows in (where these go on) and made are
            as many as rows out and dropped.
    """

    name: str
    kind: str
    rows_in: int
    rows_out: int
    dropped: dict[str, int]
    models: dict[str, list[str]]
    prompts: dict[str, str]
    subsets: dict[str, int]
    params: Mapping[str, Any] = MappingProxyType({})
    figures: Mapping[str, dict[str, Any]] = MappingProxyType({})
    sources: Mapping[str, int] = MappingProxyType({})
    missing: int = 0
    made: int = 0


class Spent(NamedTuple):
    """What one model in one role of one stage took, in all runs of a build.

    Attributes:
        stage: Name of the stage.
        role: The role; ``target`` for a model under test.
        model: Name of the model.
        calls: Requests that were answered.
        input_tokens: Tokens sent, those that a provider had in its cache included.
        output_tokens: Tokens returned, those of reasoning included.
        dollars: What they cost; None where nobody knows the price.
    """

    stage: str
    role: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    dollars: float | None


class Ask(Protocol):
    """Has questions answered: gives each item with its conversations, in the items' order."""

    def __call__(
        self, items: Iterable[tuple[Item, Sequence[Question[Talk]]]]
    ) -> Iterator[tuple[Item, list[Talk]]]: ...


class Verdicts(NamedTuple):
    """How responses are judged, again where they were judged otherwise.

    Attributes:
        mark: What stands for all that the verdicts depend on.
        scorers: Makes the scorers.
        roles: The models that they ask, by role.
    """

    mark: str
    scorers: Callable[[], list[Scorer]]
    roles: Mapping[str, Sequence[BoundModel]]


class TestModel(Protocol):
    """Runs a task on the rows that it wasn't run on; gives the logs that hold all of them."""

    def __call__(
        self,
        rows: Rows,
        model: BoundModel,
        mark: str,
        task: Callable[[list[PromptRecord]], Task],
        verdicts: Verdicts,
    ) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class StageContext:
    """What a stage may use beside its rows and parameters.

    Attributes:
        taxonomy: Name of the recipe's taxonomy.
        language: BCP-47 tag of the language the recipe writes in.
        limit: Most seeds to start from, where the build was given ``--limit``.
        out: Folder of the build.
        inputs: Rows by input, as the recipe names them (``moderate``, ``moderate.toxic``).
        named: Rows by the stage's named inputs (:attr:`Stage.takes`).
        subsets: Subsets of the inputs by name.
        input_logs: Logs of refusal tests that the inputs bring.
        earlier: The stages that ran before this one.
        recipe: The recipe as data, for the data card.
        models: The models of each role, and under "" those of every other.
        spent: What the build spent before this stage, in all its runs.
        row_tokens: Estimate of the tokens of a row's prompt, for a plan.
        short: For a stage that gives more on demand, what was short after it, round by round.
        ask: Has questions answered.
        test: Tests a model.
        map: Calls a function with parts of the rows, on whatever workers the build has.
    """

    taxonomy: str
    language: str
    limit: int | None
    out: Path
    inputs: Mapping[str, Rows]
    named: Mapping[str, Rows]
    subsets: Mapping[str, Rows]
    input_logs: Sequence[str]
    earlier: Sequence[StageFacts]
    recipe: Mapping[str, Any]
    models: Mapping[str, Binding]
    spent: Sequence[Spent]
    row_tokens: int
    short: Sequence[Sequence[Short]]
    ask: Ask
    test: TestModel
    map: Map

    @property
    def source(self) -> str:
        """The source of what a build writes: the recipe's name, where no public set has it."""
        name = str(self.recipe["name"])
        return f"{name}-built" if name in catalogue() else name

    def panel(self, role: str) -> tuple[BoundModel, ...]:
        """Give the models of a role that are all to be asked."""
        return self._bound(role)

    def in_turn(self, role: str, about: str) -> tuple[BoundModel, ...]:
        """Give the models of a role in the turn in which they are asked about something.

        The turn hangs on the thing and the models alone: another model among them takes over its
        share of the things, and the others stay where they are.
        """
        models = self._bound(role)
        if len(models) == 1:
            return models
        return tuple(sorted(models, key=lambda model: digest_of([about, model.identity])))

    def _bound(self, role: str) -> tuple[BoundModel, ...]:
        bound = self.models.get(role) or self.models.get("")
        return bound.models if bound is not None else ()


def _no_files(_: Any) -> Sequence[Path]:
    return ()


def _no_names(_: Any) -> Sequence[str]:
    return ()


def _no_models(_: Any) -> Sequence[BoundModel]:
    return ()


def _nothing_to_load(_: Any) -> None:
    return None


def _always(_: Any) -> bool:
    return True


def _all_stay(rows: int, _: Any, __: StageContext) -> Plan:
    return Plan(rows)


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
        run: From rows to what becomes of them. The rows of several inputs come one after the
            other, without duplicates.
        plan: From the number of rows that come in at most to an estimate; by default all may stay.
        roles: Model roles that it asks, and whether all models of a role are asked (``panel``) or
            each thing has one of them (``turns``).
        asks: Whether it asks them at all with given parameters.
        optional_roles: Model roles that it asks where they are bound.
        describes_recipe: Whether its result tells of the whole recipe, as a data card does; any
            change of the recipe reruns it.
        parts: Names of the subsets that it can give and of the reasons for which it can drop
            rows, which recipes may take as ``STAGE.PART``; one that ends in ``*`` stands for all
            that begin so. None where a stage doesn't tell.
        gives_logs: Whether it gives logs of tested models.
        tests: The models that it tests.
        passes_logs: Whether it gives its inputs' logs on.
        problem: What keeps well-formed parameters from running where they stand, in a line.
        ready: Loads what the stage needs beside models to ask, before anything is asked; raises
            :class:`BuildError` where it can't.
        once: Whether a recipe may have only one such stage.
        writes: Files in the build's folder that it writes beside its rows; where one is gone, the
            stage runs again.
        prompts: Prompt files that its result depends on; a changed file reruns the stage.
        data: Data from outside that its result depends on: files, folders, catalogue names and
            Hub ids.
        takes: Names of the inputs that it takes beside its rows.
        makes: Which rows it makes or brings from elsewhere; the engine checks that no row is lost.
            A stage that takes no input makes all of its rows.
        says_short: Whether it says what is short, so that a recipe can repeat what is before it.
        gives_more: Whether it gives more where a stage after it says what is short.
    """

    params: type[StageParams]
    run: Callable[[Rows, Any, StageContext], Iterator[Outcome]]
    plan: Callable[[int, Any, StageContext], Plan] = _all_stay
    roles: Mapping[str, Asked] = field(default_factory=dict)
    asks: Callable[[Any], bool] = _always
    optional_roles: Mapping[str, Asked] = field(default_factory=dict)
    describes_recipe: bool = False
    parts: Callable[[Any], Sequence[str]] | None = None
    gives_logs: bool = False
    tests: Callable[[Any], Sequence[BoundModel]] = _no_models
    passes_logs: bool = False
    problem: Callable[[Any, Place], str | None] = _fits
    ready: Callable[[Any], None] = _nothing_to_load
    once: bool = False
    writes: Callable[[StageFacts], Sequence[str]] = _no_names
    prompts: Callable[[Any], Sequence[Path]] = _no_files
    data: Callable[[Any], Sequence[str]] = _no_names
    takes: tuple[str, ...] = ()
    makes: Makes = "nothing"
    says_short: bool = False
    gives_more: bool = False

    def roles_asked(self, params: StageParams) -> Mapping[str, Asked]:
        """Give the roles that need a model with these parameters."""
        return self.roles if self.asks(params) else {}
