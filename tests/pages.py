"""Reports and figures in a real browser, which is overheard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@contextmanager
def launched() -> Iterator[Browser]:
    """Start a headless Chromium, or skip the test where there is none."""
    if not CHROMIUM.exists():
        pytest.skip(f"no browser at {CHROMIUM} (Debian's package chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, file: Path, **options: Any) -> Iterator[tuple[Page, list[str]]]:
    """Open a page and draw its figures; give it with all it complains of or asks for."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    page, heard = context.new_page(), []
    page.on("console", lambda message: heard.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("dialog", lambda dialog: heard.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: heard.append(request.url))
    page.goto(file.as_uri())
    heard.remove(file.as_uri())
    page.evaluate("document.querySelectorAll('#figures > details').forEach(it => it.open = true)")
    for place in page.locator(".chart").all():
        place.scroll_into_view_if_needed()
        place.locator("svg.marks").first.wait_for(timeout=30_000)
    yield page, heard
    context.close()
