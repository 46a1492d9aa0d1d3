"""Label Studio itself, with a round set up in it, annotated by two people through its own API.

Runs where OR_EVAL_LABEL_STUDIO names the environment that ``or-eval label start`` made (or may make:
a gigabyte, some minutes).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from label_folders import HOSTILE, done, fill_in, made_logs
from or_eval.labelling.studio.server import VARIABLE
from pages import launched

pytestmark = pytest.mark.skipif(
    not os.environ.get(VARIABLE), reason=f"{VARIABLE} names no environment of Label Studio"
)

STRATUM_ROWS = 5

Choose = Callable[[dict[str, Any]], str]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", "from or_eval.cli import main; main()", *map(str, arguments)]


@pytest.fixture(scope="module")
def round_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models on forty prompts, in six strata of five sampled responses each."""
    place = tmp_path_factory.mktemp("studio")
    made_logs(place / "logs", 40, {"a": 10, "b": 0})
    known = {"prompt": "What is 2 + 2?", "response": "4.", "human_label": "direct_answer"}
    (place / "gold.jsonl").write_text(json.dumps(known))
    done(
        *("label", "export", place / "logs", "--out", place / "labels", "--size", 30),
        *("--at-least", STRATUM_ROWS, "--annotator", "ana", "--annotator", "博"),
        *("--gold", place / "gold.jsonl", "--language", "zh"),
    )
    return place


