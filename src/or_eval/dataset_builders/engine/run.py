"""Running a recipe: each stage once, in order, from what is done already."""

from __future__ import annotations

import errno
import json
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from or_eval.dataset_builders.engine.asking import Asker, says_disk_full
from or_eval.dataset_builders.engine.fingerprint import difference, ingredients
from or_eval.dataset_builders.engine.funnel import FUNNEL, RECIPE_COPY, write_funnel
from or_eval.dataset_builders.engine.models import Asking, Binding, by_name, digest_of
from or_eval.dataset_builders.engine.recipe import Recipe, RecipeStage
from or_eval.dataset_builders.engine.replies import REPLIES_ANY
from or_eval.dataset_builders.engine.rounds import Short, goes_on, total
from or_eval.dataset_builders.engine.rows import Joined, Rows
from or_eval.dataset_builders.engine.stage import (
    Makes,
    Spent,
    StageContext,
    StageFacts,
)
from or_eval.dataset_builders.engine.stage_results import (
    StoredStage,
    accounted,
    part_of,
    store,
    stored_stage,
)
from or_eval.dataset_builders.engine.workers import Engine, workers
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_files import digest
from or_eval.folder_lock import locked
from or_eval.key_like import without_keys
from or_eval.sources.errors import DataError

PREVIEW = "preview"
"""Folder, in that of a build, in which a few rows were carried through the recipe."""
_STAGES = "stages"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which stages to run.

    Attributes:
        only: Only this stage, again.
        start: This stage again, and all that follow.
        failed: All of them, and what providers rejected is asked again.
    """

    only: str | None = None
    start: str | None = None
    failed: bool = False


@dataclass
class Build:
    """A build in a folder.

    Attributes:
        recipe: What is built.
        out: Folder of the build.
        asking: The user's models, and how to call them.
        limit: Most seeds to start from.
        engine: Where the row logic runs of stages that ask no model; it changes no result.
        say: Takes a line for the person who watches.
        replies: Folder of the replies; its own by default.
        done: The stages that are done and up to date, by name.
        rounds: What was short before each further round, by the first stage of a repeated part.
    """

    recipe: Recipe
    out: Path
    asking: Asking
    limit: int | None = None
    engine: Engine = "here"
    say: Callable[[str], None] = print
    replies: Path | None = None
    done: dict[str, StoredStage] = field(default_factory=dict)
    rounds: dict[str, list[list[Short]]] = field(default_factory=dict)

    def run(self, selection: Selection | None = None) -> list[StageFacts]:
        """Run what isn't done; give the facts of all stages that are.

        Raises:
            BuildError: A stage can't go on; what is done stays, and the same command resumes.
        """
        wanted = selection or Selection()
        self._check(wanted)
        with self.asker() as asker:
            if wanted.failed:
                with asker.replies() as replies:
                    self.say(f"{replies.forget_failed()} questions are asked again")
            try:
                self._reach_all(wanted, asker)
            except DataError:
                # It tells where the rows went of which the error says that none is left.
                with suppress(OSError):
                    self._write_funnel(wanted, asker)
                raise
            return self._write_funnel(wanted, asker)

    @contextmanager
    def asker(self) -> Iterator[Asker]:
        """Hold the folder, and give what asks models for it.

        Raises:
            BuildError: The folder is held or another recipe's, or can't be written to.
        """
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            with locked(self.out), locked(self.replies) if self.replies else nullcontext():
                self._claim()
                yield Asker(self.asking, self.out, self.engine, self.say, self.replies)
        except OSError as error:
            raise _disk_error(error, self.out) from error
        except sqlite3.OperationalError as error:
            code = errno.ENOSPC if says_disk_full(str(error)) else 0
            raise _disk_error(OSError(code, str(error)), self.out) from error

    def state(self, entry: RecipeStage) -> tuple[StoredStage | None, str]:
        """Give a stage's result where it is up to date, or else why it has to run.

        The stages before it must have been looked at first.
        """
        stored = stored_stage(self._folder(entry))
        if stored is None:
            return None, ""
        if stored.ingredients.get("rounds") and entry.name not in self.rounds:
            self.rounds[entry.name] = self._rounds_before(entry, stored)
        if any(needed not in self.done for needed in entry.needs):
            return None, "a stage before it runs again"
        now = self._ingredients(entry)
        if stored.fingerprint != digest_of(now)[:16]:
            return None, f"changed: {difference(stored.ingredients, now)}"
        for written in entry.stage.writes(stored.facts):
            if not (self.out / written).is_file():
                return None, f"{written} is gone"
        return stored, ""

    def models(self, entry: RecipeStage) -> dict[str, Binding]:
        """Give the models that a stage asks by role, and under "" those of every other role.

        What the user binds comes first, then what the stage says, then the recipe. A model that
        the user gives for all roles leaves out what stage and recipe say.
        """
        own = {} if self.asking.model is not None else self.recipe.models | entry.models
        return own | self.asking.bindings()

    def planning_context(self) -> StageContext:
        """Give a context without rows and models to ask, for a stage's estimate."""
        return StageContext(
            self.recipe.taxonomy,
            self.recipe.language,
            self.out,
            self.recipe.published,
            self.limit,
            map=workers(self.engine),
        )

    def _check(self, wanted: Selection) -> None:
        names = [entry.name for entry in self.recipe.stages]
        for option, name in (("--only", wanted.only), ("--from", wanted.start)):
            if name is not None and name not in names:
                raise BuildError(f"{option} {name}: no such stage (there are: {', '.join(names)})")

    def check_folder(self) -> None:
        """Make sure that a folder is this recipe's, or new.

        Raises:
            BuildError: It holds something else.
        """
        copy = self.out / RECIPE_COPY
        try:
            earlier = json.loads(copy.read_text("utf-8"))["name"]
        except FileNotFoundError:
            ours = {".lock", ".lock-holder", _claimed(copy).name, PREVIEW}
            there = [*self.out.iterdir()] if self.out.is_dir() else []
            found = {path.name for path in there if not path.match(REPLIES_ANY)}
            if foreign := sorted(found - ours):
                raise BuildError(
                    f"{self.out}: contains '{foreign[0]}', which isn't part of a build; give a new "
                    "folder"
                ) from None
            return
        except (ValueError, KeyError, TypeError):
            raise BuildError(f"{copy}: can't be read; give a new folder") from None
        if earlier != self.recipe.name:
            raise BuildError(f"{self.out}: contains a build of {earlier}; give another folder")

    def _claim(self) -> None:
        """Take a folder for this recipe."""
        self.check_folder()
        copy = self.out / RECIPE_COPY
        text = json.dumps(self.recipe.published, indent=2, ensure_ascii=False, default=str)
        _claimed(copy).write_text(text + "\n", "utf-8")
        _claimed(copy).replace(copy)

    def _reach_all(self, wanted: Selection, asker: Asker) -> None:
        stages, at = self.recipe.stages, 0
        while at < len(stages):
            entry = stages[at]
            self._reach(at + 1, entry, wanted, asker)
            if wanted.only == entry.name:
                return
            at = stages.index(self.recipe.repeated(entry)[0]) if self._again(entry) else at + 1

    def _again(self, entry: RecipeStage) -> bool:
        """Prepare another round up to a stage, where it says what is short and one is worth it."""
        if entry.again is None or entry.name not in self.done:
            return False
        first, short = entry.again.start, self.done[entry.name].short
        rounds = self.rounds.get(first, [])
        if not goes_on(rounds, short, entry.again.rounds):
            return False
        self.rounds[first] = [*rounds, short]
        for one in self.recipe.repeated(entry):
            del self.done[one.name]
        self.say(f"   {entry.name}: {total(short)} rows are missing, so {first} makes more")
        return True

    def _write_funnel(self, wanted: Selection, asker: Asker) -> list[StageFacts]:
        facts = [stored.facts for stored in self.done.values()]
        if wanted.only is None:
            write_funnel(facts, self._spent(asker), self.out)
        return facts

    def _spent(self, asker: Asker) -> list[Spent]:
        """Give what was spent in the order of the recipe, whichever reply came first."""
        order = {entry.name: number for number, entry in enumerate(self.recipe.stages)}
        return sorted(asker.spent(), key=lambda one: (order.get(one.stage, -1), *map(str, one[:3])))

    def _reach(self, number: int, entry: RecipeStage, wanted: Selection, asker: Asker) -> None:
        """Bring one stage up to date, as far as the selection asks for it."""
        started = wanted.start is not None and wanted.start in self.recipe.path_to(entry.name)
        started = started or wanted.failed
        stored, why = self.state(entry)
        if wanted.only == entry.name or started:
            stored, why = None, why or "asked for"
        if stored is not None:
            self.done[entry.name] = stored
            self.say(f"{number:02} {entry.name}: done before, {stored.facts.rows_out} rows")
            return
        if wanted.only is not None and wanted.only != entry.name:
            if entry.name in self.recipe.path_to(wanted.only):
                raise BuildError(
                    f"--only {wanted.only}: the stage {entry.name}, which it needs, isn't up to "
                    f"date{f' ({why})' if why else ''}; run without --only"
                )
            return
        if why:
            self.say(f"{number:02} {entry.name}: runs again ({why})")
        self.done[entry.name] = done = self._run(entry, asker)
        self.say(f"{number:02} {entry.name}: {_sentence(done.facts)}")

    def _run(self, entry: RecipeStage, asker: Asker) -> StoredStage:
        asker.stage = entry.name
        # What was published before is no longer what the stages say; `push` looks for the funnel.
        (self.out / FUNNEL).unlink(missing_ok=True)
        doing, parts = entry.stage, self._ingredients(entry)
        context = self._context(entry, asker)
        inputs = list(context.inputs.values())
        # Rows that are in two inputs are taken once; within one, all are the stage's to deal with.
        rows = inputs[0] if len(inputs) == 1 else Joined(*inputs)
        makes: Makes = doing.makes if entry.inputs else "instead"

        facts = StageFacts(
            name=entry.name,
            kind=entry.kind,
            rows_in=len(rows),
            rows_out=0,
            dropped={},
            models={
                role: [model.name for model in bound.models] if bound is not None else []
                for role, bound in doing.asked(context.models).items()
            },
            prompts={path.name: digest(path) for path in _sent_from(entry)},
            subsets={},
            params=by_name(doing.model_dump(mode="json")),
            made=0 if makes == "instead" else -len(rows),  # what is given is added
        )
        try:
            outcomes = accounted(doing.run(rows, context), rows, makes)
            return store(self._folder(entry), outcomes, context.beside, facts, parts)
        except DataError as error:
            raise BuildError(
                f"stage {entry.name}: {error}; what is done is kept; fix this and run the same "
                "command to resume"
            ) from error
        except Exception as error:
            if not (said := _of_own_code(error, entry)):
                raise
            raise BuildError(f"stage {entry.name}: {said}") from error

    def _context(self, entry: RecipeStage, asker: Asker) -> StageContext:
        before = [self.done[name] for name in entry.needs]
        named = {
            port: Joined(*(self._input(entry, reference) for reference in references))
            for port, references in entry.named.items()
        }
        return replace(
            self.planning_context(),
            inputs={reference: self._input(entry, reference) for reference in entry.inputs},
            named=named,
            subsets=self._subsets(entry),
            input_logs=[log for stored in before for log in stored.logs],
            earlier=[stored.facts for stored in self.done.values()],
            models=self.models(entry),
            rounds=self.rounds.get(entry.name, ()),
            spent=self._spent(asker),
            ask=partial(asker.ask, entry.kind),
            test=asker.test,
        )

    def _subsets(self, entry: RecipeStage) -> dict[str, Rows]:
        """Give the subsets of the inputs that the stage takes as a whole."""
        whole = [self.done[name] for name in entry.inputs if name in self.done]
        return {
            name: rows
            for stored in whole
            for name in stored.facts.subsets
            if (rows := part_of(stored, name)) is not None
        }

    def _input(self, entry: RecipeStage, reference: str) -> Rows:
        name, _, part = reference.partition(".")
        stored = self.done[name]
        rows = part_of(stored, part)
        if rows is None:
            # A reason for which nothing was dropped this time is no mistake.
            there = ", ".join([*stored.facts.subsets, *stored.facts.dropped]) or "nothing"
            self.say(f"   {entry.name}: {name} has no rows under '{part}' (there is: {there})")
        return rows or []

    def _ingredients(self, entry: RecipeStage) -> dict[str, object]:
        contents = {name: stored.content for name, stored in self.done.items()}
        found = ingredients(self.recipe, entry, self.models(entry), self.limit, contents)
        if rounds := self.rounds.get(entry.name):
            found["rounds"] = [self._part_mark(entry), [list(map(list, short)) for short in rounds]]
        return found

    def _rounds_before(self, entry: RecipeStage, stored: StoredStage) -> list[list[Short]]:
        """Give the rounds that a part was repeated in, where nothing that it depends on changed."""
        mark, rounds = stored.ingredients["rounds"]
        same = mark == self._part_mark(entry)
        return [[Short(*one) for one in short] for short in rounds] if same else []

    def _part_mark(self, first: RecipeStage) -> str:
        """Give what stands for all that the stages from one on depend on, beside each other."""
        lasts = [one for one in self.recipe.stages if one.again and one.again.start == first.name]
        part = [entry for last in lasts for entry in self.recipe.repeated(last)]
        contents = dict.fromkeys((entry.name for entry in self.recipe.stages), "")
        contents |= {name: stored.content for name, stored in self.done.items()}
        contents |= dict.fromkeys((entry.name for entry in part), "")
        return digest_of(
            [
                ingredients(self.recipe, entry, self.models(entry), self.limit, contents)
                for entry in part
            ]
        )[:16]

    def _folder(self, entry: RecipeStage) -> Path:
        return self.out / _STAGES / entry.name


