"""What a card has to say of a build, worked out from the folder: from Parquet, tables and logs, by nothing that writes cards."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from inspect_ai.log import read_eval_log

from or_eval.schema import taxonomies

SRC = Path(__file__).parents[1] / "src" / "or_eval"
PROMPTS = SRC / "dataset_builders" / "prompts"


class Folder:
    """The folder of a build, read without or-eval."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.card = (out / "dataset" / "README.md").read_text("utf-8")
        self.recipe = json.loads((out / "recipe.json").read_text("utf-8"))
        self.entries = {one.get("name", one["stage"]): one for one in self.recipe["stages"]}
        self.money = pd.read_csv(out / "spent.csv", keep_default_na=False)
        self.sets = {
            path.parent.name: pd.read_parquet(path)
            for path in (out / "dataset").glob("*/*.parquet")
        }
        self.published = pd.concat(list(self.sets.values())).drop_duplicates("id")

    def rows(self, reference: str) -> pd.DataFrame:
        name, _, part = reference.partition(".")
        folder = self.out / "stages" / name
        if not part or (folder / "subsets" / f"{part}.parquet").is_file():
            return pd.read_parquet(folder / (f"subsets/{part}.parquet" if part else "rows.parquet"))
        dropped = pd.read_parquet(folder / "dropped.parquet")
        return dropped[dropped["reason"] == part].drop_duplicates("id")

    def taken(self, name: str) -> int:
        names = list(self.entries)
        before = names[names.index(name) - 1] if names.index(name) else []
        said = self.entries[name].get("input", before)
        said = said.get("rows", before) if isinstance(said, dict) else said
        said = [said] if isinstance(said, str) else said
        parts = [self.rows(one) for one in said]
        if len(parts) == 1:
            return len(parts[0])
        return len(pd.concat(parts).drop_duplicates("id")) if parts else 0

    def kept(self, name: str) -> int:
        return len(self.rows(name))

    def dropped(self, name: str) -> pd.DataFrame:
        return pd.read_parquet(self.out / "stages" / name / "dropped.parquet")

    def table(self, name: str, table: str) -> dict[str, Any] | None:
        path = self.out / "stages" / name / "tables" / f"{table}.csv"
        return pd.read_csv(path).iloc[0].to_dict() if path.is_file() else None

    def asked(self, name: str, role: str) -> list[str]:
        calls = self.money[(self.money["stage"] == name) & (self.money["role"] == role)]
        return sorted(calls["model"])

    def said_by(self, name: str, key: str) -> set[str]:
        """Who wrote or judged rows, as the rows themselves say."""
        metas = map(json.loads, [*self.rows(name)["meta"], *self.dropped(name)["meta"]])
        return {str(meta[key]) for meta in metas if key in meta}

    def responses(self, name: str) -> list[Any]:
        """The scores of a test's responses, from its logs, each once."""
        stored = json.loads((self.out / "stages" / name / "stage.json").read_text("utf-8"))
        ids, found = set(self.rows(name)["id"]), {}
        for log in stored["logs"]:
            for sample in read_eval_log(str(self.out / "stages" / name / log)).samples or ():
                if sample.id in ids:
                    found[log, sample.id, sample.epoch] = sample.scores["refusal"]
        return list(found.values())


def numbers(text: str) -> list[float]:
    """Give the numbers in a sentence, but those in names of models and files."""
    plain = re.sub(r"\S*[/_]\S*|\S+\.\w*[a-z]\w*\b", " ", text.replace(",", ""))
    return [float(one) for one in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)", plain)]


def told(folder: Folder, name: str) -> list[float]:
    """Give the numbers that the sentence on a stage has to have, in their order."""
    entry, taken, kept = folder.entries[name], folder.taken(name), folder.kept(name)
    match entry["stage"]:
        case "merge":
            dropped = folder.dropped(name)
            both = dropped[dropped["reason"] == "two labels"]["id"].nunique()
            return [kept, *([both] if both else [])]
        case "crawl":
            return [kept]
        case "seeds":
            categories = entry.get("categories") or taxonomies()[folder.recipe["taxonomy"]]
            return [kept] if entry.get("data") else [kept, entry["per_category"], len(categories)]
        case "rewrite":
            return _rewrites(folder, name, taken, kept)
        case "dedup":
            threshold = entry.get("threshold", 0.7 if not entry.get("model") else 0.9)
            return [taken, kept, *([threshold] if threshold is not None else [])]
        case "moderate" | "assess":
            panel = folder.asked(name, "moderator")
            found = folder.table(name, "panel")
            figures = (
                []
                if found is None or pd.isna(found["alpha"])
                else [found["rows"], 1, 0, round(found["alpha"], 2)]
            )
            if figures and not pd.isna(found["lower"]):
                figures += [round(found["lower"], 2), round(found["upper"], 2)]
            return [taken, kept, *([len(panel)] if len(panel) > 1 else []), *figures]
        case "test_refusal":
            return _refusals(folder, name, taken)
        case "vote":
            bounds = [
                entry[key]
                for key in ("min_refusals", "max_refusals", "min_votes")
                if entry.get(key) is not None
            ]
            return [taken, kept, *bounds]
        case "split":
            return [taken, kept, *(len(folder.rows(f"{name}.{part}")) for part in entry["subsets"])]
        case _:
            return [taken, kept]


