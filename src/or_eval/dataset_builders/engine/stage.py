"""What a stage is: a class whose fields are a recipe's keys, from rows to rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
)

from pydantic import BaseModel, ConfigDict

from or_eval.dataset_builders.engine.conversations import Came, Question
from or_eval.dataset_builders.engine.models import Binding, BoundModel, digest_of
from or_eval.dataset_builders.engine.rounds import Short
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.workers import Map, here
from or_eval.schema import PromptRecord
from or_eval.sources import catalogue

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


Outcome: TypeAlias = Kept | Dropped
"""What a stage gives, one after the other, in an order that depends on its input alone."""


Asked: TypeAlias = Literal["panel", "turns"]
"""How a stage asks the models of a role: all of them, or each thing one of them in turn."""


def panel(*roles: str) -> Mapping[str, Asked]:
    """Say of roles that all of their models are asked."""
    return dict.fromkeys(roles, "panel")


def turns(*roles: str) -> Mapping[str, Asked]:
    """Say of roles that their models take turns."""
    return dict.fromkeys(roles, "turns")


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
    """Has questions answered: gives each item with what its conversations came to, in order."""

    def __call__(
        self, items: Iterable[tuple[Item, Sequence[Question[Came]]]]
    ) -> Iterator[tuple[Item, list[Came]]]: ...


@dataclass
class Beside:
    """What a stage gives beside its rows.

    Attributes:
        tables: Further tables, which are saved beside the rows.
        subsets: Rows by subset.
        logs: Logs of refusal tests, for the stages that follow.
        models: Names of models that it used beside those of its roles, by what they are.
        short: What it lacks.
        subset: Makes what the rows of a subset are appended to.
    """

    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    subsets: dict[str, Any] = field(default_factory=dict)
    logs: list[str] = field(default_factory=list)
    models: dict[str, list[str]] = field(default_factory=dict)
    short: list[Short] = field(default_factory=list)
    subset: Callable[[str], Any] = lambda name: []


@dataclass(frozen=True, slots=True)
class StageContext:
    """What a stage may use beside its rows and parameters, and takes what it gives beside rows.

    Attributes:
        taxonomy: Name of the recipe's taxonomy.
        language: BCP-47 tag of the language the recipe writes in.
        out: Folder of the build.
        recipe: The recipe as data, for the data card.
        limit: Most seeds to start from, where the build was given ``--limit``.
        models: The models of each role, and under "" those of every other.
        ask: Has questions answered.
        test: Tests a model; gives the logs.
        map: Calls a function with parts of the rows, on whatever workers the build has.
        inputs: Rows by input, as the recipe names them (``moderate``, ``moderate.toxic``).
        named: Rows by the stage's named inputs (:attr:`Stage.takes`).
        subsets: Subsets of the inputs by name.
        input_logs: Logs of refusal tests that the inputs bring.
        earlier: The stages that ran before this one.
        spent: What the build spent before this stage, in all its runs.
        row_tokens: Estimate of the tokens of a row's prompt, for a plan.
        rounds: For a stage that gives more on demand, what was short after it, round by round.
        beside: What it gives beside its rows.
    """

    taxonomy: str
    language: str
    out: Path
    recipe: Mapping[str, Any]
    limit: int | None = None
    models: Mapping[str, Binding] = field(default_factory=dict)
    ask: Ask = lambda items: iter(())
    test: Callable[..., list[str]] = lambda *asked: []
    map: Map = here
    inputs: Mapping[str, Rows] = field(default_factory=dict)
    named: Mapping[str, Rows] = field(default_factory=dict)
    subsets: Mapping[str, Rows] = field(default_factory=dict)
    input_logs: Sequence[str] = ()
    earlier: Sequence[StageFacts] = ()
    spent: Sequence[Spent] = ()
    row_tokens: int = SHORT_PROMPT_TOKENS
    rounds: Sequence[Sequence[Short]] = ()
    beside: Beside = field(default_factory=Beside)

    @property
    def source(self) -> str:
        """The source of what a build writes: the recipe's name, where no public set has it."""
        name = str(self.recipe["name"])
        return f"{name}-built" if name in catalogue() else name

    def panel(self, role: str) -> tuple[BoundModel, ...]:
        """Give the models of a role that are all to be asked."""
        bound = self.models.get(role) or self.models.get("")
        return bound.models if bound is not None else ()

    def in_turn(self, role: str, about: str) -> tuple[BoundModel, ...]:
        """Give the models of a role in the turn in which they are asked about something.

        The turn hangs on the thing and the models alone: another model among them takes over its
        share of the things, and the others stay where they are.
        """
        models = self.panel(role)
        if len(models) == 1:
            return models
        return tuple(sorted(models, key=lambda model: digest_of([about, model.identity])))

    def table(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Save a further table, of plain values."""
        self.beside.tables[name] = rows

    def choose(self, subset: str, row: PromptRecord | None = None) -> None:
        """Put a row into a subset, which a later stage takes as ``STAGE.SUBSET``.

        Args:
            subset: Name of the subset.
            row: The row; None to say that there is such a subset, which may stay empty.
        """
        if subset not in self.beside.subsets:
            self.beside.subsets[subset] = self.beside.subset(subset)
        if row is not None:
            self.beside.subsets[subset].append(row)

    def short(self, cell: Mapping[str, str], missing: int, found: int = 0) -> None:
        """Say that rows are short (:class:`Short`)."""
        self.beside.short.append(Short(cell, missing, found))


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


class StageParams(BaseModel):
    """What a recipe may say: fields, each explained."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Stage(StageParams):
    """A stage: its fields are the keys that a recipe may give, and its class tells what it is.

    Attributes:
        roles: Model roles that it asks, and whether all models of a role are asked (``panel``) or
            each thing has one of them (``turns``).
        may_ask: Model roles that it asks where they are bound.
        makes: Which rows it makes or brings from elsewhere; the engine checks that no row is lost.
            A stage that takes no input makes all of its rows.
        takes: Names of the inputs that it takes beside its rows.
        drops: The reasons for which it can drop rows, where these are always the same
            (:meth:`parts`); None where it doesn't tell.
        once: Whether a recipe may have only one such stage.
        describes_recipe: Whether its result tells of the whole recipe, as a data card does; any
            change of the recipe reruns it.
        gives_logs: Whether it gives logs of tested models.
        passes_logs: Whether it gives its inputs' logs on.
        says_short: Whether it says what is short, so that a recipe can repeat what is before it.
        gives_more: Whether it gives more where a stage after it says what is short.
    """

    roles: ClassVar[Mapping[str, Asked]] = {}
    may_ask: ClassVar[Mapping[str, Asked]] = {}
    makes: ClassVar[Makes] = "nothing"
    takes: ClassVar[tuple[str, ...]] = ()
    drops: ClassVar[Sequence[str] | None] = None
    once: ClassVar[bool] = False
    describes_recipe: ClassVar[bool] = False
    gives_logs: ClassVar[bool] = False
    passes_logs: ClassVar[bool] = False
    says_short: ClassVar[bool] = False
    gives_more: ClassVar[bool] = False

    @abstractmethod
    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Give what becomes of the rows; those of several inputs come one after the other."""

    def plan(self, rows: int, build: StageContext) -> Plan:
        """Estimate what is asked and kept of so many rows at most.

        By default all may stay, and each is a short question to each of the roles.
        """
        sent, returned = rows * build.row_tokens, rows * SHORT_PROMPT_TOKENS
        roles = self.roles if self.asks() else ()
        return Plan(rows, tuple(Calls(role, rows, sent, returned) for role in roles))

    def asks(self) -> bool:
        """Tell whether it asks its roles at all."""
        return True

    def parts(self) -> Sequence[str] | None:
        """Name the subsets that it can give and the reasons for which it can drop rows.

        Recipes take these as ``STAGE.PART``; one that ends in ``*`` stands for all that begin so.
        None where a stage doesn't tell.
        """
        return self.drops

    def problem(self, place: Place) -> str | None:
        """Say in a line what keeps well-formed parameters from running where they stand."""
        return None

    def ready(self) -> None:
        """Load what it needs beside models to ask, before anything is asked.

        Raises:
            BuildError: It can't be loaded.
        """

    def tests(self) -> Sequence[BoundModel]:
        """Give the models that it tests."""
        return ()

    def prompts(self) -> Sequence[Path]:
        """Give the prompt files that its result depends on; a changed file reruns the stage."""
        return ()

    def reads(self) -> Sequence[str]:
        """Name data that its result depends on: files, folders, catalogue names and Hub ids."""
        return ()

    def writes(self, facts: StageFacts) -> Sequence[str]:
        """Name files in the build's folder that it writes; where one is gone, it runs again."""
        return ()

    def asked(self, models: Mapping[str, Binding]) -> dict[str, Binding | None]:
        """Give the models of each role that it asks, of those bound; None where none is."""
        roles = [*(self.roles if self.asks() else ()), *(set(self.may_ask) & set(models))]
        return {role: models.get(role) or models.get("") for role in roles}
