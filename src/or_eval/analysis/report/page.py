"""The report as one HTML file that needs no network."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from rich.markup import escape

from or_eval.analysis.figures.drawing import javascript_bundle
from or_eval.analysis.report.contents import Report
from or_eval.analysis.report.hostile_text import script_json, visible
from or_eval.analysis.report.shown_tables import shown_table


def page(report: Report) -> str:
    """Render a report.

    Every text passes Jinja's autoescape and :func:`~.hostile_text.visible`; data reach the scripts
    as JSON, and the page's policy lets only its own scripts run and nothing be loaded.

    Raises:
        PrerequisiteError: Jinja or altair isn't installed.
    """
    charts = {figure.name: figure.chart.to_dict() for figure in report.figures}
    library, script = javascript_bundle(), _file("report.js")
    return str(
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            tables=[(table, shown_table(table.frame)) for table in report.tables],
            style=_markup(_file("report.css")),
            library=_markup(library),
            script=_markup(script),
            hashes=[_hash(library), _hash(script)],
            charts=_markup(script_json(charts)),
            prompts=_markup(script_json(report.browser.prompts)),
        )
    )


def _environment() -> Any:
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as missing:
        raise PrerequisiteError(
            escape("Reports need Jinja: pip install 'or-eval[report]'")
        ) from missing
    from jinja2 import DictLoader

    return Environment(
        loader=DictLoader({"report.html": _file("report.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> Any:
    """Make hidden characters visible in whatever a template writes."""
    return visible(value) if type(value) is str else value


def _markup(trusted: str) -> Any:
    from markupsafe import Markup

    return Markup(trusted)


def _hash(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()


def _file(name: str) -> str:
    return (files("or_eval") / "analysis" / "report" / "template" / name).read_text("utf-8")
