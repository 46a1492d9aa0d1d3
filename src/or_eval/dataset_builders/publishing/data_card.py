"""The card of a published data set: what it is, how it was made, and what to beware of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined
from pydantic import Field, field_validator

from or_eval.dataset_builders.crawling.candidates import METHOD as CRAWLED
from or_eval.dataset_builders.engine.recipe import name_of
from or_eval.dataset_builders.engine.rows import LICENCE
from or_eval.dataset_builders.engine.stage import (
    CLASSIFIER,
    MODERATOR,
    TARGET,
    WRITER,
    StageContext,
    StageFacts,
    StageParams,
)
from or_eval.dataset_builders.panel.prompt_guards import format_for
from or_eval.dataset_builders.prompt_files import digest
from or_eval.dataset_builders.publishing.dataset_folder import SPLIT, data_file
from or_eval.dataset_builders.publishing.licences import NOT_STATED, OWN
from or_eval.dataset_builders.publishing.local_paths import without_folders
from or_eval.dataset_builders.similarity.embedding_stage import EMBEDDING
from or_eval.dataset_builders.writing.methods import load_method
from or_eval.hostile_text import visible
from or_eval.schema import Label, PromptRecord, taxonomies
from or_eval.scorers.judge.guards import guard_for
from or_eval.scorers.judge.panel import GRADER_ROLE
from or_eval.sources import catalogue

TAG = "or-eval"
"""Tag by which a push knows a data set that an earlier one put there."""
SENSITIVE_TAG = "not-for-all-audiences"
SOURCES = "or_eval_sources"
"""Key of a card's header under which the licence of each source of its rows stands."""
REPOSITORY = "OWNER/NAME"
"""Stands in a card for the repository, until a push knows its name."""
_TAGS = (TAG, "over-refusal", "refusal", "safety", "red-teaming")
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))
_JUDGE = Path(str(files("or_eval.scorers.judge")))
_PANEL = Path(str(files("or_eval.dataset_builders.panel")))
_JUDGED = ("moderation", "assessment")
# What a model does in a role, where it must not judge its own work.
_DOES = {
    WRITER: "wrote prompts",
    MODERATOR: "judged prompts",
    CLASSIFIER: "judged prompts",
    GRADER_ROLE: "judged responses",
    TARGET: "was tested",
}


class Counts:
    """What a card tells of some rows, counted as they go by."""

    def __init__(self) -> None:
        self.rows = self.judged = self.unjudged = 0
        self.labels: Counter[str] = Counter()
        self.languages: Counter[str] = Counter()
        self.categories: Counter[str] = Counter()
        self.sources: Counter[str] = Counter()
        self.origins: Counter[str] = Counter()
        self.licences: dict[str, str] = {}

    def add(self, row: PromptRecord) -> None:
        """Count a row."""
        self.rows += 1
        self.labels[row.label.value] += 1
        self.languages[row.language] += 1
        self.categories[row.category] += 1
        self.sources[row.source] += 1
        self.origins[{None: "taken", CRAWLED: "crawled"}.get(row.method, "written")] += 1
        if row.label is not Label.UNLABELLED:
            judged = any(key in row.meta for key in _JUDGED)
            self.judged += judged
            self.unjudged += not judged
        if LICENCE in row.meta:
            self.licences[row.source] = str(row.meta[LICENCE])


Published = Mapping[str, Counts]
"""What is published, by configuration."""


class BaseSet(StageParams):
    """Data that a set was made from.

    Attributes:
        name: Its name, as in the column `source`.
        licence: Its licence.
        url: Its publisher's page.
        title: What it is; its name by default.
    """

    name: str
    licence: str
    url: str = ""
    title: str = ""


class CardParams(StageParams):
    """What a recipe may say to ``publish``.

    Attributes:
        licence: Licence of the set, by the Hub's short name, such as ``cc-by-4.0``.
        title: Name of the set for people; the recipe's by default.
        description: What it is, as Markdown; the recipe's description by default.
        sources: Data it was made from, where or-eval's catalogue doesn't know it.
        tags: Tags on the Hub beside or-eval's own.
        note: What else its users should know, such as that it is only a trial, as Markdown.
    """

    licence: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+-]*$")
    title: str = ""
    description: str = ""
    sources: tuple[BaseSet, ...] = ()
    tags: tuple[str, ...] = ()
    note: str = ""

    @field_validator("title")
    @classmethod
    def _one_line(cls, title: str) -> str:
        return " ".join(title.split())


