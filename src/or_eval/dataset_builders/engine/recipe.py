"""Recipes: which stages make a data set, with which parameters, each from what."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator

from or_eval.dataset_builders.engine.models import Binding, binding_of, by_name
from or_eval.dataset_builders.engine.stage import Stage
from or_eval.dataset_builders.engine.yaml_lines import Document, Place, read_yaml, unknown_word
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.stages import is_stage, stage, stage_kinds
from or_eval.key_like import keys_in, secrets_of, texts_in, without_keys
from or_eval.schema import taxonomies
from or_eval.sources.errors import shown

_SUFFIX = ".yaml"
_ROWS = "rows"
RECIPES = "or_eval.recipes"
"""Group of the entry points by which other packages bring recipes."""
_NAME = re.compile(r"\w[\w-]{0,99}")

_Bound = Annotated[Binding, PlainValidator(binding_of)]
_Names = Annotated[
    tuple[str, ...], BeforeValidator(lambda said: [said] if isinstance(said, str) else said)
]
_Inputs = Annotated[
    dict[str, _Names],
    BeforeValidator(lambda said: said if isinstance(said, dict) else {_ROWS: said}),
]


class Again(BaseModel):
    """From where on a recipe runs again while a stage says that something is short.

    Attributes:
        start: The stage from which on, up to the one that says so.
        rounds: Most rounds, the first one included.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    start: str = Field(alias="from")
    rounds: int = Field(default=3, ge=1)


@dataclass(frozen=True, slots=True)
class RecipeStage:
    """A stage of a recipe.

    Attributes:
        name: Its name in the recipe; the kind, unless the recipe gives another.
        kind: Which stage it is.
        inputs: What it starts from: names of stages, or ``STAGE.PART`` for a subset, or for the
            rows that a stage dropped for the reason PART.
        stage: The stage, with its parameters.
        named: What its named inputs are, in the same way.
        models: The models that it asks, by role, where they aren't the recipe's.
        again: What runs again while it says that something is short.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    stage: Stage
    named: dict[str, tuple[str, ...]] = field(default_factory=dict)
    models: dict[str, Binding] = field(default_factory=dict)
    again: Again | None = None

    @property
    def references(self) -> tuple[str, ...]:
        """All that it starts from."""
        return (*self.inputs, *(item for named in self.named.values() for item in named))

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the stages that its inputs come from."""
        return tuple(dict.fromkeys(part.partition(".")[0] for part in self.references))


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe whose parts fit together.

    Attributes:
        name: Short name; the source of the prompts that it makes.
        title: Its name for people.
        description: What it makes, in a sentence or two.
        taxonomy: Name of the taxonomy of its categories.
        language: BCP-47 tag of the language that it writes in.
        models: The models it was made for, by role.
        stages: Its stages, each after those that it needs.
        data: The recipe as plain data, with what ``--set`` changed, and with the models' keys.
        text: The recipe's own text, with its comments.
    """

    name: str
    title: str
    description: str
    taxonomy: str
    language: str
    models: dict[str, Binding]
    stages: tuple[RecipeStage, ...]
    data: dict[str, Any]
    text: str

    @property
    def published(self) -> dict[str, Any]:
        """The data without what nobody else may see: models by name alone."""
        told: dict[str, Any] = by_name(self.data)
        return told

    @property
    def shown(self) -> str:
        """The text without keys, those that stand in the arguments and headers of models too."""
        text = self.text
        for value in sorted(_secret_texts(self.data), key=len, reverse=True):
            text = text.replace(value, "[left out]")
        return without_keys(text)

    def path_to(self, name: str) -> set[str]:
        """Give the names of a stage and of all that it comes from."""
        found = {name}
        for entry in reversed(self.stages):  # each stands after those that it needs
            if entry.name in found:
                found.update(entry.needs)
        return found

    def repeated(self, last: RecipeStage) -> tuple[RecipeStage, ...]:
        """Give the stages that run again while one says that something is short, itself the last.

        They are those from the one that it names on, in the order in which they run.
        """
        if last.again is None:
            return ()
        names = [entry.name for entry in self.stages]
        return self.stages[names.index(last.again.start) : names.index(last.name) + 1]

    def tested(self, entry: RecipeStage) -> tuple[str, ...] | None:
        """Give the models whose logs a stage's inputs bring; None where they bring no logs."""
        found = [
            models
            for item in self.stages
            if item.name in entry.needs and (models := self._gives_logs_of(item)) is not None
        ]
        return tuple(dict.fromkeys(name for names in found for name in names)) if found else None

    def _gives_logs_of(self, entry: RecipeStage) -> tuple[str, ...] | None:
        if entry.stage.gives_logs:
            return tuple(model.name for model in entry.stage.tests())
        return self.tested(entry) if entry.stage.passes_logs else None


