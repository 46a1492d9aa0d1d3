"""The report in a browser: its layout, its keyboard use, hostile data, and its links."""

from __future__ import annotations

import csv
import json
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commands import Command
from made_logs import made_log
from or_eval.analysis.human_labels import Labels, read_labels, said_of, truth_of
from or_eval.analysis.report import write_report
from or_eval.analysis.report.tested import ADDRESS
from or_eval.analysis.responses import read_logs
from or_eval.sources.files import read_table
from pages import launched, opened
from report_logs import ATTACK, FORMULA, embedded, summary_of, varied

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    for model in range(5):
        made_log(folder / f"{model}.eval", f"maker/model{model}", varied(model))
    return folder


@pytest.fixture(scope="module")
def report(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(logs, tmp_path_factory.mktemp("report") / "out")


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "logs"
    for model in range(4):
        samples = varied(model, hostile=True)
        if model == 0:
            samples[1].output.completion = "<b>x</b>" * 125_000
        name = (FORMULA, ATTACK, "x" * 900, "@SUM(1)")[model]
        made_log(folder / f"{model}.eval", name, samples)
    return write_report(folder, folder.parent / "report")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


Opened = tuple["Page", list[str]]


@pytest.fixture(scope="module")
def plain(chromium: Browser, report: Path) -> Iterator[Opened]:
    """Open the report once, for tests that use it in turn."""
    with opened(chromium, report) as page:
        yield page


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.parametrize(
    ("width", "scheme"), [(390, "light"), (390, "dark"), (1280, "dark"), (1440, "light")]
)
def test_page_holds_at_every_width(
    chromium: Browser, report: Path, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 800}
    with opened(chromium, report, viewport=size, color_scheme=scheme) as (page, heard):
        assert heard == []
        assert fits(page)
        # the first screen has both rates of every model, none of it to be scrolled to
        table = page.locator("#headline .scroll")
        assert table.evaluate("place => place.scrollWidth <= place.clientWidth")
        assert table.locator("tbody tr").count() == 5
        # all five models stand in the grid
        grid = page.locator("#grid")
        assert grid.evaluate("it => it.offsetWidth <= it.parentElement.clientWidth")
        # the rates stand above what is said of them, or beside it
        first, said = (
            page.locator(f".first .{name}").bounding_box() for name in ("headline", "answers")
        )
        assert first is not None
        assert said is not None
        assert first["y"] < 500
        assert (
            said["y"] >= first["y"] + first["height"] if width < 1216 else said["y"] == first["y"]
        )
        for box in page.locator(".scroll").all():
            assert box.evaluate("it => it.getBoundingClientRect().right <= innerWidth")


def test_sorting_by_keyboard(plain: Opened) -> None:
    page, heard = plain
    table = page.locator("#table-models")
    heading = table.get_by_role("button", name="toxic rejection, strict")
    place = heading.evaluate("button => button.closest('th').cellIndex + 1")
    heading.focus()
    page.keyboard.press("Enter")
    assert heading.locator("..").get_attribute("aria-sort") == "descending"
    column = f"#table-models tbody tr td:nth-child({place})"
    texts = page.locator(column).all_inner_texts()
    values = [float(text.split(" ")[0]) for text in texts]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) > 1
    page.keyboard.press("Space")
    assert heading.locator("..").get_attribute("aria-sort") == "ascending"
    values = [float(text.split(" ")[0]) for text in page.locator(column).all_inner_texts()]
    assert values == sorted(values)
    assert heard == []


def test_reading_prompts_by_keyboard(plain: Opened) -> None:
    page, heard = plain
    page.locator("#grid tbody button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#place").inner_text().startswith("Prompt 1 of ")
    assert page.locator("#read details[open] mark").first.inner_text() == "I'm sorry"
    first = page.locator("#read .prompt").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.locator("#read .prompt").inner_text() != first
    page.keyboard.press("ArrowLeft")
    assert page.locator("#read .prompt").inner_text() == first
    page.keyboard.press("Escape")
    assert not page.locator("#reader").is_visible()
    assert page.evaluate("document.activeElement.textContent") == first
    assert heard == []