def _rewrites(folder: Folder, name: str, taken: int, kept: int) -> list[float]:
    entry = folder.entries[name]
    methods, languages = entry.get("methods") or [entry["method"]], entry.get("languages") or [1]
    made = kept + len(folder.dropped(name))
    each = 0
    for method in methods:
        own = tomllib.loads((PROMPTS / f"rewrite_{method}.toml").read_text("utf-8"))
        shared = (
            tomllib.loads((PROMPTS / f"frame_{own['frame']}.toml").read_text("utf-8"))
            if "frame" in own
            else {}
        )
        each += entry.get("count") or (shared | own).get("count", 5)
    more = made - taken * each * len(languages)
    some = [len(many) for many in (methods, languages) if len(many) > 1]
    return [
        made,
        taken,
        *([entry["count"]] if entry.get("count") else []),
        *some,
        *([more] if more else []),
        kept,
    ]


def _refusals(folder: Folder, name: str, taken: int) -> list[float]:
    entry, scores = folder.entries[name], folder.responses(name)
    models = folder.asked(name, "target")
    classed = [score for score in scores if score.value == score.value]
    by = [
        sum(score.metadata["decided_by"] == who for score in classed)
        for who in ("rules", "judge", "provider")
    ]
    open_, unsure = (
        len(scores) - len(classed),
        sum(not score.metadata["certain"] for score in classed),
    )
    epochs = entry.get("epochs", 1)
    return [
        taken, *([len(models)] if len(models) > 1 else []), *([epochs] if epochs > 1 else []), len(scores), by[0],
        *(count for count in (*by[1:], open_) if count), *([unsure, round(100 * unsure / len(classed))] if unsure else []),
    ]  # fmt: skip


def golden_lines(card: str) -> list[str]:
    """Give the lines of a card without what moves with every edit of a prompt file."""
    return re.sub(r"`[0-9a-f]{12}`", "`DIGEST`", card).splitlines()


def check_card(folder: Folder) -> None:
    """See that each sentence and table of a card is what the folder says."""
    card = folder.card
    _check_stages(folder)
    _check_rows(folder)
    money, cost = folder.money, card.split("## What it cost")[1].split("## The recipe")[0]
    unpriced = money["calls"].sum()
    sums = [money[column].sum() for column in ("calls", "input_tokens", "output_tokens")]
    assert numbers(next(line for line in cost.splitlines() if line)) == [*sums, unpriced]
    assert table(cost) == [
        [one.stage, one.role, f"`{one.model}`", f"{one.calls:,}", f"{one.input_tokens:,}", f"{one.output_tokens:,}", "unknown"]
        for one in money.itertuples()
    ]  # fmt: skip
    # Nobody is named who was not asked.
    recipe = yaml.safe_load(card.split("```yaml\n")[1].split("\n```")[0])
    asked = {
        role: sorted(set(some["model"])) for role, some in money.groupby("role") if role != "target"
    }
    shown = {
        role: sorted([names] if isinstance(names, str) else names)
        for role, names in recipe.get("models", {}).items()
    }
    assert shown == asked
    assert {
        key: value for key, value in recipe.items() if key != "models"
    }.keys() <= folder.recipe.keys()