def data_card(
    params: CardParams,
    published: Published,
    rows: Counts,
    empty: Sequence[str],
    stages: Sequence[StageFacts],
    context: StageContext,
) -> str:
    """Write the card of a data set; the same facts give the same text.

    Args:
        params: What the recipe says.
        published: The configurations, none empty; the first is the default one.
        rows: What all of them hold, each row once.
        empty: Names of subsets that are not published since they have no rows.
        stages: All stages, that which publishes included.
        context: The build.
    """
    recipe, stages = context.recipe, [one._replace(models=_asked(one)) for one in stages]
    title = params.title or str(recipe.get("title") or recipe.get("name", ""))
    sources = _described(rows, params.sources, context.source)
    safe = [name for name, part in published.items() if part.labels[Label.SAFE.value]]
    default = (safe or list(published))[0]
    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    environment.filters |= {"code": _code, "listed": _listed, "most_first": _most_first}
    page = files("or_eval.dataset_builders.publishing") / "data_card.md.jinja"
    body = environment.from_string(page.read_text("utf-8")).render(
        title=title,
        description=(params.description or str(recipe.get("description") or "")).strip(),
        published=published,
        default=default,
        empty=empty,
        limit=context.limit,
        note=params.note.strip(),
        rows=rows,
        repository=REPOSITORY,
        split=SPLIT,
        categories=_categories(published, context.taxonomy),
        all_categories=len(taxonomies().get(context.taxonomy, {})),
        language=context.language,
        stages=[_shown(one._asdict() | {"more": _more(one, context)}) for one in stages],
        models=_shown([(one.name, *asked) for one in stages for asked in one.models.items()]),
        judges_of_own=_shown(_judges_of_own(stages)),
        prompts=_shown([row for one in stages for row in _prompts(one)]),
        spent=_shown([one._asdict() for one in context.spent]),
        recipe=_fenced(_yaml(without_folders(_as_asked(recipe, stages))), "yaml"),
        licence=params.licence,
        sources=_shown([source.model_dump() for source in sources]),
        citation=str(recipe.get("citation", "")).strip(),
    )
    return f"---\n{_header(title, params, published, default, rows, sources)}\n---\n\n{body}"


def cell(value: str) -> str:
    """Make a text fit for a cell of a table: one line, with nothing in it that is markup."""
    text = " ".join(visible(value).split())
    for char, escaped in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|")):
        text = text.replace(char, escaped)
    return text