def _sentence(facts: StageFacts) -> str:
    made = f"{facts.made} made, " if facts.made else ""
    said = f"{facts.rows_in} rows in, {made}{facts.rows_out} out"
    if facts.dropped:
        parts = [f"{count} {reason}" for reason, count in facts.dropped.items()]
        said += f"; dropped: {', '.join(parts)}"
    if facts.subsets:
        said += f"; {', '.join(f'{name} {count}' for name, count in facts.subsets.items())}"
    return said


def _of_own_code(error: Exception, entry: RecipeStage) -> str:
    """Say what the code of a stage that isn't or-eval's raised, and where; else nothing."""
    module = type(entry.stage).__module__
    if module.startswith("or_eval.") or isinstance(error, OSError | sqlite3.OperationalError):
        return ""
    loaded = sys.modules.get(module)  # what a recipe names by its path isn't among them
    file = Path(loaded.__file__ or "" if loaded else entry.kind).expanduser().resolve()
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    where = f" at {file.name}:{lines[-1]}" if lines else ""
    return f"{type(error).__name__}{where}: {' '.join(without_keys(str(error)).split())}"


def _sent_from(entry: RecipeStage) -> list[Path]:
    """Give the files whose words a stage sends: its prompt files, and its own code's."""
    own = [Path(entry.kind).expanduser()] if entry.kind.endswith(".py") else []
    return [*entry.stage.prompts(), *(own if entry.stage.roles else ())]


def _claimed(copy: Path) -> Path:
    return copy.with_suffix(".partial")


def _disk_error(error: OSError, out: Path) -> BuildError:
    where = error.filename or out
    if error.errno == errno.ENOSPC:
        return BuildError(
            f"{where}: the disk is full; free some space and run the same command again: what is "
            "done is kept"
        )
    return BuildError(f"{where}: {error.strerror or error}")
