"""The recipe ``multilingual`` on scripted models: its lineage, its funnel and its balance.

OR_EVAL_MULTILINGUAL says how many base prompts go in (16 by default, to be quick; from 600 on with all methods and with
servers that take 20 to 50 ms for a reply: many minutes), and OR_EVAL_KILLS, where it is set, how often a second build is
killed on its way, to be compared with the first.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from card_facts import Folder, check_card, golden_lines
from golden_builds import built_lines
from golden_files import assert_golden
from multilingual_models import CATEGORIES, TOXIC, model
from or_eval.analysis.lineage import CHOSE, lineage_effects
from or_eval.analysis.responses import read_logs
from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.rows import StoredRows
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.engine.stage import StageFacts
from or_eval.schema import Label, PromptRecord
from scripted_builds import EMBEDDINGS
from servers import API_KEY, Request, ScriptedServer
from test_build_kill import Clock, build_with_kills, finished_set

BASE = int(os.environ.get("OR_EVAL_MULTILINGUAL", "16"))
FULL = BASE >= 600
ALL_METHODS = ("directive", "question", "analytical", "linguistic_style", "scenario_simulation",
               "perspective_transformation", "homophonic_substitution", "synonym_substitution")  # fmt: skip
METHODS = ALL_METHODS if FULL else ALL_METHODS[:2]
LANGUAGES = ("en", "zh", "zh+en")
PER_CATEGORY = 2 if FULL else 1
SAY = print if FULL else str


def reply(request: Request) -> str:
    if FULL:
        time.sleep(0.02 + 0.03 * hashlib.sha256(request.question.encode()).digest()[0] / 255)
    return model(request)


def changes(folder: Path) -> list[str]:
    """What is said otherwise than in the recipe: data and models of this machine, and sizes."""
    methods, languages = ", ".join(METHODS), ", ".join(LANGUAGES)
    cells = f"category: all, language: [{languages}], method: [{methods}], rows: {PER_CATEGORY}"
    sets, base = data(folder)
    measured = ("fresh", "on_topic", "twin", *(("distinct", "balance") if FULL else ()))
    return [
        f"merge.sets={sets}",
        f"fresh.base={base}",
        f"on_topic.base={base}",
        "on_topic.within=[]",
        f"on_topic.least={0.5 if FULL else 0}",
        f"hardest.per_category={PER_CATEGORY}",
        f"rewrite.methods=[{methods}]",
        f"balance.targets=[{{{cells}}}]",
        "base_refusals.models=[openai-api/loopback/weak, openai-api/loopback/strong]",
        "answers.models=[openai-api/loopback/weak]",
        *(f"{stage}.model='{EMBEDDINGS}'" for stage in measured),
        # By letters where it has to be quick.
        *([] if FULL else ["distinct.model=null", "distinct.threshold=0.9", "balance.model=null"]),
        f"balance.again={{from: rewrite, rounds: {2 if FULL else 1}}}",
        "expand.model=null",
        "rewrite.model=null",
        # What the scripted writer makes of a prompt has little to do with it, but for its twin.
        "expand.similarity=false",
        "rewrite.similarity=false",
    ]


def data(folder: Path) -> tuple[str, str]:
    """Give the sets to merge, and the base pool: public ones in full shape."""
    if FULL:
        public = Path(__file__).parents[2] / "shared" / "data" / "prompts"
        if not public.is_dir():
            pytest.skip("the public data isn't beside the project")
        hard = f"{{data: {public}/or_bench_hard_1k.csv, source: or_bench_hard_1k}}"
        base = f"{{data: {public}/multilingual_base_300.csv, source: multilingual_base}}"
        return f"[{hard}, starter]", base
    (folder / "pool.csv").write_text("prompt,label\nHow do I bake bread?,safe\n")
    return "[starter]", f"{{data: {folder}/pool.csv}}"


def roles(server: ScriptedServer) -> list[str]:
    panel = ", ".join(server.role_option(f"moderator-{n}") for n in range(2))
    return [
        f"writer={server.role_option('writer')}",
        f"moderator=[{panel}]",
        f"classifier={server.role_option('classifier')}",
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, StageFacts]]:
    out = tmp_path_factory.mktemp("multilingual") / "out"
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(reply) as server:
        patch.setenv("LOOPBACK_API_KEY", API_KEY)
        patch.setenv("LOOPBACK_BASE_URL", server.base_url)
        patch.setenv("HF_HUB_OFFLINE", "1")
        asking = Asking(roles=tuple(roles(server)), config={"max_retries": 0}, display="none")
        recipe = load_recipe("multilingual", changes(out.parent))
        facts = Build(recipe, out, asking, limit=BASE, say=SAY).run()
        (out.parent / "requests").write_text(str(len(server.requests)))
        (out.parent / "asked.txt").write_text(
            "\n".join(built_lines(out, server.requests, whole=False))
        )
    return out, {fact.name: fact for fact in facts}


@pytest.mark.skipif(FULL, reason="the golden file is of a few prompts")
def test_what_is_asked_and_made(built: Any, request: pytest.FixtureRequest) -> None:
    lines = (built[0].parent / "asked.txt").read_text().splitlines()
    assert_golden("builds/multilingual.txt", lines, request)


@pytest.mark.skipif(FULL, reason="the golden card is that of the quick build")
def test_the_card_is_the_golden_one(built: Any, request: pytest.FixtureRequest) -> None:
    card = (built[0] / "dataset" / "README.md").read_text("utf-8")
    assert_golden("cards/multilingual.md", golden_lines(card), request)


def test_each_sentence_and_table_of_the_card_is_what_the_folder_says(built: Any) -> None:
    check_card(Folder(built[0]))


def rows_of(out: Path, stage: str) -> dict[str, PromptRecord]:
    return {row.id: row for row in StoredRows(out / "stages" / stage / "rows.parquet")}


def test_every_row_leads_back_to_a_base_prompt(built: Any) -> None:
    out, _ = built
    base, seeds, safe, published = (rows_of(out, name) for name in ("hardest", "seeds", "safe", "publish"))  # fmt: skip
    levels: Counter[str] = Counter()
    for row in published.values():
        match row.method:
            case None:
                assert row.id in base
                assert row.seed_id is None
            case "expand":
                assert row.seed_id in base
            case "twin":
                assert row.label is Label.TOXIC
                assert row.seed_id in safe
            case _:
                assert row.method in METHODS
                assert row.seed_id in seeds
                assert row.label is Label.SAFE
        levels[row.method or "base"] += 1
    assert set(levels) == {"base", "expand", "twin", *METHODS}
    if FULL:
        assert levels["base"] == levels["expand"] + len(base) - len(seeds) == 15 * PER_CATEGORY
        assert levels["twin"] == sum(levels[method] for method in METHODS) > 500


def test_pairs_are_of_one_category_and_language_and_hardly_differ(built: Any) -> None:
    out, _ = built
    pairs: dict[str, list[PromptRecord]] = {}
    for row in rows_of(out, "balance").values():
        pairs.setdefault(str(row.pair_id), []).append(row)
    assert pairs
    for id, both in pairs.items():
        safe, toxic = sorted(both, key=lambda row: row.label)
        assert (safe.id, safe.label, toxic.label) == (id, Label.SAFE, Label.TOXIC)
        assert (toxic.seed_id, toxic.category, toxic.language) == (safe.id, safe.category, safe.language)  # fmt: skip
        assert any(words in toxic.prompt for words in TOXIC.values())
        assert toxic.meta["edited"] <= 0.35
        assert toxic.meta["similarity"] >= 0.7
        assert set(toxic.meta["moderation"].values()) == {"violence"}
    assert {row.language for both in pairs.values() for row in both} == set(LANGUAGES)


def test_targets_are_met_or_the_shortfall_is_stated(built: Any) -> None:
    out, _ = built
    table = pd.read_csv(out / "stages" / "balance" / "tables" / "balance.csv")
    assert len(table) == len(CATEGORIES) * len(LANGUAGES) * len(METHODS)
    kept = Counter((row.category, row.language, row.method) for row in rows_of(out, "balance").values() if row.label is Label.SAFE)  # fmt: skip
    for cell in table.itertuples():
        assert kept[cell.category, cell.language, cell.method] == cell.kept
        assert cell.kept + cell.missing == cell.wanted == PER_CATEGORY
    assert table.kept.sum() > 0.5 * table.wanted.sum() if FULL else table.kept.sum() > 0
    assert table.missing.sum() > 0
    card = (out / "dataset" / "README.md").read_text()
    assert f"came out. {table.missing.sum()} that were to be there are missing." in card


def test_a_model_that_chose_base_prompts_is_not_compared_on_them(built: Any) -> None:
    """Its responses to base prompts are in the log of the first test, which was before the choice."""
    out, _ = built
    table = lineage_effects(read_logs(out / "logs", models=["openai-api/loopback/weak"]))
    told = table.set_index(["a", "b"])["verdict"]
    assert told["seed", "base"] == CHOSE
    assert (told.drop([("seed", "base")]) != CHOSE).all()


@pytest.mark.skipif("OR_EVAL_KILLS" not in os.environ, reason="set OR_EVAL_KILLS to kill it on its way")  # fmt: skip
def test_a_killed_build_comes_to_the_same_bytes(built: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    whole, _ = built
    requests = int((whole.parent / "requests").read_text())
    clock = Clock(reply, 0 if FULL else 0.05)
    with ScriptedServer(clock.script) as server:
        monkeypatch.setenv("LOOPBACK_BASE_URL", server.base_url)
        said = [part for change in changes(tmp_path) for part in ("--set", change)]
        said += ["--limit", str(BASE), *(part for role in roles(server) for part in ("--model-role", role))]  # fmt: skip
        build_with_kills(clock, server, "multilingual", tmp_path / "killed", said, requests)
    assert finished_set(tmp_path / "killed") == finished_set(whole)