def _shown(value: Any) -> Any:
    """Make all texts in lists and mappings fit for a card: on no machine, and no markup."""
    if isinstance(value, Mapping):
        return {_shown(key): _shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    return cell(str(without_folders(value))) if isinstance(value, str) else value


def _code(text: str) -> str:
    return "`" + text.replace("`", "'") + "`"


def _fenced(text: str, language: str) -> str:
    """Put a text between fences that nothing in it can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _header(
    title: str,
    params: CardParams,
    published: Published,
    default: str,
    rows: Counts,
    sources: Sequence[BaseSet],
) -> str:
    from huggingface_hub import DatasetCardData

    configs: list[dict[str, Any]] = [
        {
            "config_name": name,
            **({"default": True} if name == default else {}),
            "data_files": [{"split": SPLIT, "path": data_file(name)}],
        }
        for name in published
    ]
    sensitive = [SENSITIVE_TAG] if rows.labels[Label.TOXIC.value] else []
    licences: Any = {SOURCES: {source.name: source.licence for source in sources}}
    data = DatasetCardData(
        language=languages_of(rows.languages),
        license=params.licence.lower(),
        task_categories=["text-generation"],
        size_categories=[size_of(rows.rows)],
        pretty_name=title,
        tags=list(dict.fromkeys([*_TAGS, *sensitive, *params.tags])),
        configs=configs,
        **licences,
    )
    return str(data.to_yaml(line_break="\n"))


def languages_of(spoken: Iterable[str]) -> list[str]:
    """Give languages as the Hub knows them, without mixtures or scripts."""
    return sorted({tag.partition("-")[0] for one in spoken for tag in one.split("+")} - {"und"})


def size_of(rows: int) -> str:
    """Give the size of a set by the Hub's names."""
    return next((name for most, name in _SIZES if rows < most), "1M<n<10M")


def _categories(published: Published, taxonomy: str) -> list[tuple[str, str, list[int]]]:
    known = taxonomies().get(taxonomy, {})
    found = {category for part in published.values() for category in part.categories}
    return [
        (
            cell(key),
            cell(known[key].definition) if key in known else "",
            [part.categories[key] for part in published.values()],
        )
        for key in [*(key for key in known if key in found), *sorted(found - known.keys())]
    ]


def _more(stage: StageFacts, context: StageContext) -> int:
    """Give how many rewrites were wanted beyond those of the first round."""
    if stage.kind != "rewrite" or not stage.params:
        return 0
    methods = stage.params["methods"] or [stage.params["method"]]
    languages = len(stage.params["languages"] or [context.language])
    each = [stage.params["count"] or load_method(method).count for method in methods]
    return stage.made - stage.rows_in * sum(each) * languages


def _judges_of_own(stages: Sequence[StageFacts]) -> dict[str, list[str]]:
    """Give the models that judged, and also wrote or were tested, with all that they did."""
    does: dict[str, list[str]] = {}
    for stage in stages:
        for role, names in stage.models.items():
            for name in names:
                does.setdefault(name, []).append(_DOES.get(role, ""))
    parts = {name: [one for one in dict.fromkeys(_DOES.values()) if one in did]
             for name, did in does.items()}  # fmt: skip
    return {name: did for name, did in parts.items() if len({one.split()[0] for one in did}) > 1}


def _asked(stage: StageFacts) -> dict[str, list[str]]:
    """Give the models that a stage asked by role, of those that it might have asked."""
    if not stage.rows_in and not stage.made:
        return {}
    idle = stage.figures.get("verdicts", {}).get("judge") == 0
    return {role: names for role, names in stage.models.items()
            if names and not (idle and role == GRADER_ROLE)}  # fmt: skip


def _prompts(stage: StageFacts) -> Iterable[tuple[str, str, str]]:
    """Give the files whose words were sent, those of judges and guards included."""
    found = dict(stage.prompts)
    graders, moderators = stage.models.get(GRADER_ROLE, []), stage.models.get(MODERATOR, [])
    guards = [name for name in graders if guard_for(name) is not None]
    for folder, file, sent in (
        (_JUDGE, "judge/prompt.toml", len(guards) < len(graders)),
        (_JUDGE, "judge/guards.toml", bool(guards)),
        (_PANEL, "panel/prompt_guards.toml", any(map(format_for, moderators))),
    ):
        if sent:
            found[file] = digest(folder / Path(file).name)
    return ((stage.name, name, mark) for name, mark in found.items())


def _as_asked(recipe: Mapping[str, Any], stages: Sequence[StageFacts]) -> dict[str, Any]:
    """Give a recipe with the models that were asked by role, whichever it names."""
    # By name: stages run in another order than that in which a recipe may name them.
    asked = {stage.name: {role: names[0] if len(names) == 1 else names
                          for role, names in stage.models.items()
                          if role not in (TARGET, EMBEDDING)} for stage in stages}  # fmt: skip
    common = {role: models for one in asked.values() for role, models in one.items()}
    for role in list(common):
        if any(one.get(role, common[role]) != common[role] for one in asked.values()):
            del common[role]
    entries = []
    for entry in recipe.get("stages", ()):
        said = {key: value for key, value in entry.items()
                if key != "models" or not isinstance(value, Mapping)}  # fmt: skip
        there = asked.get(name_of(entry), {})
        own = {role: models for role, models in there.items() if role not in common}
        entries.append(said | ({"models": own} if own else {}))
    shown = {key: value for key, value in recipe.items() if key not in ("models", "stages")}
    return shown | ({"models": common} if common else {}) | {"stages": entries}


def _yaml(recipe: Any) -> str:
    return yaml.safe_dump(recipe, sort_keys=False, allow_unicode=True, width=100).rstrip()


def _described(rows: Counts, base_sets: Sequence[BaseSet], own: str) -> list[BaseSet]:
    """Say of every source of the rows what it is, those with the most rows first."""
    known = {base.name: base for base in base_sets}
    names = dict.fromkeys([*(name for name, _ in _most_first(rows.sources)), *known])
    return [known.get(name) or _found(name, own, rows.licences.get(name)) for name in names]


def _found(name: str, own: str, licence: str | None) -> BaseSet:
    if name == own:
        return BaseSet(name=name, licence=OWN, title="written for this data set")
    entry = catalogue().get(name)
    if entry is None:
        return BaseSet(name=name, licence=licence or NOT_STATED)
    return BaseSet(name=name, licence=entry.licence, url=entry.url or "", title=entry.citation)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {cell(value)}" for value, count in _most_first(counts))


def _most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
