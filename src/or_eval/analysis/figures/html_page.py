"""Figures as files: pages that need no network and run no script but their own, and images."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from or_eval.hostile_text import script_json, visible


def render_page(template: str, script: str, data: Mapping[str, Any], **values: Any) -> str:
    """Render a page.

    Whatever the template writes is escaped, with hidden characters made visible. It finds
    ``policy`` (a content security policy under which only the page's two scripts run, without
    ``eval``, and nothing is loaded), ``library`` (Vega and its kin), ``script`` and ``data``. The
    script first draws the charts in an element ``chart-data`` into the elements ``.chart``.

    Args:
        template: Jinja template of the page.
        script: The page's own script, after that which draws its charts.
        data: What the script reads, by name; each goes into an element of type
            ``application/json``.
        values: Whatever else the template writes.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    library = _javascript_bundle()
    charts = files("or_eval") / "analysis" / "figures" / "template" / "charts.js"
    script = charts.read_text("utf-8") + script
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.from_string(template).render(
        policy=_policy(library, script),
        library=Markup(library),
        script=Markup(script),
        data={name: Markup(script_json(item)) for name, item in data.items()},
        **values,
    )


@cache
def _javascript_bundle() -> str:
    """Give the scripts that draw charts in a page: Vega, Vega-Lite and vega-embed."""
    import vl_convert

    bundle: Any = vl_convert.javascript_bundle  # its stub asks for an argument that has a default
    return str(bundle())


def _policy(*scripts: str) -> Any:
    from markupsafe import Markup

    hashes = (b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return Markup(
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