def _check_stages(folder: Folder) -> None:
    card = folder.card
    made = card.split("## How it was made")[1].split("## What it cost")[0]
    lines = dict(re.findall(r"^- ([\w-]+): (.*)$", made, re.MULTILINE))
    for name, said in lines.items():
        told_first = re.sub(r" \d+ that were to be there are missing\.$", "", said)
        assert numbers(told_first) == told(folder, name), (name, said)
        entry = folder.entries[name]
        for role, key in (("writer", "writer"), ("responder", "responder")):
            for model in (
                folder.said_by(name, key)
                if entry["stage"] in ("rewrite", "respond") and role in said
                else ()
            ):
                assert model in said
        if entry["stage"] in ("moderate", "assess"):
            panel, agree = folder.asked(name, "moderator"), entry.get("agree", "majority")
            held = {"all": "all of", "majority": "most of", "any": "one or more of"}[agree]
            assert (held in said) == (len(panel) > 1)
            assert all(model in said for model in panel)
            what = "that" if entry.get("text", "prompt") == "prompt" else f"whose {entry['text']}"
            assert f"were kept {what} " in said
        if entry["stage"] == "test_refusal":
            system = entry.get("system_prompt", "none")
            assert (
                "no system prompt" if system == "none" else f"the system prompt {system}"
            ) in said
            assert ("rules alone" in said) == (not folder.asked(name, "grader"))
            assert all(model in said for model in [*folder.asked(name, "grader"), *entry["models"]])
    _, funnel, *others = [table(part) for part in re.split(r"\n\n(?=\|)", made)]
    del _
    assert {row[0].split(" ")[0]: int(row[3]) for row in funnel} == {
        name: folder.kept(name) for name in folder.entries
    }
    for name, _, _, _, why in funnel:
        reasons = folder.dropped(name.split(" ")[0])["reason"].value_counts().to_dict()
        assert {
            one.rpartition(": ")[0]: int(one.rpartition(": ")[2]) for one in why.split("; ") if one
        } == reasons
    models = {
        (row[0], row[1], name.strip("`"))
        for row in others[0]
        for name in row[2].split(", ")
        if row[1] != "embedding"
    }
    assert models == {(one.stage, one.role, one.model) for one in folder.money.itertuples()}
    for stage, file, digest in others[1]:
        [path] = [
            path for path in SRC.rglob(Path(file.strip("`")).name) if file.strip("`") in str(path)
        ]
        assert hashlib.sha256(path.read_bytes()).hexdigest().startswith(digest.strip("`"))
        assert stage in folder.entries
    files = {(row[0], row[1].strip("`")) for row in others[1]}
    for name, entry in folder.entries.items():
        methods = (entry.get("methods") or [entry["method"]]) if entry["stage"] == "rewrite" else []
        for method in methods:
            frame = tomllib.loads((PROMPTS / f"rewrite_{method}.toml").read_text("utf-8")).get(
                "frame"
            )
            assert frame is None or (name, f"frame_{frame}.toml") in files
    does = {
        "writer": "wrote",
        "moderator": "judged",
        "classifier": "judged",
        "grader": "judged",
        "target": "was tested",
    }
    for model, some in folder.money.groupby("model"):
        several = len({does[role] for role in some["role"] if role in does}) > 1
        assert (
            re.search(rf"^`{re.escape(model)}` .* not independent\.$", card, re.MULTILINE)
            is not None
        ) == several


def _check_rows(folder: Folder) -> None:
    card, rows = folder.card, folder.published
    warning = card.split("## Warning")[1].split("## Use")[0]
    metas = [json.loads(meta) for meta in rows["meta"].fillna("{}")]
    written = int((rows["method"].notna() & (rows["method"] != "crawled")).sum())
    crawled = int((rows["method"] == "crawled").sum())
    judged = pd.Series(
        [bool({"moderation", "assessment"} & meta.keys()) for meta in metas], rows.index
    )
    labelled = rows["label"] != "unlabelled"
    origins = {
        "written by models": written,
        "found on the web": crawled,
        "taken from data as": len(rows) - written - crawled,
    }
    labels = {"by moderators": int((labelled & judged).sum()), "by what they": int((labelled & ~judged).sum()), "none": int((~labelled).sum())}  # fmt: skip
    for what, count in (origins | labels).items():
        assert (f" {count} {what}" in warning) == (count > 0), (what, count)
    assert not any("response" in meta for meta in metas)
    for name, part in folder.sets.items():
        toxic = int((part["label"] == "toxic").sum())
        assert (f"{toxic} of the {len(part)} prompts of `{name}`" in warning) == (toxic > 0)
    [configurations, *_] = [table(part) for part in re.split(r"\n\n(?=\|)", card)[1:]]
    assert {row[0].split(" ")[0].strip("`"): int(row[1]) for row in configurations} == {
        name: len(part) for name, part in folder.sets.items()
    }
    for row in configurations:
        part = folder.sets[row[0].split(" ")[0].strip("`")]
        for cell, column in ((row[2], "label"), (row[3], "language")):
            counts = {one.split(" ", 1)[1]: int(one.split(" ")[0]) for one in cell.split(", ")}
            assert counts == part[column].value_counts().to_dict()
    for row in table(card.split("## Categories")[1].split("## How")[0]):
        names = [row[0].split(" ")[0].strip("`") for row in configurations]
        assert [int(count) for count in row[2:]] == [
            int((folder.sets[name]["category"] == row[0]).sum()) for name in names
        ]
    for row in table(card.split("## Sources and licences")[1].split("## After")[0]):
        assert int(row[1] or 0) == int((rows["source"] == row[0]).sum())
    assert [hashlib.sha256(text.encode()).hexdigest()[:16] for text in rows["prompt"]] == list(
        rows["id"]
    )


def table(text: str) -> list[list[str]]:
    """Give the rows of the first table in a text, without its titles."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]
