"""The docs site builds with no warning, and holds all it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What a browser fetches by itself; a link waits for a click.
_FETCHED = re.compile(
    r"<(?:script|img|iframe|link rel=\"?(?:stylesheet|preconnect))[^>]*https?://[^>]*>"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")
    return folder


def test_every_page_is_on_the_site(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix("")
        there = site / name / "index.html" if name.name != "index" else site / "index.html"
        assert there.is_file() or page.name == "llms_head.md", page
    assert (site / "src/or_eval/sources/catalogue.toml").is_file()


def test_a_page_fetches_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not _FETCHED.findall(page.read_text("utf-8")), page


def test_the_list_for_language_models_names_every_page(site: Path) -> None:
    listed = re.findall(
        r"^- \[.+\]\((.+?)\): .+|^- \[.+\]\((.+?)\)$",
        (site / "llms.txt").read_text("utf-8"),
        re.MULTILINE,
    )
    found = {one or other for one, other in listed}
    assert {"index.html", "tutorials/a-model/", "stages/publish/", "reference/python/"} <= found
    assert all((site / path).exists() for path in found)
