"""Tables as people read them, a figure and its interval in one cell: on pages and as files."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.report.contents import ReportTable, report_file
from or_eval.analysis.responses import other_counting
from or_eval.analysis.tables import plain, spreadsheet_safe
from or_eval.analysis.wording import MEASURE_NAMES, written
from or_eval.hostile_text import visible
from or_eval.schema import STRICT, countings

HEADLINE = "headline"
"""The table of the first screen, where a band within a cell shows what the rate could be."""

_LOWEST, _HIGHEST, _RANGE, _UNSURE = "lowest", "highest", "range", "_unsure"
_EXPECTED = "_expected"
_SMALLEST_P = 0.001
_LONGEST = 45
"""A table in LaTeX of more rows than this goes over several pages."""

# What acts within a cell of Markdown: an underscore does only at the edge of a word.
_MARKDOWN = re.compile(r"([\\`*\[\]|~]|(?<!\w)_|_(?!\w))")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_SPECIAL = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    # in braces, since a line break before them would take them in
    **{character: f"{{{character}}}" for character in "[]*"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "—": "---",
    "–": "--",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "′": "$'$",
    "²": "$^2$",
    "…": r"\ldots{}",
}
# What LaTeX sets in its first encoding: ASCII, and the accented letters of Latin 1.
_FURTHER = re.compile(r"[^ -~À-ÏÑ-ÖØ-Ýß-ïñ-öø-ýÿ" + "".join(_SPECIAL).replace("]", r"\]") + "]+")
_MINUS = re.compile(r"(?<![\w}-])-(?=\d)")
_HEAD = r"""% \usepackage{booktabs,graphicx,longtable}
% pdfLaTeX shows the codes of letters beyond Latin 1; XeLaTeX and LuaLaTeX show the letters.
\providecommand{\unicodetext}[2]{\ifdefined\Umathchar#1\else#2\fi}
"""


class Cell(NamedTuple):
    """A cell.

    Attributes:
        text: What it says.
        order: What it is sorted by: a number, or None for text.
        spans: Where its figure is, and between which shares it may lie by its interval and by the
            verdicts in doubt, where that is known.
    """

    text: str
    order: float | None = None
    spans: dict[str, float] | None = None


class ShownTable(NamedTuple):
    """A table ready to be shown.

    Attributes:
        headers: Column titles.
        numeric: For each column, whether it holds numbers.
        rows: The cells, row by row.
    """

    headers: list[str]
    numeric: list[bool]
    rows: list[list[Cell]]


def shown_table(frame: pd.DataFrame, table: str = "") -> ShownTable:
    """Give a frame as it is shown; the bounds of an interval go into the cell of their figure.

    Args:
        frame: The table.
        table: Its name, where columns of its own are told of in ``columns.toml``.

    Where a figure stands by two countings, their titles name these.
    """
    told = _columns()["any"] | _columns().get(table, {})
    bands = table == HEADLINE
    counting = str(frame["counting"].iloc[0]) if "counting" in frame and len(frame) else STRICT
    other = other_counting(counting)
    frame = frame.drop(columns="counting", errors="ignore")
    frame = frame if bands else _with_ranges(frame)
    pairs = {
        str(name): pair
        for name in frame.columns
        if told.get(name, {}).get("bounds", True) and (pair := _bounds(frame, str(name)))
    }
    inside = {column for pair in pairs.values() for column in pair}
    names = [
        str(name)
        for name in frame.columns
        if name not in inside and not (bands and str(name).endswith((_LOWEST, _HIGHEST, _UNSURE)))
    ]
    names = [one for name in names for one in (name, f"{name}_{other}") if one in names]
    names = list(dict.fromkeys(names))
    stems = {name: name.removesuffix(f"_{other}") for name in names}
    is_number, is_flag = pd.api.types.is_numeric_dtype, pd.api.types.is_bool_dtype
    numeric = [
        name.endswith(_RANGE) or (is_number(frame[name]) and not is_flag(frame[name]))
        for name in names
    ]
    kinds = {name: told.get(stem, {}).get("kind", "plain") for name, stem in stems.items()}
    rows = [
        [_cell(name, kinds[name], row, pairs.get(name)) for name in names]
        for row in frame.to_dict("records")
    ]
    if "rank" in names:
        _name_ranks_once(rows, frame["rank"], names.index("rank"))
    titles = [
        "could be"
        if name.endswith(_RANGE)
        else told.get(stem, {}).get("title", stem.replace("_", " "))
        + (f", {countings()[other].name}" if stem != name else "")
        + (
            f", {countings()[counting].name}"
            if f"{name}_{other}" in names or name.endswith(_EXPECTED)
            else ""
        )
        for name, stem in stems.items()
    ]
    return ShownTable(titles, numeric, rows)


def _name_ranks_once(rows: list[list[Cell]], ranks: pd.Series[int], place: int) -> None:
    """Say a rank that several rows on end share in the first of them, with their number."""
    run = ranks.ne(ranks.shift()).cumsum()
    for row, first, size in zip(rows, ~run.duplicated(), run.map(run.value_counts()), strict=True):
        several = f" ({size} models)" if size > 1 else ""
        row[place] = row[place]._replace(text=row[place].text + several if first else "")


@cache
def _columns() -> dict[str, Any]:
    return tomllib.loads(report_file("columns.toml"))


def _with_ranges(frame: pd.DataFrame) -> pd.DataFrame:
    """Put the columns ``lowest`` and ``highest`` of a rate into one."""
    shown = {}
    for name, column in frame.items():
        stem = str(name).removesuffix(_LOWEST)
        if name == f"{stem}{_LOWEST}":
            pairs = list(zip(column, frame[f"{stem}{_HIGHEST}"], strict=True))
            shown[f"{stem}{_RANGE}"] = pd.Series(pairs, frame.index, dtype=object)
        elif not str(name).endswith(_HIGHEST):
            shown[str(name)] = column
    return pd.DataFrame(shown, index=frame.index)


def _bounds(frame: pd.DataFrame, name: str) -> tuple[str, str] | None:
    alone = [("lower", "upper")] if name in _columns()["bare"] else []
    pairs = [(f"{name}_lower", f"{name}_upper"), *alone]
    return next((pair for pair in pairs if set(pair) <= set(frame.columns)), None)


def _cell(name: str, kind: str, row: dict[Any, Any], pair: tuple[str, str] | None) -> Cell:
    value = plain(row[name])
    if isinstance(value, list):
        low, high = value
        if low is None:
            return Cell("—")
        return Cell(f"{100 * low:.1f}–{100 * high:.1f} %", high, {"low": low, "high": high})
    if value is None:
        return Cell("—")
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = str(value)
        return Cell(visible(MEASURE_NAMES.get(text, text) if name == "measure" else text))
    if kind == "p":
        small = value < _SMALLEST_P
        return Cell(f"< {_SMALLEST_P}" if small else f"{value:.3f}", float(value))
    if kind == "plain" and isinstance(value, int):
        return Cell(f"{value:,}", float(value))
    lower, upper = (plain(row[bound]) for bound in pair) if pair else (None, None)
    low, high = (plain(row.get(f"{name}_{end}")) for end in (_LOWEST, _HIGHEST))
    spans = {"at": value, "from": lower, "to": upper, "low": low, "high": high}
    spans = {end: share for end, share in spans.items() if share is not None}
    shown = spans if kind == "share" and lower is not None else None
    unsure = plain(row.get(f"{name}{_UNSURE}"))
    remarks = [f"{written(unsure, kind='round')} unsure"] if unsure else []
    return Cell(written(value, lower, upper, *remarks, kind=kind), float(value), shown)


def write_tables(tables: list[ReportTable], folder: Path) -> None:
    """Write each table as ``NAME.csv``, with all figures, ``NAME.md`` and ``NAME.tex``."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        shown = shown_table(table.frame, table.name)
        write_csv(table.frame, folder / f"{table.name}.csv")
        tex = latex(shown, table.title, table.name)
        for ending, text in (("md", markdown(shown)), ("tex", tex)):
            (folder / f"{table.name}.{ending}").write_text(text, encoding="utf-8")


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as CSV whose texts no spreadsheet runs and whose hidden characters show."""
    texts = {
        str(name): [visible(text) if isinstance(text, str) else text for text in column]
        for name, column in frame.items()
        if not pd.api.types.is_numeric_dtype(column)
    }
    spreadsheet_safe(frame.assign(**texts)).to_csv(path, index=False, encoding="utf-8")


def markdown(shown: ShownTable) -> str:
    """Write a table in Markdown; whatever Markdown or HTML would act on is escaped."""
    lines = [
        [_markdown(header) for header in shown.headers],
        ["---:" if numeric else "---" for numeric in shown.numeric],
        *([_markdown(cell.text) for cell in row] for row in shown.rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _markdown(text: str) -> str:
    escaped = _ENTITY.sub("&amp;", text).replace("<", "&lt;").replace(">", "&gt;")
    return " ".join(_MARKDOWN.sub(r"\\\1", escaped).split())


def latex(shown: ShownTable, title: str, name: str) -> str:
    """Write a table in LaTeX that compiles, whatever stands in it.

    It needs ``booktabs``, ``graphicx`` and ``longtable``, is made smaller where it is wider than
    the page, and goes over pages where it is long.

    Args:
        shown: The table.
        title: Its caption.
        name: Its label, after ``tab:``.
    """
    columns = "".join("r" if numeric else "l" for numeric in shown.numeric)
    head, *body = (
        " & ".join(escaped(text) for text in line) + r" \\"
        for line in (shown.headers, *([cell.text for cell in row] for row in shown.rows))
    )
    caption = rf"\caption{{{escaped(title)}}}\label{{tab:{name}}}"
    if len(body) > _LONGEST:
        before = [rf"\begin{{longtable}}{{{columns}}}", caption + r" \\"]
        rows = [r"\toprule", head, r"\midrule", r"\endhead", r"\bottomrule", r"\endfoot", *body]
        after = [r"\end{longtable}"]
    else:
        before = [
            *(r"\begin{table}", r"\centering", caption),
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{columns}}}",
        ]
        rows = [r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
        after = [r"\end{tabular}}", r"\end{table}"]
    return _HEAD + "\n".join([*before, *rows, *after]) + "\n"


def escaped(text: str) -> str:
    """Write a text so that LaTeX sets it as it is, in one line."""
    parts = []
    for part in re.split(f"({_FURTHER.pattern})", " ".join(visible(text).split())):
        if _FURTHER.fullmatch(part):
            codes = " ".join(f"U+{ord(character):04X}" for character in part)
            parts.append(rf"\unicodetext{{{part}}}{{{codes}}}")
        else:
            plain = "".join(_SPECIAL.get(character, character) for character in part)
            parts.append(re.sub("-(?=-)", "-{}", plain) if "--" in part else plain)
    return _MINUS.sub("$-$", "".join(parts))
