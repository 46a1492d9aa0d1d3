"""Running a recipe: each stage once, in order, from what is done already."""

from __future__ import annotations

import errno
import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from or_eval.dataset_builders.engine.asking import Asking, ask, ask_each
from or_eval.dataset_builders.engine.fingerprint import difference, fingerprint, ingredients
from or_eval.dataset_builders.engine.folder_lock import locked
from or_eval.dataset_builders.engine.funnel import FUNNEL, write_funnel
from or_eval.dataset_builders.engine.ports import (
    SHORT_PROMPT_TOKENS,
    Place,
    StageContext,
    StageFacts,
)
from or_eval.dataset_builders.engine.recipe import Recipe, RecipeStage, unknown_word
from or_eval.dataset_builders.engine.rows import distinct
from or_eval.dataset_builders.engine.stored import StoredStage, rows_of, store, stored_stage
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_files import digest
from or_eval.dataset_builders.publishing.dataset_folder import RECIPE_COPY
from or_eval.dataset_builders.stages import stage, stage_kinds
from or_eval.schema import PromptRecord
from or_eval.sources.errors import DataError

_STAGES, _LOGS, _CACHE = "stages", "logs", "cache"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which stages to run.

    Attributes:
        only: Only this stage, again.
        start: This stage again, and all that follow.
    """

    only: str | None = None
    start: str | None = None


@dataclass
class Build:
    """A build in a folder.

    Attributes:
        recipe: What is built.
        out: Folder of the build.
        asking: The models.
        limit: Most seeds to start from.
        say: Takes a line for the person who watches.
        done: The stages that are done and up to date, by name.
    """

    recipe: Recipe
    out: Path
    asking: Asking
    limit: int | None = None
    say: Callable[[str], None] = print
    done: dict[str, StoredStage] = field(default_factory=dict)

    def run(self, selection: Selection | None = None) -> list[StageFacts]:
        """Run what isn't done; give the facts of all stages that are.

        Raises:
            BuildError: A stage can't go on; what is done stays, and the same command resumes.
        """
        wanted = selection or Selection()
        self._check(wanted)
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            with locked(self.out):
                self._claim()
                try:
                    self._reach_all(wanted)
                except DataError:
                    # It tells where the rows went of which the error says that none is left.
                    with suppress(OSError):
                        self._write_funnel(wanted)
                    raise
                return self._write_funnel(wanted)
        except OSError as error:
            raise _disk_error(error, self.out) from error

    def state(self, number: int, entry: RecipeStage) -> tuple[StoredStage | None, str]:
        """Give a stage's result where it is up to date, or else why it has to run.

        The stages before it must have been looked at first.
        """
        stored = stored_stage(self._folder(number, entry))
        if stored is None:
            return None, ""
        if any(needed not in self.done for needed in entry.needs):
            return None, "a stage before it runs again"
        now = self._ingredients(entry)
        if stored.fingerprint != fingerprint(now):
            return None, f"changed: {difference(stored.ingredients, now)}"
        for written in stage(entry.kind).writes(stored.facts):
            if not (self.out / written).is_file():
                return None, f"{written} is gone"
        return stored, ""

    def planning_context(self) -> StageContext:
        """Give a context without rows and models to ask, for a stage's estimate."""
        return StageContext(
            taxonomy=self.recipe.taxonomy,
            language=self.recipe.language,
            limit=self.limit,
            out=self.out,
            inputs={},
            subsets={},
            input_logs=[],
            earlier=[],
            recipe=self.recipe.data,
            models=self.asking.names(),
            row_tokens=SHORT_PROMPT_TOKENS,
            ask=lambda task: [],
            ask_each=lambda task, models: [],
        )

    def _check(self, wanted: Selection) -> None:
        names = [entry.name for entry in self.recipe.stages]
        for option, name in (("--only", wanted.only), ("--from", wanted.start)):
            if name is not None and name not in names:
                raise BuildError(f"{option} {name}: no such stage (there are: {', '.join(names)})")

    def _claim(self) -> None:
        """Take a folder for this recipe; refuse one that holds something else."""
        copy = self.out / RECIPE_COPY
        partial = copy.with_suffix(".partial")
        try:
            earlier = json.loads(copy.read_text("utf-8"))["name"]
        except FileNotFoundError:
            ours = {".lock", ".lock-holder", partial.name}
            if foreign := sorted({path.name for path in self.out.iterdir()} - ours):
                raise BuildError(
                    f"{self.out}: holds '{foreign[0]}', which is no build's; give a new folder"
                ) from None
            earlier = self.recipe.name
        except (ValueError, KeyError, TypeError):
            raise BuildError(f"{copy}: can't be read; give a new folder") from None
        if earlier != self.recipe.name:
            raise BuildError(f"{self.out}: holds a build of {earlier}; give another folder")
        text = json.dumps(self.recipe.data, indent=2, ensure_ascii=False, default=str)
        partial.write_text(text + "\n", "utf-8")
        partial.replace(copy)
        folders = {self._folder(*item) for item in enumerate(self.recipe.stages, start=1)}
        for stale in sorted((self.out / _STAGES).glob("*")):
            if stale not in folders and stale.is_dir():
                shutil.rmtree(stale)

    def _reach_all(self, wanted: Selection) -> None:
        for number, entry in enumerate(self.recipe.stages, start=1):
            self._reach(number, entry, wanted)
            if wanted.only == entry.name:
                break

    def _write_funnel(self, wanted: Selection) -> list[StageFacts]:
        facts = [stored.facts for stored in self.done.values()]
        if wanted.only is None:
            write_funnel(facts, self.out)
        return facts

    def _reach(self, number: int, entry: RecipeStage, wanted: Selection) -> None:
        """Bring one stage up to date, as far as the selection asks for it."""
        started = wanted.start is not None and wanted.start in self._path_to(entry)
        stored, why = self.state(number, entry)
        if wanted.only == entry.name or started:
            stored, why = None, why or "asked for"
        if stored is not None:
            self.done[entry.name] = stored
            self.say(f"{number:02} {entry.name}: done before, {stored.facts.rows_out} rows")
            return
        if wanted.only is not None and wanted.only != entry.name:
            if entry.name in self._needed_by(wanted.only):
                raise BuildError(
                    f"--only {wanted.only}: the stage {entry.name}, which it needs, isn't up to "
                    f"date{f' ({why})' if why else ''}; run without --only"
                )
            return
        if why:
            self.say(f"{number:02} {entry.name}: runs again ({why})")
        self.done[entry.name] = done = self._run(number, entry)
        self.say(f"{number:02} {entry.name}: {_sentence(done.facts)}")

    def _run(self, number: int, entry: RecipeStage) -> StoredStage:
        # What was published before is no longer what the stages say; `push` looks for the funnel.
        (self.out / FUNNEL).unlink(missing_ok=True)
        kind, parts = stage(entry.kind), self._ingredients(entry)
        mark = fingerprint(parts)
        context = self._context(entry, self.out / _LOGS / f"{self._name(number, entry)}-{mark[:8]}")
        parts_in = list(context.inputs.values())
        # Rows that are in two inputs are taken once; within one, all are the stage's to deal with.
        rows = parts_in[0] if len(parts_in) == 1 else distinct(itertools.chain(*parts_in))
        try:
            result = kind.run(rows, entry.params, context)
        except DataError as error:
            raise BuildError(
                f"stage {entry.name}: {error}; what is done is kept: the same command goes on"
            ) from error
        facts = StageFacts(
            name=entry.name,
            kind=entry.kind,
            rows_in=len(rows),
            rows_out=len(result.rows),
            dropped=dict(Counter(item.reason for item in result.dropped)),
            models=self._models(entry) | result.models,
            prompts={path.name: digest(path) for path in kind.prompts(entry.params)},
            subsets={name: len(part) for name, part in result.subsets.items()},
        )
        return store(self._folder(number, entry), result, facts, mark, parts)

    def _context(self, entry: RecipeStage, logs: Path) -> StageContext:
        cache = self.out / _CACHE
        before = [self.done[name] for name in entry.needs]
        return replace(
            self.planning_context(),
            inputs={reference: self._input(entry, reference) for reference in entry.inputs},
            subsets=self._subsets(entry),
            input_logs=[log for stored in before for log in stored.logs],
            earlier=[stored.facts for stored in self.done.values()],
            ask=lambda task: ask(task, logs, self.asking, cache),
            ask_each=lambda task, models: ask_each(task, models, logs, self.asking, cache),
        )

    def _subsets(self, entry: RecipeStage) -> dict[str, list[PromptRecord]]:
        """Give the subsets of the inputs that the stage takes as a whole."""
        whole = [self.done[name] for name in entry.inputs if name in self.done]
        return {
            name: rows_of(stored, name) or [] for stored in whole for name in stored.facts.subsets
        }

    def _input(self, entry: RecipeStage, reference: str) -> list[PromptRecord]:
        name, _, part = reference.partition(".")
        stored = self.done[name]
        rows = rows_of(stored, part)
        if rows is None:
            # A reason for which nothing was dropped this time is no mistake.
            there = ", ".join([*stored.facts.subsets, *stored.facts.dropped]) or "nothing"
            self.say(f"   {entry.name}: {name} has no rows under '{part}' (there is: {there})")
        # A row can be dropped several times: a seed, once for each rewrite that it lacks.
        return distinct(rows or []) if part else rows or []

    def _ingredients(self, entry: RecipeStage) -> dict[str, object]:
        marks = {name: stored.mark for name, stored in self.done.items()}
        return ingredients(self.recipe, entry, self.asking, self.limit, marks)

    def _models(self, entry: RecipeStage) -> dict[str, list[str]]:
        kind, names = stage(entry.kind), self.asking.names()
        required = {
            role: names.get(role, names.get("", [])) for role in kind.roles_asked(entry.params)
        }
        return required | {role: names[role] for role in kind.optional_roles if role in names}

    def _needed_by(self, name: str) -> set[str]:
        entry = next(entry for entry in self.recipe.stages if entry.name == name)
        return self._path_to(entry) - {name}

    def _path_to(self, entry: RecipeStage) -> set[str]:
        """Give the names of a stage and of all that it comes from."""
        by_name = {item.name: item for item in self.recipe.stages}
        found = {entry.name}
        for needed in entry.needs:
            found |= self._path_to(by_name[needed])
        return found

    def _folder(self, number: int, entry: RecipeStage) -> Path:
        return self.out / _STAGES / self._name(number, entry)

    def _name(self, number: int, entry: RecipeStage) -> str:
        return f"{number:02}-{entry.name}"