class _Head(BaseModel):
    """The keys at the top of a recipe."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*$")
    title: str = ""
    description: str = ""
    citation: str = ""
    taxonomy: str
    language: str = "en"
    models: dict[str, _Bound] = {}
    stages: list[dict[str, Any]] = Field(min_length=1)


class _Entry(BaseModel):
    """The keys of a stage that are the recipe's, and not the stage's own."""

    stage: str
    name: str = ""
    input: _Inputs = {}
    models: dict[str, _Bound] = {}
    again: Again | None = None


def _secret_texts(said: Any, *, header: bool = False) -> Iterator[str]:
    """Give the texts in a recipe that are headers, or that their name calls a secret."""
    if isinstance(said, dict):
        for name, item in said.items():
            yield from _secret_texts(item, header=header or str(name).endswith("headers"))
            for found in keys_in({name: item}) if not isinstance(item, dict) else ():
                yield from (text for text in texts_in(item) if found.place)
    elif isinstance(said, list):
        for item in said:
            yield from _secret_texts(item, header=header)
    elif header and isinstance(said, str) and said:
        yield said


def recipe_names() -> list[str]:
    """Give the names of the recipes that are bundled, or come with other packages."""
    return sorted(_known())


def _known() -> dict[str, Path]:
    """Give the files of recipes by name; an entry point's value is the module beside the file."""
    bundled = Path(str(files("or_eval.dataset_builders") / "recipes"))
    found = {path.stem: path for path in bundled.glob(f"*{_SUFFIX}")}
    for point in entry_points(group=RECIPES):
        module, _, file = point.value.partition(":")
        found[point.name] = Path(str(files(module) / f"{file or point.name}{_SUFFIX}"))
    return found


def load_recipe(recipe: str | Path, changes: Sequence[str] = ()) -> Recipe:
    """Load a recipe and check all of it.

    Args:
        recipe: Name of a bundled recipe, or the path of a YAML file.
        changes: ``KEY=VALUE``, with the value as YAML: ``language=zh`` for the recipe itself,
            ``rewrite.count=2`` for a parameter of the stage ``rewrite``.

    Raises:
        BuildError: There is no such recipe, it can't be read, or something in it is wrong; the
            message names the file and line and, for a wrong word, the nearest right one.
    """
    document = read_yaml(_path(str(recipe)), "a recipe is a mapping with the key 'stages'")
    data = document.data
    document.changed.update(_change(data, changes))
    for found in keys_in(by_name(data), secrets_of(os.environ)):
        problem = f"{found}; a recipe is published with what it makes, so leave that out"
        raise document.error(found.place, problem)
    head = document.checked(_Head, data)
    if head.taxonomy not in taxonomies():
        raise document.error(("taxonomy",), unknown_word("taxonomy", head.taxonomy, taxonomies()))
    stages = [_stage(number, head.stages, document) for number in range(len(head.stages))]
    loaded = Recipe(
        name=head.name,
        title=head.title or head.name,
        description=" ".join(head.description.split()),
        taxonomy=head.taxonomy,
        language=head.language,
        models=head.models,
        stages=_in_order(stages, document),
        data=data,
        text=document.text,
    )
    _check_rounds(loaded, {item.name: number for number, item in enumerate(stages)}, document)
    return loaded


def _path(recipe: str) -> Path:
    if found := _known().get(recipe):
        return found
    if Path(recipe).suffix in (_SUFFIX, ".yml") or "/" in recipe:
        return Path(recipe)
    raise BuildError(f"{unknown_word('recipe', recipe, recipe_names())}; a recipe of your own is a "
                     "path that ends in .yaml")  # fmt: skip


def _change(data: dict[str, Any], changes: Sequence[str]) -> dict[Place, str]:
    """Apply ``--set`` to a recipe's data; give the places changed, with what changed them."""
    changed: dict[Place, str] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key:
            raise BuildError(f"--set {change}: give KEY=VALUE, such as rewrite.count=2")
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError) as error:
            raise BuildError(f"--set {key}: the value isn't YAML") from error
        *path, last = key.split(".")
        target, place = _target(data, path, key)
        target[last] = value
        changed[(*place, last)] = f"--set {key}"
    return changed


