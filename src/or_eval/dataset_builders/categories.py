"""Publishers' categories, brought to the taxonomy of a recipe."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from or_eval.schema import map_category, taxonomies

_TAXONOMY_OF_TABLE = "multilingual"


@cache
def category_key(spelling: str, taxonomy: str, source: str = "") -> str | None:
    """Give the category of a taxonomy that a publisher's spelling stands for, or None.

    Of a source that ``publisher_categories.toml`` knows, what stands there. Otherwise it may be a
    key, a name or another spelling of a category of this taxonomy, or else of another one from
    which it can be translated.
    """
    folded_spelling = spelling.strip().casefold()
    if source in _tables():
        key = _tables()[source].get(folded_spelling)
        return None if key is None else map_category(key, _TAXONOMY_OF_TABLE, taxonomy)
    others = (name for name in taxonomies() if name != taxonomy)
    for name in (taxonomy, *others):
        for category in taxonomies()[name].values():
            spellings = (category.key, category.name, *category.aliases)
            if folded_spelling not in (item.casefold() for item in spellings):
                continue
            if mapped := map_category(category.key, name, taxonomy):
                return mapped
    return None


@cache
def _tables() -> dict[str, dict[str, str]]:
    text = (files("or_eval") / "data" / "publisher_categories.toml").read_text("utf-8")
    return {
        source: {spelling.casefold(): key for spelling, key in table.items()}
        for source, table in tomllib.loads(text).items()
    }