def check_ready(recipe: Recipe, asking: Asking) -> None:
    """Make sure that nothing is missing for a recipe to run, before any model is asked.

    Raises:
        BuildError: A role has no model or isn't one, or a stage's parameters don't say all.
    """
    names = asking.names()
    if default := [name for name in names.get("", []) if "/" not in name]:
        raise BuildError(f"--model {default[0]}: give PROVIDER/MODEL")
    kinds = [stage(name) for name in stage_kinds()]
    roles = sorted({role for kind in kinds for role in (*kind.roles, *kind.optional_roles)})
    if strange := [role for role in names if role and role not in roles]:
        raise BuildError(f"--model-role {strange[0]}: {unknown_word('role', strange[0], roles)}")
    for entry in recipe.stages:
        kind = stage(entry.kind)
        place = Place(recipe.taxonomy, entry.inputs, recipe.tested(entry))
        if problem := kind.problem(entry.params, place):
            raise BuildError(f"stage {entry.name}: {problem}; change the recipe, or --set it")
        for role in kind.roles_asked(entry.params):
            if role not in names and "" not in names:
                raise BuildError(
                    f"stage {entry.name}: asks the role '{role}', and no model is bound to it; "
                    f"add --model-role {role}=PROVIDER/MODEL (or --model for all roles)"
                )


def _sentence(facts: StageFacts) -> str:
    said = f"{facts.rows_in} rows in, {facts.rows_out} out"
    if facts.dropped:
        parts = [f"{count} {reason}" for reason, count in facts.dropped.items()]
        said += f"; dropped: {', '.join(parts)}"
    if facts.subsets:
        said += f"; {', '.join(f'{name} {count}' for name, count in facts.subsets.items())}"
    return said


def _disk_error(error: OSError, out: Path) -> BuildError:
    where = error.filename or out
    if error.errno == errno.ENOSPC:
        return BuildError(
            f"{where}: the disk is full; free some space and run the same command again: what is "
            "done is kept"
        )
    return BuildError(f"{where}: {error.strerror or error}")
