"""Tables as files: CSV with all figures, Markdown and LaTeX as people read them."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from or_eval.analysis.report.contents import ReportTable
from or_eval.analysis.report.latex import latex
from or_eval.analysis.report.shown_tables import ShownTable, shown_table
from or_eval.analysis.tables import spreadsheet_safe
from or_eval.hostile_text import visible

# What acts within a cell: an underscore does only at the edge of a word.
_MARKDOWN = re.compile(r"([\\`*\[\]|~]|(?<!\w)_|_(?!\w))")
_ENTITY = re.compile(r"&(?=#?\w+;)")


def write_tables(tables: list[ReportTable], folder: Path) -> None:
    """Write each table as ``NAME.csv``, ``NAME.md`` and ``NAME.tex``."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        shown = shown_table(table.frame)
        write_csv(table.frame, folder / f"{table.name}.csv")
        (folder / f"{table.name}.md").write_text(markdown(shown), encoding="utf-8")
        (folder / f"{table.name}.tex").write_text(
            latex(shown, table.title, table.name), encoding="utf-8"
        )


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as CSV whose texts no spreadsheet runs and whose hidden characters show."""
    texts = {
        name: [visible(text) if isinstance(text, str) else text for text in column]
        for name, column in frame.items()
        if not pd.api.types.is_numeric_dtype(column)
    }
    spreadsheet_safe(frame.assign(**{str(k): v for k, v in texts.items()})).to_csv(
        path, index=False, encoding="utf-8"
    )


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
