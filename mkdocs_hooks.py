"""What the docs site needs beyond its pages: linked files of the repository, the changes, llms.txt.

Pages link to files of the repository, which stand outside of `docs/`. The site takes those along,
so that such a link works there as it does in a checkout.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent
_OUTSIDE = re.compile(r"\]\((?:\.\./)+((?:src|benchmarks)/[^)#]+|(?:README|CONTRIBUTING)\.md)\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
# Headings, tables, lists, pictures, and what mkdocstrings fills in.
_NO_SENTENCE = ("#", "|", "-", "!", ":::", "```")

_lines: list[str] = []


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the changes, and every file outside of `docs/` that a page links to."""
    pages = [file.content_string for file in files.documentation_pages()]
    for path in sorted({found for page in pages for found in _OUTSIDE.findall(page)}):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    files.append(File.generated(config, "changes.md", content=changes))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point such links at the site's copy."""
    up = "../" * page.file.src_uri.count("/")
    return _OUTSIDE.sub(lambda link: f"]({up}{link[1]})", markdown)


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Note each page's title and first sentence, for llms.txt."""
    _lines[:] = [_line(page.url or "index.html", page.file.content_string) for page in nav.pages]
    return nav


def on_post_build(config: MkDocsConfig) -> None:
    """Write llms.txt: what or-eval is, and where to read on."""
    head = (Path(config.docs_dir) / "llms_head.md").read_text("utf-8")
    (Path(config.site_dir) / "llms.txt").write_text(head + "\n".join(_lines) + "\n", "utf-8")


def _line(path: str, text: str) -> str:
    title, _, body = text.partition("\n")
    paragraphs = [part.strip() for part in body.split("\n\n")]
    said = next((p for p in paragraphs if p and not p.startswith(_NO_SENTENCE)), "")
    first = re.split(r"(?<=\.) ", " ".join(_LINK.sub(r"\1", said).split()))[0]
    return f"- [{title.lstrip('# ')}]({path}): {first.rstrip(':.')}".rstrip(": ")