def _target(data: dict[str, Any], path: list[str], key: str) -> tuple[dict[str, Any], Place]:
    """Find the mapping that a ``--set`` key is in: the recipe, a stage, or something in it."""
    if not path:
        return data, ()
    entries = data.get("stages")
    names = [
        str(name_of(entry)) if isinstance(entry, dict) else ""
        for entry in (entries if isinstance(entries, list) else [])
    ]
    if path[0] not in names:
        raise BuildError(f"--set {key}: {unknown_word('stage', path[0], names)}")
    place: Place = ("stages", names.index(path[0]))
    # Copied on the way: what an anchor shares with another stage isn't changed there.
    target: Any = dict(data["stages"][place[1]])
    data["stages"][place[1]] = target
    for step in path[1:]:
        inner = target.get(step, {})
        place = (*place, step)
        if not isinstance(inner, dict):
            raise BuildError(f"--set {key}: '{step}' has no keys")
        target[step] = copied = dict(inner)
        target = copied
    return target, place


def _stage(number: int, entries: list[dict[str, Any]], document: Document) -> RecipeStage:
    said, place = entries[number], ("stages", number)
    kind, name = said.get("stage"), name_of(said)
    if kind is None:
        problem = f"a stage has no key 'stage' (one of {', '.join(stage_kinds())})"
        raise document.error(place, problem)
    if not is_stage(str(kind)):
        raise document.error((*place, "stage"), unknown_word("stage", str(kind), stage_kinds()))
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        problem = f"{shown(name)} isn't a valid name (letters, digits, _ and -)"
        raise document.error((*place, "name"), problem)
    own = stage(kind)
    of_entry = set(_Entry.model_fields) - set(own.model_fields)
    entry = document.checked(_Entry, {key: said[key] for key in said if key in of_entry}, place)
    inputs = {_ROWS: (str(name_of(entries[number - 1])),) if number else ()} | entry.input
    known = [_ROWS, *own.takes]
    if unknown := [port for port in inputs if port not in known]:
        raise document.error((*place, "input"), unknown_word("input", unknown[0], known))
    params = {key: said[key] for key in said if key not in of_entry}
    checked = document.checked(own, params, place, [*_Entry.model_fields])
    rows = inputs.pop(_ROWS)
    return RecipeStage(name, kind, rows, checked, inputs, entry.models, entry.again)


def name_of(entry: dict[str, Any]) -> Any:
    """Give a stage's name: as the recipe says, or its kind's, or its file's without the ending."""
    return entry.get("name", Path(str(entry.get("stage"))).stem)


def _in_order(stages: list[RecipeStage], document: Document) -> tuple[RecipeStage, ...]:
    """Put stages after those that they need, otherwise as they stand in the recipe."""
    names = [item.name for item in stages]
    by_name = {item.name: item for item in stages}
    for number, item in enumerate(stages):
        place: Place = ("stages", number)
        if item.stage.once and item.kind in [other.kind for other in stages[:number]]:
            raise document.error(
                place, f"a recipe has one stage '{item.kind}', and this is another"
            )
        if item.name in names[:number]:
            raise document.error(place, f"two stages are called '{item.name}'; give one a 'name'")
        for reference in item.references:
            name, _, part = reference.partition(".")
            if name not in names:
                raise document.error((*place, "input"), unknown_word("stage", name, names))
            parts = by_name[name].stage.parts() if part else None
            if parts is not None and not any(fnmatchcase(part, known) for known in parts):
                problem = f"{name}: {unknown_word('part', part, parts)}"
                raise document.error((*place, "input"), problem)
    try:
        TopologicalSorter({item.name: item.needs for item in stages}).prepare()
    except CycleError as error:
        circle = " → ".join(reversed(error.args[1]))
        first = names.index(error.args[1][0])
        raise document.error(
            ("stages", first, "input"), f"these stages wait for each other: {circle}"
        ) from error
    found: list[RecipeStage] = []
    while left := [item for item in stages if item not in found]:
        found.append(next(item for item in left if not {*item.needs} & {one.name for one in left}))
    return tuple(found)


def _check_rounds(recipe: Recipe, numbers: Mapping[str, int], document: Document) -> None:
    """Make sure of what is repeated that it gives more, and is in one such part alone."""
    by_name = {item.name: item for item in recipe.stages}
    repeated: set[str] = set()
    for item in recipe.stages:
        if item.again is None:
            continue
        place: Place = ("stages", numbers[item.name], "again")
        before = recipe.path_to(item.name)
        if not item.stage.says_short:
            problem = f"the stage {item.kind} doesn't say what is short; 'balance' does"
            raise document.error(place, problem)
        if item.again.start not in before:
            problem = unknown_word("stage before it", item.again.start, sorted(before))
            raise document.error((*place, "from"), problem)
        if not by_name[item.again.start].stage.gives_more:
            problem = f"the stage '{item.again.start}' gives no more rows; name one that "
            raise document.error((*place, "from"), problem + "writes")
        part = [one.name for one in recipe.repeated(item)]
        if both := [name for name in part if name in repeated]:
            problem = f"the stage '{both[0]}' is in another part that is repeated"
            raise document.error(place, problem)
        repeated.update(part)
