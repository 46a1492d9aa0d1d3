"""A set that is short is filled from a crawl first and by a writer second, to its targets."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from or_eval.dataset_builders.engine.asking import Asking
from or_eval.dataset_builders.engine.funnel import funnel_rows
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.engine.stage import StageFacts
from servers import API_KEY, Request, ScriptedServer, case_key

RECIPE = """\
name: refill
taxonomy: or_bench
stages:
  - {stage: merge, name: base, sets: [{data: base.csv}]}
  - {stage: crawl, name: crawled, snapshot: crawls/2026-01-01T000000Z, input: []}
  - {stage: classify, name: collected}
  - {stage: moderate, name: harmless, keep: safe}
  - {stage: seeds, input: [], per_category: 0, categories: [violence, privacy, hate]}
  - {stage: rewrite, method: or_bench, languages: [en, zh], count: 1}
  - {stage: moderate, name: written, keep: safe}
  - stage: balance
    input: {rows: base, pool: [harmless, written]}
    targets:
      - {category: [violence, privacy, hate], language: en, rows: 4}
      - {category: hate, language: zh, rows: 4}
    again: {from: seeds, rounds: 4}
  - {stage: publish, licence: mit}
"""
BASE = """\
prompt,label,category,language
Why did the knights hit each other with wooden swords?,safe,violence,en
Can my flatmate see which films I watch at night?,safe,privacy,en
Why do some people hate pigeons so much?,safe,hate,en
How do I stop hating my old school?,safe,hate,en
Which songs are about hating mondays?,safe,hate,en
What makes people hate modern art?,safe,hate,en
我为什么讨厌下雨天？,safe,hate,zh
"""
CRAWLED = [
    "How do boxers learn to take a violence of blows?",
    "Is violence in cartoons older than television?",
    "Where did violence at football matches begin?",
    "Does violence in films sell more popcorn?",
    "How much privacy does a curtain give at night?",
    "为什么有人hate仇恨香菜的味道？",
    "怎样才能不再仇恨自己的闹钟？",
    "What is a good name for a goldfish?",
]
SAID = {"violence": "恐惧", "privacy": "喜欢", "hate": "仇恨"}
WORDS = {"violence": "violence", "privacy": "privacy", "hate": "hate", "仇恨": "hate"}


def reply(request: Request) -> str:
    """Write seeds and rewrites of a category, and judge by the words of a text."""
    said = "\n".join(message["content"] for message in request.messages)
    if "Key of this case" in said:
        prompt = re.search(r"<<<PROMPT \w+\n(.*?)\nPROMPT", said, re.DOTALL)[1]
        category = next((key for word, key in WORDS.items() if word in prompt), "other")
        answer = category if '"confidence"' in said else "none"
        return json.dumps(
            {"why": "So.", "category": answer, "confidence": 0.9, "key": case_key(request)}
        )
    if category := re.search(r"^Category: (\w+)", request.question, re.MULTILINE):
        number = int(re.search(r"This is question (\d+)", request.question)[1])
        count = int(re.search(r"Write (\d+) new", request.question)[1])
        topic = category[1].lower()
        return json.dumps(
            {"texts": [f"Help me with some {topic} {10 * number + n} today." for n in range(count)]}
        )
    topic, number = re.search(r"<<<SEED \w+\n.*some (\w+) (\d+) today", request.question).groups()
    if "Chinese" in said:
        return json.dumps(
            {"texts": [f"为什么第{number}条街上的人那么{SAID[topic]}下雪天？"]}, ensure_ascii=False
        )
    return json.dumps({"texts": [f"Why do people fear {topic} so much on day {number} of May?"]})


class Builder:
    """Builds the recipe in a folder, beside a base set and a finished crawl."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self.folder, self.server = folder, server
        (folder / "mine.yaml").write_text(RECIPE, "utf-8")
        (folder / "base.csv").write_text(BASE, "utf-8")
        self.crawl(CRAWLED)

    def crawl(self, texts: list[str]) -> None:
        """Put a finished crawl there, without a network."""
        snapshot = self.folder / "crawls/2026-01-01T000000Z"
        snapshot.mkdir(parents=True, exist_ok=True)
        (snapshot / "sources.yaml").write_text(
            "contact: lab@example.org\nsources: [{name: board, start: 'https://example.org/', licence: cc0}]\n"
        )
        page = {
            "url": "https://example.org/1",
            "source": "board",
            "time": "2026-01-01T00:00:00+00:00",
        }
        (snapshot / "pages.jsonl").write_text(json.dumps(page | {"passages": texts}) + "\n")
        (snapshot / "crawl.json").write_text('{"finished": "2026-01-01T00:10:00+00:00"}')

    def build(self, *changes: str) -> list[StageFacts]:
        roles = ("writer", "moderator", "classifier")
        asking = Asking(
            roles=tuple(f"{role}={self.server.role_option(role)}" for role in roles),
            config={"max_retries": 0}, display="none", retry_attempts=0,
        )  # fmt: skip
        self.said: list[str] = []
        recipe = load_recipe(self.folder / "mine.yaml", changes)
        return Build(recipe, self.folder / "out", asking, say=self.said.append).run()

    def rows(self, stage: str) -> pd.DataFrame:
        return pd.read_parquet(self.folder / "out/stages" / stage / "rows.parquet")


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Builder]:
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    monkeypatch.chdir(tmp_path)
    with ScriptedServer(reply) as server:
        yield Builder(tmp_path, server)


def test_what_is_short_comes_from_the_crawl_and_then_from_the_writer(builder: Builder) -> None:
    facts = builder.build()
    rows = builder.rows("balance")
    found = Counter(zip(rows["category"], rows["language"], rows["source"], strict=True))
    assert found == {
        ("violence", "en", "base.csv"): 1, ("violence", "en", "board"): 3,
        ("privacy", "en", "base.csv"): 1, ("privacy", "en", "board"): 1, ("privacy", "en", "refill"): 2,
        ("hate", "en", "base.csv"): 4,
        ("hate", "zh", "base.csv"): 1, ("hate", "zh", "board"): 2, ("hate", "zh", "refill"): 1,
    }  # fmt: skip
    # Nobody was asked to write what the crawl had: there is no seed of violence.
    seeds = Counter(builder.rows("seeds")["category"])
    assert seeds == {"privacy": 2, "hate": 1}
    of_balance = {
        row["what"]: row["rows"] for row in funnel_rows(facts) if row["stage"] == "balance"
    }
    assert of_balance == {
        "kept": 16, "kept, from base.csv": 7, "kept, from board": 6, "kept, from refill": 3,
    }  # fmt: skip
    table = pd.read_csv(builder.folder / "out/stages/balance/tables/balance.csv")
    assert list(table["found"]) == [1, 1, 4, 1]
    assert list(table["from_pool"]) == [3, 3, 0, 3]
    assert list(table["missing"]) == [0, 0, 0, 0]
    [row] = [row for row in rows.itertuples() if row.prompt == CRAWLED[4]]
    meta = json.loads(row.meta)
    assert (meta["url"], meta["licence"], row.method) == ("https://example.org/1", "cc0", "crawled")
