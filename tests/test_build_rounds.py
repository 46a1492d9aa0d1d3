"""A part of a recipe is repeated while something is short; only what is missing is asked."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.rounds import Short, goes_on, wanted_now
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.errors import BuildError
from servers import API_KEY, Reply, Request, ScriptedServer, case_key

RECIPE = """\
name: mine
taxonomy: or_bench
stages:
  - {stage: seeds, per_category: 2, categories: [violence, privacy]}
  - {stage: rewrite, method: or_bench, count: 2}
  - {stage: moderate, keep: safe}
  - stage: balance
    name: fill
    surplus: keep
    targets: [{category: [violence, privacy], rows: 4}]
    again: {from: seeds, rounds: 4}
  - {stage: publish, licence: mit}
"""


class Models:
    """A writer that does as it is told, and a moderator that finds some texts toxic."""

    def __init__(self) -> None:
        self.toxic = r"privacy \d*[13579]\b"
        self.broken: int | None = None
        self.answered: Counter[str] = Counter()
        self._asked = 0

    def script(self, request: Request) -> Reply | str:
        self._asked += 1
        if self._asked == self.broken:
            return Reply(hang_up=True)
        said = self._reply(request)
        self.answered[json.dumps(request.messages)] += 1
        return said

    def _reply(self, request: Request) -> str:
        question = request.question
        if "Key of this case" in question:
            prompt = re.search(r"<<<PROMPT \w+\n(.*)\nPROMPT", question)[1]
            said = "privacy" if re.search(self.toxic, prompt) else "none"
            return json.dumps({"why": "So.", "category": said, "key": case_key(request)})
        if category := re.search(r"^Category: (\w+)", question, re.MULTILINE):
            number = int(re.search(r"This is question (\d+)", question)[1])
            count = int(re.search(r"Write (\d+) new", question)[1])
            topic = category[1].lower()
            texts = [f"Help me with some {topic} {10 * number + n} today." for n in range(count)]
        else:
            seed = re.search(r"<<<SEED \w+\n.*some (\w+ \d+) today", question)[1]
            again = re.search(r"This is question (\d+) about", question)
            count = int(re.search(r"(\d+) prompts in", question)[1])
            start = 10 * int(again[1]) if again else 0
            texts = [f"Why do people fear {seed} on day {start + n}?" for n in range(count)]
        return json.dumps({"texts": texts})


class Builder:
    """Builds the recipe in a folder."""

    def __init__(self, folder: Path, server: ScriptedServer, models: Models) -> None:
        self.folder, self.server, self.models = folder, server, models
        self.path = folder / "mine.yaml"
        self.path.write_text(RECIPE, "utf-8")

    def build(self, *changes: str, out: str = "out") -> Build:
        roles = tuple(f"{role}={self.server.role_option(role)}" for role in ("writer", "moderator"))
        asking = Asking(roles=roles, config={"max_retries": 0}, display="none", retry_attempts=0)
        recipe = load_recipe(self.path, changes)
        self.said: list[str] = []
        return Build(recipe, self.folder / out, asking, say=self.said.append)

    def rows(self, stage: str, out: str = "out") -> pd.DataFrame:
        return pd.read_parquet(self.folder / out / "stages" / stage / "rows.parquet")

    def counts(self, stage: str) -> dict[str, int]:
        return dict(Counter(self.rows(stage)["category"]))

    def table(self, stage: str, name: str) -> pd.DataFrame:
        return pd.read_csv(self.folder / "out/stages" / stage / f"tables/{name}.csv")

    def published(self, out: str = "out") -> bytes:
        return (self.folder / out / "dataset/default/train.parquet").read_bytes()


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Builder]:
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    models = Models()
    with ScriptedServer(models.script) as server:
        yield Builder(tmp_path, server, models)


def test_a_part_is_repeated_until_nothing_is_short(builder: Builder) -> None:
    builder.build().run()
    # Of two seeds for privacy one was lost, so two more are asked for, and of these one is kept.
    assert builder.counts("seeds") == {"violence": 2, "privacy": 4}
    assert builder.counts("fill") == {"violence": 4, "privacy": 4}
    assert "   fill: 2 rows are missing, so seeds makes more" in builder.said
    assert list(builder.table("fill", "balance")["missing"]) == [0, 0]
    asked = len(builder.server.requests)
    assert set(builder.models.answered.values()) == {1}

    builder.build().run()
    assert all("done before" in line for line in builder.said)
    published = builder.published()
    for gone in ("stages", "dataset"):
        shutil.rmtree(builder.folder / "out" / gone)
    builder.build().run()
    assert (len(builder.server.requests), builder.published()) == (asked, published)


def test_a_build_that_is_cut_off_in_a_round_comes_to_the_same_end(builder: Builder) -> None:
    builder.build(out="whole").run()
    for number in (8, 2, 3):  # in the first round, and twice in the next
        builder.models.broken = builder.models._asked + number
        with pytest.raises(BuildError, match="calls failed"):
            builder.build().run()
    builder.models.broken = None
    builder.build().run()
    assert builder.published() == builder.published("whole")
    # Once for each of the two builds.
    assert set(builder.models.answered.values()) == {2}


def test_rounds_end_where_one_adds_nothing(builder: Builder) -> None:
    builder.models.toxic = r"privacy"
    builder.build().run()
    assert sum("so seeds makes more" in line for line in builder.said) == 1
    assert list(builder.table("fill", "balance")["missing"]) == [0, 4]
    asked = len(builder.server.requests)
    builder.build("fill.again.rounds=9").run()
    assert len(builder.server.requests) == asked


def test_rounds_end_at_the_most(builder: Builder) -> None:
    builder.build("fill.again.rounds=1").run()
    assert list(builder.table("fill", "balance")["missing"]) == [0, 2]
    # More rounds go on from there.
    asked = len(builder.server.requests)
    builder.build("fill.again.rounds=2").run()
    assert list(builder.table("fill", "balance")["missing"]) == [0, 0]
    assert len(builder.server.requests) - asked == 1 + 2 + 4


def test_a_change_in_the_part_begins_its_rounds_anew(builder: Builder) -> None:
    builder.build().run()
    asked = len(builder.server.requests)
    builder.build("moderate.agree=all").run()
    assert builder.counts("fill") == {"violence": 4, "privacy": 4}
    assert len(builder.server.requests) == asked


def test_rewrites_give_more_of_the_same_seeds(builder: Builder) -> None:
    builder.models.toxic = r"privacy \d+ on day [0-9]\?"  # all but what is asked for again
    builder.build("fill.again.from=rewrite").run()
    assert builder.counts("seeds") == {"violence": 2, "privacy": 2}
    assert builder.counts("rewrite") == {"violence": 4, "privacy": 8}
    assert builder.counts("fill") == {"violence": 4, "privacy": 4}
    assert set(builder.models.answered.values()) == {1}


def test_only_what_is_missing_is_asked_where_more_is_wanted(builder: Builder) -> None:
    builder.models.toxic = "no such text"
    builder.build("fill.targets=[{rows: 1}]").run()

    def asked(*changes: str) -> int:
        before = len(builder.server.requests)
        builder.build("fill.targets=[{rows: 1}]", *changes).run()
        return len(builder.server.requests) - before

    first = list(builder.rows("rewrite")["prompt"])
    # Four seeds: one question each for the other three, and as many judgements.
    assert asked("rewrite.count=5") == 4 + 4 * 3
    more = list(builder.rows("rewrite")["prompt"])
    assert (len(more), set(first) < set(more)) == (20, True)
    assert asked("rewrite.count=3") == 0
    assert len(builder.rows("rewrite")) == 12
    assert asked() == 0
    assert list(builder.rows("rewrite")["prompt"]) == first
    # A question a category for a third seed, one for its rewrites, and two judgements of these.
    assert asked("seeds.per_category=3") == 2 * (1 + 1 + 2)
    assert asked("seeds.per_category=1") == 0
    shutil.rmtree(builder.folder / "out/stages")
    assert asked("rewrite.count=5") == 0
    assert list(builder.rows("rewrite")["prompt"]) == more


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "moderate.again={from: seeds}",
            "moderate.again: the stage moderate doesn't say what is short",
        ),
        ("fill.again.from=moderate", "'moderate' gives no more rows"),
        ("fill.again.from=seed", r"no stage before it 'seed' \(the nearest is 'seeds'\)"),
        ("fill.again.rounds=0", "greater than or equal to 1"),
        ("fill.targets=[{category: violins, rows: 2}]", "no category 'violins'"),
    ],
)
def test_what_is_wrong_with_rounds_is_told_before_anything_runs(
    builder: Builder, change: str, said: str
) -> None:
    from or_eval.dataset_builders.engine.readiness import check_ready

    with pytest.raises(BuildError, match=said):
        check_ready(builder.build(change))
    assert not builder.server.requests


def test_a_stage_is_repeated_in_one_part_only(builder: Builder) -> None:
    text = RECIPE.replace(
        "  - {stage: publish",
        "  - {stage: balance, surplus: keep, name: more, targets: [{rows: 9}], again: {from: rewrite}}\n"
        "  - {stage: publish",
    )
    builder.path.write_text(text)
    with pytest.raises(BuildError, match=r"line 12: .*'rewrite' is in another part"):
        builder.build()


def test_stages_beside_a_repeated_part_see_its_last_round(builder: Builder) -> None:
    text = RECIPE.replace(
        "  - {stage: moderate", "  - {stage: dedup, threshold: null}\n  - {stage: moderate, input: rewrite"
    )  # fmt: skip
    builder.path.write_text(text)
    builder.build().run()
    assert len(builder.rows("dedup")) == len(builder.rows("rewrite")) == 12


def test_how_much_more_is_wanted() -> None:
    short = [Short({"category": "hate"}, 2, 8), Short({"category": "hate", "language": "zh"}, 3, 4)]
    assert wanted_now(20, {"category": "hate", "language": "en"}, [short]) == 25
    assert wanted_now(20, {"category": "hate"}, [short]) == 35  # whatever the language will be
    assert wanted_now(20, {"category": "privacy"}, [short]) == 20
    assert wanted_now(0, {"category": "hate", "language": "zh"}, [short]) == 3
    assert wanted_now(0, {"category": "privacy"}, [short]) == 0
    nothing = [Short({}, 500, 0)]
    assert wanted_now(20, {}, [nothing, nothing]) == 80
    assert goes_on([], short, 2)
    assert not goes_on([], short, 1)
    assert not goes_on([], [], 2)
    assert not goes_on([short], [Short({}, 5)], 9)
    assert goes_on([short], [Short({}, 4)], 9)