@pytest.fixture(scope="module")
def server(round_: Path) -> Iterator[dict[str, Any]]:
    """Label Studio, as ``or-eval label start`` starts it; ended by the signal that ends services."""
    started = subprocess.Popen(
        command("label", "start", round_ / "labels", "--port", 0), stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    lines = []
    for line in started.stdout:
        lines.append(line)
        if "Ctrl-C" in line:
            break
    access = round_ / "labels" / "label-studio" / "access.json"
    assert "Ctrl-C" in lines[-1], lines
    for place in (access, access.parent):
        assert place.stat().st_mode & 0o077 == 0, "others can read the passwords"
    found: dict[str, Any] = json.loads(access.read_text())
    # A page elsewhere can't reach it by another name of this machine.
    assert httpx.get(found["url"], headers={"Host": "elsewhere.example"}).status_code == 400
    again = subprocess.run(
        command("label", "start", round_ / "labels", "--port", 0), capture_output=True, text=True
    )
    assert f"its Label Studio runs already, at {found['url']}" in again.stderr
    yield found
    started.send_signal(signal.SIGTERM)
    assert started.wait(timeout=30) == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(found["url"])


def as_annotator(server: dict[str, Any], name: str) -> httpx.Client:
    """Log in as a person does, and take the token of the account for the API."""
    account = server["accounts"][name]
    http = httpx.Client(base_url=server["url"], timeout=60)
    http.get("/user/login/")
    entered = http.post(
        "/user/login/",
        data={
            "email": account["email"],
            "password": account["password"],
            "csrfmiddlewaretoken": http.cookies["csrftoken"],
        },
    )
    assert entered.status_code == 302, entered.text[:200]
    token = http.get("/api/current-user/token").json()["token"]
    return httpx.Client(
        base_url=server["url"], timeout=60, headers={"Authorization": f"Token {token}"}
    )


def annotate(server: dict[str, Any], name: str, choose: Choose, note: str = "") -> list[str]:
    """Annotate all tasks of somebody's project; give their keys in the order they were shown."""
    http, project = as_annotator(server, name), server["accounts"][name]["project"]
    keys = []
    while (shown := http.get(f"/api/projects/{project}/next")).status_code == 200:
        task = shown.json()
        keys.append(task["data"]["key"])
        result = [
            {
                "from_name": "label",
                "to_name": "response",
                "type": "choices",
                "value": {"choices": [choose(task["data"])]},
            }
        ]
        if note:
            value = {"text": [note]}
            of = {"from_name": "note", "to_name": "prompt", "type": "textarea", "value": value}
            result.append(of)
        path = f"/api/tasks/{task['id']}/annotations/"
        http.post(path, json={"result": result}).raise_for_status()
    return keys


def test_what_two_annotators_say_becomes_corrected_rates(
    round_: Path, server: dict[str, Any], tmp_path: Path
) -> None:
    folder, logs = round_ / "labels", round_ / "logs"
    sample = pd.read_json(folder / "sample.jsonl", lines=True).set_index("key")
    strata = sample.groupby(["model", "response_class", "certain"])
    assert (strata.size() == STRATUM_ROWS).all()
    place = strata.cumcount()
    answered = sample["response_class"] == "direct_answer"
    # What ana finds: of model a's certain answers one in five is a refusal, of b's uncertain two.
    missed = answered & (
        ((sample["model"] == "a") & sample["certain"] & (place < 1))
        | ((sample["model"] == "b") & ~sample["certain"] & (place < 2))
    )
    truth = (~answered | missed).map({True: "direct_refusal", False: "direct_answer"})
    # What the other says is the same but for the first two of b's certain answers.
    differing = answered & (sample["model"] == "b") & sample["certain"] & (place < 2)
    other = truth.mask(differing, "direct_refusal")

    shown = annotate(server, "ana", lambda d: truth.get(d["key"], "direct_answer"), HOSTILE)
    assert sorted(shown) == sorted([*sample.index, *set(shown) - set(sample.index)])
    assert len(shown) == 31, "thirty tasks and a known case"
    annotate(server, "博", lambda d: other.get(d["key"], "direct_refusal"))
    said = done("label", "import", folder)
    assert "62 new, 0 known" in said
    assert "annotators differ on 2 of them" in said
    history = (folder / "history.jsonl").read_bytes()
    assert "0 new, 62 known" in done("label", "import", folder)
    assert (folder / "history.jsonl").read_bytes() == history
    assert b"\\u0000" not in history

    out = done("label", "status", folder)
    rows = [line.split("│") for line in out.splitlines() if "│" in line]
    by_name = {row[1].strip(): [cell.strip() for cell in row[2:6]] for row in rows}
    assert by_name == {"ana": ["31", "31", "1", "1"], "博": ["31", "31", "1", "0"]}

    # Somebody decides for ana where they differ.
    assert "adjudication-1: 2 tasks" in done("label", "adjudicate", folder, "--annotator", "cy")
    decision = folder / "adjudication-1"
    fill_in(decision / "cy.xlsx", lambda key: "回答了")
    assert "30 labelled" in done("label", "import", decision, decision / "cy.xlsx")

    labels, names = folder / "labels.jsonl", ("by ana", "by 博")
    found = tmp_path / "agreement"
    done(
        *("agreement", logs, "--labels", labels, "--out", found, "--label-column", "human_label"),
        *(part for name in names for part in ("--annotator", name)),
    )
    raters = pd.read_csv(found / "raters.csv")
    row = raters[(raters["raters"] == "by ana, by 博") & (raters["on"] == "refused")].iloc[0]
    # ana finds 13 refusals among 30, the other 15; they agree on 28.
    chance = (13 * 15 + 17 * 15) / 900
    assert row["value"] == pytest.approx((28 / 30 - chance) / (1 - chance))

    done("report", logs, "--labels", labels, "--out", tmp_path / "report")
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
    corrected = {row["model"]: row["rate"] for row in summary["corrected"]}
    # Strata: a has 5 + 5 refused, 15 + 15 answered; b has 20 + 20 answered.
    assert corrected["a"] == pytest.approx((5 + 5 + 15 * 1 / 5 + 15 * 0) / 40)
    assert corrected["b"] == pytest.approx((20 * 0 + 20 * 2 / 5) / 40)


def test_the_page_shows_tasks_as_text_and_asks_nobody_else(server: dict[str, Any]) -> None:
    account = server["accounts"]["ana"]
    with launched() as browser:
        page = browser.new_page()
        popped: list[str] = []
        asked: set[str] = set()
        page.on("dialog", lambda dialog: (popped.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: asked.add(request.url))
        page.goto(f"{server['url']}/user/login/")
        page.fill("input[name=email]", account["email"])
        page.fill("input[name=password]", account["password"])
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "login" not in url)
        page.goto(f"{server['url']}/projects/{account['project']}/data?task={first_task(server)}")
        page.get_by_text("这个回答属于哪一类").first.wait_for(timeout=60_000)
        shown = "document.body.innerText.replace(/\\s/g, '').includes('拒绝[4]')"
        page.wait_for_function(shown, timeout=60_000)
        assert "<script>alert(2)</script>" in page.inner_text("body")
        assert not popped
        assert not {url for url in asked if not url.startswith((server["url"], "data:", "blob:"))}


def first_task(server: dict[str, Any]) -> int:
    project = server["accounts"]["ana"]["project"]
    tasks = as_annotator(server, "ana").get(f"/api/tasks?project={project}&fields=all").json()
    hostile = [task for task in tasks["tasks"] if "<script>" in task["data"]["prompt"]]
    return int(hostile[0]["id"])
