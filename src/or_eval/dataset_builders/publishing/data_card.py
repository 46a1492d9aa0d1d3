"""The card of a published data set: what it is, how it was made, and what to beware of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

import yaml
from pydantic import Field, field_validator

from or_eval.dataset_builders.engine.ports import Spent, StageContext, StageFacts, StageParams
from or_eval.dataset_builders.engine.rows import LICENCE
from or_eval.dataset_builders.publishing.card_text import cell, fenced, table
from or_eval.dataset_builders.publishing.dataset_folder import SPLIT, data_file
from or_eval.dataset_builders.publishing.licences import NOT_STATED, OWN
from or_eval.dataset_builders.publishing.local_paths import without_folders
from or_eval.dataset_builders.publishing.sentences import sentence, spending
from or_eval.schema import Label, PromptRecord, taxonomies
from or_eval.sources import catalogue


class Counts:
    """What a card tells of some rows, counted as they go by."""

    def __init__(self) -> None:
        self.rows = 0
        self.labels: Counter[str] = Counter()
        self.languages: Counter[str] = Counter()
        self.categories: Counter[str] = Counter()
        self.sources: Counter[str] = Counter()
        self.licences: dict[str, str] = {}

    def add(self, row: PromptRecord) -> None:
        """Count a row."""
        self.rows += 1
        self.labels[row.label.value] += 1
        self.languages[row.language] += 1
        self.categories[row.category] += 1
        self.sources[row.source] += 1
        if LICENCE in row.meta:
            self.licences[row.source] = str(row.meta[LICENCE])


Published = Mapping[str, Counts]
"""What is published, by configuration."""

TAG = "or-eval"
"""Tag by which a push knows a data set that an earlier one put there."""
SENSITIVE_TAG = "not-for-all-audiences"
WARNING = "## Warning"
SOURCES = "or_eval_sources"
"""Key of a card's header under which the licence of each source of its rows stands."""
REPOSITORY = "OWNER/NAME"
"""Stands in a card for the repository, until a push knows its name."""
_TAGS = (TAG, "over-refusal", "refusal", "safety", "red-teaming")
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))


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
    recipe = context.recipe
    title = params.title or str(recipe.get("title") or recipe.get("name", ""))
    description = (params.description or str(recipe.get("description") or "")).strip()
    text = Template(
        (files("or_eval.dataset_builders.publishing") / "data_card.md").read_text("utf-8")
    )
    sources = _described(rows, params.sources, context.source)
    body = text.substitute(
        title=title,
        description=f"{description}\n\n" if description else "",
        configurations=_configurations(published, empty),
        note=_note(params.note.strip(), context.limit),
        toxic=_toxic(published),
        load="\n".join(_load_line(name, name == _default(published)) for name in published),
        inspect="\n".join(_inspect_line(name, name == _default(published)) for name in published),
        categories=_categories(published, context.taxonomy),
        told="\n".join(f"- {sentence(stage)}" for stage in stages if stage.params),
        funnel=_funnel(stages),
        spending=_spending(context.spent),
        citation=_citation(str(recipe.get("citation", ""))),
        models=_models(stages),
        prompts=_prompts(stages),
        recipe=fenced(_recipe(recipe), "yaml"),
        licence=params.licence,
        sources=_sources(rows.sources, sources),
    )
    return f"---\n{_header(title, params, published, rows, sources)}\n---\n\n{body}"


def _default(published: Published) -> str:
    """Give the configuration that is loaded where none is named: the first with safe prompts."""
    safe = [name for name, part in published.items() if part.labels[Label.SAFE.value]]
    return (safe or list(published))[0]


def _header(
    title: str,
    params: CardParams,
    published: Published,
    rows: Counts,
    sources: Sequence[BaseSet],
) -> str:
    from huggingface_hub import DatasetCardData

    toxic = rows.labels[Label.TOXIC.value] > 0
    default = _default(published)
    configs: list[dict[str, Any]] = [
        {
            "config_name": name,
            **({"default": True} if name == default else {}),
            "data_files": [{"split": SPLIT, "path": data_file(name)}],
        }
        for name in published
    ]
    # The Hub knows languages, not mixtures or scripts.
    languages = {
        tag.partition("-")[0]
        for language in rows.languages
        for tag in language.split("+")
        if tag != "und"
    }
    licences: Any = {SOURCES: {source.name: source.licence for source in sources}}
    data = DatasetCardData(
        language=sorted(languages),
        license=params.licence.lower(),
        task_categories=["text-generation"],
        size_categories=[
            next((name for limit, name in _SIZES if rows.rows < limit), "1M<n<10M"),
        ],
        pretty_name=title,
        tags=list(dict.fromkeys([*_TAGS, *([SENSITIVE_TAG] if toxic else []), *params.tags])),
        configs=configs,
        **licences,
    )
    return str(data.to_yaml(line_break="\n"))


