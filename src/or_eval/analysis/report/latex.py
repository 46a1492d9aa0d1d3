"""Tables in LaTeX that compile, whatever stands in them."""

from __future__ import annotations

import re

from or_eval.analysis.report.shown_tables import ShownTable
from or_eval.hostile_text import visible

_LONGEST = 45
"""A table of more rows than this goes over several pages."""

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


def latex(shown: ShownTable, title: str, name: str) -> str:
    """Write a table in LaTeX, for the packages ``booktabs``, ``graphicx`` and ``longtable``.

    It is made smaller where it is wider than the page, and goes over pages where it is long.

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
    rows = [r"\toprule", head, r"\midrule"]
    if len(body) > _LONGEST:
        lines = [
            rf"\begin{{longtable}}{{{columns}}}",
            caption + r" \\",
            *rows,
            r"\endhead",
            r"\bottomrule",
            r"\endfoot",
            *body,
            r"\end{longtable}",
        ]
    else:
        lines = [
            r"\begin{table}",
            r"\centering",
            caption,
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{columns}}}",
            *rows,
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
        ]
    return _HEAD + "\n".join(lines) + "\n"


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
