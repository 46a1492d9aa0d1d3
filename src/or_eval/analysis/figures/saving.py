"""Figures as files: pages that need no network and run no script but their own, and images."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

from or_eval.analysis.figures.drawing import Figure
from or_eval.analysis.figures.in_language import language
from or_eval.analysis.tables import spreadsheet_safe
from or_eval.hostile_text import script_json, visible

Format: TypeAlias = Literal["html", "svg", "png", "pdf"]

_PIXELS_PER_INCH = 144


def save_figure(
    figure: Figure, folder: Path, formats: Sequence[Format] = ("html", "svg", "png")
) -> list[Path]:
    """Save a figure and its data (as CSV), each under the figure's name.

    altair's own pages would let a name with ``</script>`` in it end their script: ours don't.

    Args:
        figure: The figure.
        folder: Folder to write to; made where there is none.
        formats: ``html`` (a page that needs no network), ``svg``, ``png``, ``pdf``.

    Returns:
        The paths of the files, the data's last.
    """
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{figure.name}.{ending}" for ending in (*formats, "csv")]
    chart = figure.chart.to_dict()
    drawing = vl_convert.vegalite_to_svg(chart) if set(formats) != {"html"} else ""
    for path, form in zip(written, formats, strict=False):
        match form:
            case "html":
                path.write_text(_page(figure, chart), encoding="utf-8")
            case "svg":
                path.write_text(drawing, encoding="utf-8")
            case "png":
                path.write_bytes(vl_convert.svg_to_png(drawing, ppi=_PIXELS_PER_INCH))
            case "pdf":
                path.write_bytes(vl_convert.svg_to_pdf(drawing))
    spreadsheet_safe(figure.data).to_csv(written[-1], index=False, encoding="utf-8")
    return written


def _page(figure: Figure, chart: dict[str, Any]) -> str:
    template = files("or_eval") / "analysis" / "figures" / "template" / "figure.html"
    charts = {"charts": {figure.name: chart}}
    return render_page(template.read_text("utf-8"), "", charts, figure=figure, language=language())


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
