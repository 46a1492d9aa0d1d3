"""Tables for papers: wide rates, matrices of differences, and LaTeX that compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from made_logs import made_log
from or_eval.analysis.comparisons import compare_models
from or_eval.analysis.contrasts import MORE
from or_eval.analysis.material import Material, with_shown_names
from or_eval.analysis.rates import rates
from or_eval.analysis.report.forms import escaped, latex, shown_table, write_tables
from or_eval.analysis.report.model_tables import difference_matrix, model_tables, wide_rates
from or_eval.analysis.responses import read_logs
from report_logs import ATTACK, FORMULA, varied

HOSTILE = [
    *(ATTACK, FORMULA, r"\input{/etc/passwd}", r"\end{tabular}", "50 % & $x_1$ \\ ^~ #1"),
    *(
        "北京模型/通义千问",
        "Größe – naïve ‘ça’ … ±1²",
        "[a|b] *c* -- d",
        "Þórr Łódź ελ مرحبا 🙂 e\u0301",
    ),
    "\x00\x07\u2028",
]
DOCUMENT = r"""\documentclass{article}
\usepackage{booktabs,graphicx,longtable}
\begin{document}
%s
\end{document}
"""


def compiled(source: str, folder: Path) -> int:
    """Compile LaTeX, or skip the test where there is none; give the number of pages."""
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex (Debian's package texlive-latex-recommended)")
    (folder / "paper.tex").write_text(DOCUMENT % source, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    written = re.search(r"Output written on paper.pdf \((\d+) page", done.stdout)
    assert written
    assert "Missing character" not in done.stdout
    return int(written[1])


def test_every_table_of_a_hostile_report_compiles(tmp_path: Path) -> None:
    for model in range(2):
        made_log(tmp_path / f"{model}.eval", HOSTILE[model] + HOSTILE[5], varied(model, True))
    found = Material(with_shown_names(read_logs(tmp_path)))
    write_tables(model_tables(found), tmp_path / "tables")
    tables = sorted((tmp_path / "tables").glob("*.tex"))
    assert len(tables) > 15
    compiled("\n".join(path.read_text("utf-8") for path in tables), tmp_path)


def test_hostile_and_long_tables_compile_and_stay_text(tmp_path: Path) -> None:
    names = [*HOSTILE, *HOSTILE]
    wide = pd.DataFrame({name: ["1 (0–2)"] * 3 for name in HOSTILE})
    long = pd.DataFrame({"name": names * 5, "rate": 0.5, "lower": 0.4, "upper": 0.6})
    texts = [latex(shown_table(wide), "50 % & more", "wide"), latex(shown_table(long), "L", "long")]
    assert r"\begin{longtable}" in texts[1]
    pages = compiled("\n".join(texts), tmp_path)
    assert pages >= 3
    assert r"\input" not in "".join(texts)


def test_texts_are_escaped() -> None:
    assert escaped("50 % & $x_1$ \\ ^~") == (
        r"50 \% \& \$x\_1\$ \textbackslash{} \textasciicircum{}\textasciitilde{}"
    )
    # a line break would take what stands in brackets after it for its own argument
    assert escaped("[a|b] *c*") == r"{[}a\textbar{}b{]} {*}c{*}"
    assert escaped("a--b") == "a-{}-b"
    assert escaped("-2.4 (-3.0 to +1.5), 2025-01-02") == "$-$2.4 ($-$3.0 to +1.5), 2025-01-02"
    assert escaped("é 北京") == r"é \unicodetext{北京}{U+5317 U+4EAC}"


@pytest.fixture(scope="module")
def responses(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("logs")
    for model in range(3):
        made_log(folder / f"{model}.eval", f"m{model}", varied(model))
    return read_logs(folder).responses


def test_wide_tables_have_a_line_per_model(responses: pd.DataFrame) -> None:
    by = rates(responses, ("model", "language"))
    table = wide_rates(by, "language")
    assert list(table.columns) == ["rate", "model", "en", "zh", "zh+en"]
    cells = table.set_index(["rate", "model"])
    for row in by[by["n"] > 0].to_dict("records"):
        name = "over-refusal" if row["measure"] == "over_refusal" else "toxic rejection"
        text = f"{100 * row['rate']:.1f} ({100 * row['lower']:.1f}–{100 * row['upper']:.1f})"
        assert cells.loc[(name, row["model"]), row["language"]] == text


def test_what_is_more_goes_down(responses: pd.DataFrame) -> None:
    table = wide_rates(rates(responses, ("model", "category")), "category")
    assert list(table.columns) == ["rate", "category", "m0", "m1", "m2"]


def test_differences_stand_in_a_matrix_both_ways(responses: pd.DataFrame) -> None:
    found = compare_models(responses)
    safe = found[found["label"] == "safe"].copy()
    safe.loc[safe.index[0], "verdict"] = MORE
    table = difference_matrix(safe).set_index("model")
    assert list(table.index) == list(table.columns) == ["m0", "m1", "m2"]
    for a, b in product(table.index, table.columns):
        if a == b:
            assert table.loc[a, b] == ""
            continue
        [row] = safe[safe["a"].isin([a, b]) & safe["b"].isin([a, b])].to_dict("records")
        sign = 1 if row["a"] == a else -1
        text = table.loc[a, b]
        assert float(text.split()[0].rstrip("*")) == pytest.approx(
            100 * sign * row["difference"], abs=0.06
        )
        ends = np.array([row["lower"], row["upper"]]) * 100 * sign
        if not np.isnan(ends).any():
            assert f"({ends.min():+.1f} to {ends.max():+.1f})" in text
        assert text.endswith("*") == (row["verdict"] == MORE)


def test_models_and_categories_may_be_called_as_columns_are(responses: pd.DataFrame) -> None:
    names = dict(zip(responses["model"].unique(), ["a", "model", "rate"], strict=True))
    renamed = responses.assign(model=responses["model"].map(names), category="rate")
    compared = compare_models(renamed)
    assert len(difference_matrix(compared[compared["label"] == "safe"])) == len(names)
    assert len(wide_rates(rates(renamed, ("model", "category")), "category"))