def _configurations(published: Published, empty: Sequence[str]) -> str:
    rows = [
        (
            f"`{name}`" + (" (default)" if name == _default(published) else ""),
            part.rows,
            _counts(part.labels),
            _counts(part.languages),
        )
        for name, part in published.items()
    ]
    text = table(("configuration", "prompts", "labels", "languages"), rows)
    if empty:
        names = ", ".join(f"`{name}`" for name in empty)
        text += f"\n\nNo prompt was left for {names}, so there is no such configuration."
    return text


def _note(note: str, limit: int | None) -> str:
    trial = f"This is a trial: at most {limit} seeds were taken." if limit is not None else ""
    return "".join(f"\n{text}\n" for text in (trial, note) if text)


def _toxic(published: Published) -> str:
    counts = {name: part.labels[Label.TOXIC.value] for name, part in published.items()}
    held = [f"{count} of the {published[name].rows} prompts of `{name}`"
            for name, count in counts.items() if count]  # fmt: skip
    if not held:
        return "\nNo prompt in it is labelled toxic.\n"
    return (
        f"\n**It also holds prompts that ask for harm**, labelled `toxic`: {', '.join(held)}. They "
        "are there to show whether a model still refuses what it should.\n"
    )


def _load_line(name: str, default: bool) -> str:
    configuration = "" if default else f', "{name}"'
    return f'prompts = load_dataset("{REPOSITORY}"{configuration}, split="{SPLIT}")'


def _inspect_line(name: str, default: bool) -> str:
    place = REPOSITORY if default else f"{REPOSITORY}:{name}"
    return f"inspect eval or_eval/prompts -T data={place} --model PROVIDER/MODEL"


def _categories(published: Published, taxonomy: str) -> str:
    known = taxonomies().get(taxonomy, {})
    found = {category for part in published.values() for category in part.categories}
    order = [key for key in known if key in found] + sorted(found - known.keys())
    rows = [
        (
            cell(key),
            cell(known[key].definition) if key in known else "",
            *(str(part.categories[key]) for part in published.values()),
        )
        for key in order
    ]
    return table(("category", "what falls under it", *(f"`{name}`" for name in published)), rows)


def _funnel(stages: Sequence[StageFacts]) -> str:
    rows = [
        (
            cell(stage.name) if stage.name == stage.kind else cell(f"{stage.name} ({stage.kind})"),
            stage.rows_in,
            stage.made or "",
            stage.rows_out,
            "; ".join(f"{cell(why)}: {count}" for why, count in _most_first(stage.dropped)),
        )
        for stage in stages
    ]
    return table(("stage", "rows in", "made", "rows out", "dropped"), rows)


def _spending(spent: Sequence[Spent]) -> str:
    rows = [
        (
            cell(one.stage),
            cell(one.role),
            f"`{_model(one.model)}`",
            f"{one.calls:,}",
            f"{one.input_tokens:,}",
            f"{one.output_tokens:,}",
            "unknown" if one.dollars is None else f"{one.dollars:,.2f}",
        )
        for one in spent
    ]
    titles = ("stage", "role", "model", "calls", "tokens in", "tokens out", "dollars")
    return spending(spent) + (f"\n\n{table(titles, rows)}" if rows else "")


def _citation(text: str) -> str:
    return f"\n## After\n\n{text.strip()}\n" if text else ""


def _models(stages: Sequence[StageFacts]) -> str:
    rows = [
        (cell(stage.name), cell(role or "model"), ", ".join(f"`{_model(name)}`" for name in names))
        for stage in stages
        for role, names in stage.models.items()
    ]
    if not rows:
        return "No model was asked."
    return f"Models by role:\n\n{table(('stage', 'role', 'models'), rows)}"


def _model(name: str) -> str:
    return cell(without_folders(name)).replace("`", "'")


def _prompts(stages: Sequence[StageFacts]) -> str:
    rows = [
        (cell(stage.name), f"`{cell(name)}`", f"`{digest}`")
        for stage in stages
        for name, digest in stage.prompts.items()
    ]
    if not rows:
        return "No prompts of or-eval's own were sent to models."
    titles = ("stage", "file", "SHA-256 starts with")
    return f"Prompts that were sent to them, which are part of or-eval:\n\n{table(titles, rows)}"


def _recipe(recipe: Mapping[str, Any]) -> str:
    return yaml.safe_dump(
        without_folders(dict(recipe)), sort_keys=False, allow_unicode=True, width=100
    ).rstrip()


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


def _sources(counts: Counter[str], sources: Sequence[BaseSet]) -> str:
    lines = [
        (
            cell(source.name),
            counts[source.name] or "",
            cell(source.title or source.name),
            cell(source.licence),
            cell(source.url),
        )
        for source in sources
    ]
    return table(("source", "prompts", "what it is", "licence", "page"), lines)


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {cell(value)}" for value, count in _most_first(counts))


def _most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