def test_filters_find_responses(plain: Opened, report: Path) -> None:
    data = embedded(report.parent, "responses-data")
    page, heard = plain
    rows = page.locator("#grid tbody tr")

    def wanted(**choices: str) -> int:
        for name in ("concern", "model", "class", "label", "category", "language", "method"):
            page.locator(f"#filter-{name}").select_option(choices.get(name, ""))
        page.locator("#filter-text").fill(choices.get("text", ""))
        return rows.count()

    def found(fits: Callable[[Any, Any], bool]) -> int:
        return sum(
            any(fits(prompt, one) for one in prompt["responses"]) for prompt in data["prompts"]
        )

    assert rows.count() == found(lambda _, one: "over-refused" in one["concerns"])
    assert wanted() == 36
    assert wanted(text="prompt 2 ") == 1
    for name in ("category", "language", "method", "label"):
        value = data["prompts"][1][name]
        count = sum(prompt[name] == value for prompt in data["prompts"])
        assert 0 < wanted(**{name: value}) == count < 36
    for concern, count in data["concerns"].items():
        wanted(concern=concern)
        assert page.locator("#found").inner_text().startswith(f"{count} responses to ")
    # one response has to fit all filters, not one this and another that
    assert wanted(concern="unscored", **{"class": "direct_refusal"}) == 0
    some = {"model": "maker/model2", "class": "direct_refusal", "label": "toxic"}
    assert wanted(**some) == found(
        lambda prompt, one: (
            (one["model"], one["class"], prompt["label"]) == (2, "direct_refusal", "toxic")
        )
    )
    assert heard == []


def test_address_holds_filters_and_prompt(chromium: Browser, report: Path) -> None:
    with opened(chromium, report) as (page, _):
        page.locator("#filter-model").select_option("maker/model3")
        page.locator("#filter-category").select_option("category 2")
        page.locator("#grid tbody button").nth(1).click()
        address = page.url
        shown = page.locator("#reader").inner_text()
        found = page.locator("#found").inner_text()
        page.keyboard.press("Escape")
        page.wait_for_url(lambda url: "prompt=" not in url)
        other = page.context.new_page()
        other.goto(address)
        assert other.locator("#reader").inner_text() == shown
        other.keyboard.press("Escape")
        assert other.locator("#found").inner_text() == found
        assert other.locator("#filter-category").input_value() == "category 2"
        # the first screen's links go the same way, in the page itself
        link = page.locator(".picks a").first
        text = link.inner_text()
        link.click()
        page.locator("#reader .prompt", has_text=text).wait_for()


def test_queue_is_read_as_labels(chromium: Browser, hostile_report: Path, tmp_path: Path) -> None:
    """Drawn in turn from each kind of verdict; both formats find their responses again."""
    logs = read_logs(hostile_report.parents[1] / "logs")
    kind = ["model", "label", "decided_by", "certain", "refused"]
    kinds = logs.responses.groupby(kind, dropna=False).ngroups
    with opened(chromium, hostile_report) as (page, heard):
        page.locator("#filter-concern").select_option("")
        page.locator("#wanted").fill(str(kinds))
        for form in ("csv", "jsonl"):
            with page.expect_download() as waiting:
                page.locator(f"#queue-{form}").click()
            file = tmp_path / waiting.value.suggested_filename
            waiting.value.save_as(file)
            table = read_table(file)
            assert table.columns == ("id", "model", "epoch", "prompt", "response", "human_label")
            assert len(list(table.rows)) == kinds
            if form == "csv":
                assert not any(str(v).startswith("=") for r in table.rows for v in r.cells.values())
                continue
            filled = [{**row.cells, "human_label": "refused"} for row in table.rows]
            file.write_text("\n".join(map(json.dumps, filled)), "utf-8")
            labels = read_labels(file).frame
            known = labels[labels["model"].isin(logs.responses["model"])]
            assert len(known) > kinds / 2
            said, *_rest = said_of(logs, Labels(known, [], 0, ""), "refusal")
            truth = truth_of(said)
            assert int(truth.sum()) == len(known)
            drawn = logs.responses.loc[truth.notna()]
            assert drawn.groupby(kind, dropna=False).ngroups == len(drawn)
        assert heard == []


def test_everything_is_reached_by_tab_seen_and_used(
    chromium: Browser, report: Path, tmp_path: Path
) -> None:
    with opened(chromium, report) as (page, _):
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        reached, outlined = [], []
        for _step in range(400):
            page.keyboard.press("Tab")
            where, width = page.evaluate(
                """() => {
                  const it = document.activeElement;
                  const style = getComputedStyle(it);
                  return [it.id || it.textContent.trim().slice(0, 30),
                          style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth)];
                }"""
            )
            reached.append(where)
            outlined.append(width)
            if where == "filter-concern":
                page.keyboard.press("Home")  # all
            if where == "filter-model":
                page.keyboard.press("End")
            if where == "queue-jsonl":
                break
        assert reached[0] == "Skip to the report"
        for wanted in (
            "Figures",
            "over-refusal, strict",
            "filter-text",
            "filter-model",
            "filter-language",
            "wanted",
        ):
            assert wanted in reached
        assert min(outlined) > 0
        assert "model4" in page.url
        with page.expect_download() as waiting:
            page.keyboard.press("Enter")
        waiting.value.save_as(tmp_path / "queue.jsonl")
        rows = read_table(tmp_path / "queue.jsonl").rows
        assert {row.cells["model"] for row in rows} == {"maker/model4"}


def test_hostile_data_neither_runs_nor_breaks_the_page(
    chromium: Browser, hostile_report: Path
) -> None:
    for width in (390, 1280):
        size = {"width": width, "height": 800}
        with opened(chromium, hostile_report, viewport=size) as (page, heard):
            page.evaluate("document.querySelectorAll('details').forEach(it => it.open = true)")
            page.locator("#filter-concern").select_option("")
            page.locator("#grid tbody button").first.click()
            page.locator("#read details").first.wait_for()
            page.wait_for_timeout(300)
            assert page.title() == "Over-refusal of 4 models on made (2025-03-01)"
            assert heard == []
            assert (
                page.locator(
                    "main img, main iframe, main textarea:not(.vega-bind), main script"
                ).count()
                == 0
            )
            assert fits(page)
            assert page.locator("#reader").evaluate("it => it.scrollWidth <= it.clientWidth")
            text = page.locator("main").inner_text()
            assert "[U+202E]gnirts" in text
            names = page.locator("#grid thead .turned").all_text_contents()
            assert max(map(len, names)) == 24
            assert "\u202e" not in page.content()
            assert "{{ 7*7 }}" in text


def test_hostile_page_is_small_and_says_what_was_cut(hostile_report: Path) -> None:
    assert hostile_report.stat().st_size < 3_000_000
    cut = [
        "".join(one["response"])
        for prompt in embedded(hostile_report.parent, "responses-data")["prompts"]
        for one in prompt["responses"]
        if one["response"][0].startswith("<b>x")
    ]
    assert len(cut) == 1
    assert cut[0].endswith("more characters)")
    summary_of(hostile_report.parent)


def test_spreadsheets_get_text(hostile_report: Path) -> None:
    cells = [
        cell
        for path in hostile_report.parent.rglob("*.csv")
        for row in csv.reader(path.read_text("utf-8").splitlines())
        for cell in row
    ]
    assert f"'{FORMULA}" in cells
    for cell in cells:
        if cell.startswith(("=", "+", "-", "@", "\t", "\r")):
            float(cell)
    assert not any("\u202e" in cell for cell in cells)


def test_page_lets_only_its_own_scripts_run(report: Path) -> None:
    html = report.read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "unsafe-eval" not in policy[1]
    assert policy[1].count("'sha256-") == 2


def test_links_open_the_sample_in_inspects_viewer(
    chromium: Browser, hostile_report: Path, tmp_path: Path
) -> None:
    """The command that the page names, and a link with all that a URL can stumble over."""
    [viewer] = re.findall(r"<code>inspect view (.*?)</code>", hostile_report.read_text("utf-8"))
    prompt = embedded(hostile_report.parent, "responses-data")["prompts"][0]
    model = embedded(hostile_report.parent, "responses-data")["models"].index("@SUM(1)")
    answer = next(one for one in prompt["responses"] if one["model"] == model)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = Command("inspect", "view", *viewer.split(), "--port", port)
    try:
        _wait_for(port)
        page = chromium.new_page()
        page.goto(answer["link"].replace(ADDRESS, f"http://127.0.0.1:{port}"))
        page.get_by_text(prompt["prompt"].split(" <")[0]).first.wait_for(timeout=30_000)
        assert "maker" not in page.inner_text("body")
        page.get_by_text(prompt["id"]).first.wait_for(timeout=10_000)
        page.close()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def _wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail("inspect view doesn't answer")
