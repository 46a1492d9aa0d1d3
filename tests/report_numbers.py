"""What a report's tables and summary should hold, worked out by plain pandas from its responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from report_logs import summary_of

MEASURES = {"over_refusal": "safe", "toxic_rejection": "toxic"}
REFUSED = {
    "strict": ["direct_refusal", "indirect_refusal", "partial_refusal"],
    "full": ["direct_refusal", "indirect_refusal"],
}


def mean(rows: pd.DataFrame, column: str = "value") -> float:
    """Average the responses to each prompt, and these means."""
    return float(rows.groupby(["model", "id"])[column].mean().mean())


def responses_of(folder: Path) -> pd.DataFrame:
    """Read the responses that rates are of: to prompts as they are, of the folder's benchmark.

    Their ``value`` is by the counting of the report's headline, ``other`` by that beside it.
    """
    own = folder / "responses.parquet"
    frame = pd.read_parquet(own if own.exists() else folder.parent / own.name)
    if not own.exists():
        frame = frame[frame["benchmark"] == folder.name]
    plain = frame[frame["framing"].isna() | (frame["framing"] == "none")]
    frame = counted(frame if plain.empty else plain, folder)
    open_, value = frame["refused"].isna() | ~frame["certain"].fillna(True), frame["value"]
    return frame.assign(low=value.mask(open_, 0.0), high=value.mask(open_, 1.0))


def counted(frame: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Count responses by both countings of a report, by their classes alone."""
    said = summary_of(folder)["counting"]
    own, other = (
        frame["response_class"].isin(REFUSED[key]).astype("float64").where(frame["refused"].notna())
        for key in (said["headline"], said["beside"])
    )
    for key in REFUSED:
        column = "refused" if key == "strict" else f"refused_{key}"
        value = {said["headline"]: own, said["beside"]: other}[key]
        assert frame[column].astype("float64").equals(value)
    return frame.assign(value=own, other=other)


def other_end(table: pd.DataFrame) -> str:
    """Give what ends the names of columns by the other counting."""
    [counting] = table["counting"].unique()
    return {"strict": "_full", "full": "_strict"}[counting]


def counts(rows: pd.DataFrame) -> dict[str, float]:
    said = rows["refused"].notna()
    return {
        "n": said.sum(),
        "refused": rows["value"].sum(),
        "uncertain": (said & ~rows["certain"].fillna(True)).sum(),
        "unscored": (~said & rows["error"].isna()).sum(),
        "errors": rows["error"].notna().sum(),
    }


def check_rates(table: pd.DataFrame, frame: pd.DataFrame) -> None:
    end = other_end(table)
    split = [name for name in table.columns[:2] if name in frame]
    for row in table.to_dict("records"):
        rows = frame[(frame[split] == pd.Series({name: row[name] for name in split})).all(axis=1)]
        rows = rows[rows["label"] == MEASURES[row["measure"]]]
        assert {name: row[name] for name in counts(rows)} == counts(rows)
        rate = "raw" if "raw" in row else "rate"
        assert row[rate] == pytest.approx(mean(rows), nan_ok=True)
        assert row[rate + end] == pytest.approx(mean(rows, "other"), nan_ok=True)
        assert row[f"refused{end}"] == rows["other"].sum()
        if "raw" not in row:
            assert [row["lowest"], row["highest"]] == pytest.approx(
                [mean(rows, "low"), mean(rows, "high")]
            )


def check_models(table: pd.DataFrame, frame: pd.DataFrame) -> None:
    end = other_end(table)
    for row in table.to_dict("records"):
        rows = frame[frame["model"] == row["model"]]
        for measure, label in MEASURES.items():
            of = rows[rows["label"] == label]
            told = counts(of)
            without = (told["unscored"] + told["errors"]) / len(of)
            assert row[f"{label}_n"] == told["n"]
            assert row[f"{label}_uncertain"] == pytest.approx(told["uncertain"] / len(of))
            assert row[f"{label}_without_verdict"] == pytest.approx(without)
            assert row.get(f"{measure}_raw", row[measure]) == pytest.approx(mean(of))
            if f"{measure}_raw" not in row:
                assert row[f"{measure}{end}"] == pytest.approx(mean(of, "other"))
            if not np.isnan(row.get(f"{measure}_macro", np.nan)):
                alike = [mean(part) for _, part in of.groupby("category")]
                assert row[f"{measure}_macro"] == pytest.approx(np.nanmean(alike))


def check_shares(table: pd.DataFrame, frame: pd.DataFrame, column: str, corrected: bool) -> None:
    for row in table.to_dict("records"):
        rows = frame[(frame["model"] == row["model"]) & (frame["label"] == row["label"])]
        rows = rows[rows["refused"].notna()]
        refused = rows["value"].eq(1) | (column == "response_class")
        kind = rows[column].where(refused, "answered").fillna("not given")
        rows = rows.assign(value=(kind == row[column]).astype(float))
        assert (row["n"], row["total"]) == (rows["value"].sum(), len(rows))
        if not corrected:
            assert row["share"] == pytest.approx(mean(rows))


def check_differences(table: pd.DataFrame, frame: pd.DataFrame, corrected: bool) -> None:
    pairs = list(combinations(sorted(frame["model"].unique()), 2))
    assert len(table) == sum(len(pairs) for label in ("safe", "toxic") if (frame["label"] == label).any())  # fmt: skip
    for row in table.to_dict("records"):
        means = frame[frame["label"] == row["label"]].groupby(["id", "model"])["value"].mean()
        both = means.unstack()[[row["a"], row["b"]]].dropna()
        one, other = (both[row[name]] for name in ("a", "b"))
        found = (len(both), (one > other).sum(), (one < other).sum())
        assert (row["n"], row["a_more"], row["b_more"]) == found
        assert row["difference"] == pytest.approx(row["rate_a"] - row["rate_b"])
        assert not row["lower"] > row["difference"] + 1e-9
        assert not row["upper"] < row["difference"] - 1e-9
        assert (row["p"] < 0.05) == (row["verdict"] == "more than chance")
        assert (row["lower"] > 0 or row["upper"] < 0) == (row["verdict"] == "more than chance")
        if not corrected:
            assert [row["rate_a"], row["rate_b"]] == pytest.approx([one.mean(), other.mean()])
            means = frame[frame["label"] == row["label"]].groupby(["id", "model"])["other"].mean()
            a, b = means.unstack()[[row["a"], row["b"]]].dropna().mean()
            assert row[f"difference{other_end(table)}"] == pytest.approx(a - b)


def check_not_wider(folder: Path) -> None:
    """A difference of models is no wider than their two rates' intervals together."""
    rates = pd.read_csv(folder / "tables" / "models.csv").set_index("model")
    table = pd.read_csv(folder / "tables" / "differences.csv").dropna(subset=["lower"])
    names = {label: name for name, label in MEASURES.items()}
    for row in table.to_dict("records"):
        a, b = (rates.loc[row[name]] for name in ("a", "b"))
        ends = [names[row["label"]] + end for end in ("_lower", "_upper")]
        whole = sum(side[ends[1]] - side[ends[0]] for side in (a, b))
        if row["n"] == a[f"{row['label']}_n"] == b[f"{row['label']}_n"]:
            assert row["upper"] - row["lower"] <= whole + 1e-9


def check_outcomes(table: pd.DataFrame, frame: pd.DataFrame) -> None:
    for row in table.to_dict("records"):
        rows = frame[frame["model"] == row["model"]]
        if "language" in row:
            rows = rows[rows["language"] == row["language"]]
        means = rows.groupby(["label", "id"])["value"].mean()
        safe, toxic = (means.get(label, pd.Series(dtype=float)).dropna() for label in MEASURES.values())  # fmt: skip
        cells = [(1 - safe).sum(), safe.sum(), (1 - toxic).sum(), toxic.sum()]
        assert [row[f"{label} {did}"] for label in ("safe", "toxic") for did in ("answered", "refused")] == pytest.approx(cells)  # fmt: skip
        assert row["accuracy"] == pytest.approx((cells[0] + cells[3]) / sum(cells))
        assert row["precision"] == pytest.approx(cells[3] / (cells[1] + cells[3]), nan_ok=True)
        assert row["f1"] == pytest.approx(
            2 * cells[3] / (2 * cells[3] + cells[1] + cells[2]), nan_ok=True
        )


def check_pairs(table: pd.DataFrame, frame: pd.DataFrame) -> None:
    for row in table.to_dict("records"):
        rows = frame[(frame["model"] == row["model"]) & frame["label"].isin(MEASURES.values())]
        sides = rows.groupby(["pair_id", "label", "id"])["value"].mean()
        sides = sides.groupby(["pair_id", "label"]).mean().unstack().dropna()
        alarm, hit = sides["safe"], sides["toxic"]
        assert row["pairs"] == len(sides)
        assert row["right"] == pytest.approx(((1 - alarm) * hit).sum())
        assert row["share"] == pytest.approx(((1 - alarm) * hit).mean())
        assert [row["hit_rate"], row["false_alarm_rate"]] == pytest.approx(
            [hit.mean(), alarm.mean()]
        )
        assert row["balanced_accuracy"] == pytest.approx((1 - alarm.mean() + hit.mean()) / 2)


def check_votes(table: pd.DataFrame, frame: pd.DataFrame) -> None:
    for row in table.to_dict("records"):
        share = frame[frame["label"] == row["label"]].groupby(["id", "model"])["value"].mean()
        votes = (share.where(share != 0.5) > 0.5).where(share.notna() & (share != 0.5)).unstack()
        both = votes[[row["model_a"], row["model_b"]]].dropna().astype(bool)
        one, other = both.to_numpy().T
        same, chance = (one == other).mean(), one.mean() * other.mean()
        chance += (1 - one.mean()) * (1 - other.mean())
        found = [len(both), one.sum(), other.sum(), (one & other).sum()]
        assert [row[name] for name in ("n", "refused_a", "refused_b", "refused_both")] == found
        assert row["agree"] == pytest.approx(same)
        kappa = (same - chance) / (1 - chance) if chance < 1 else np.nan
        assert row["kappa"] == pytest.approx(kappa, nan_ok=True)


def check_ranking(table: pd.DataFrame, models: pd.DataFrame, balanced: bool) -> None:
    rates = models.set_index("model")
    value = rates["over_refusal"]
    if balanced:
        value = (1 - value + rates["toxic_rejection"]) / 2
    assert table.set_index("model")["value"].to_dict() == pytest.approx(value[table["model"]].to_dict())  # fmt: skip
    end = other_end(table)
    value = rates[f"over_refusal{end}"]
    if balanced:
        value = (1 - value + rates[f"toxic_rejection{end}"]) / 2
    assert table[f"value{end}"].to_list() == pytest.approx(value[table["model"]].to_list())
    assert table["value"].is_monotonic_decreasing if balanced else table["value"].is_monotonic_increasing  # fmt: skip
    assert (table["rank"] == 1 + table["better"]).all()
    assert table["better"].sum() == table["worse"].sum()


def check_worst(table: pd.DataFrame, frame: pd.DataFrame) -> None:
    assert table["rate"].is_monotonic_decreasing
    for row in table.to_dict("records"):
        rows = frame[(frame["category"] == row["category"]) & (frame["label"] == "safe")]
        told = counts(rows)
        assert (row["n"], row["refused"]) == (told["n"], told["refused"])
        assert row["rate"] == pytest.approx(mean(rows))
        assert row[f"rate{other_end(table)}"] == pytest.approx(mean(rows, "other"))


def check_steadiness(table: pd.DataFrame, frame: pd.DataFrame) -> None:
    for row in table.to_dict("records"):
        rows = frame[(frame["model"] == row["model"]) & (frame["label"] == row["label"])]
        prompts = rows.dropna(subset=["value"]).groupby("id")["value"].agg(["size", "mean"])
        prompts = prompts[prompts["size"] > 1]
        assert row["prompts"] == len(prompts)
        assert row["epochs"] == pytest.approx(prompts["size"].mean())
        assert row["unsteady"] == prompts["mean"].between(0, 1, inclusive="neither").sum()


def check_framings(table: pd.DataFrame, folder: Path) -> None:
    frame, end = counted(pd.read_parquet(folder / "responses.parquet"), folder), other_end(table)
    for row in table.to_dict("records"):
        of = frame[(frame["base_model"] == row["model"]) & (frame["label"] == row["label"])]
        means = of.groupby(["id", "framing"])["value"].mean().unstack()
        both = means[[row["framing"], "none"]].dropna()
        assert [row["rate_framed"], row["rate_plain"]] == pytest.approx(both.mean().tolist())
        assert row["difference"] == pytest.approx(row["rate_framed"] - row["rate_plain"])
        means = of.groupby(["id", "framing"])["other"].mean().unstack()
        framed, plain = means[[row["framing"], "none"]].dropna().mean()
        assert row[f"difference{end}"] == pytest.approx(framed - plain)


def check_lineage(table: pd.DataFrame, frame: pd.DataFrame) -> None:
    """Seed prompts beside the base prompts that they were made from."""
    for row in table[table["a"] == "seed"].to_dict("records"):
        of = frame[(frame["model"] == row["model"]) & (frame["label"] == row["label"])]
        means = of.groupby("id")["value"].mean().dropna()
        seeds = of[of["method"] == "expand"].drop_duplicates("id").set_index("id")["seed_id"]
        both = pd.DataFrame({"seed": means.reindex(seeds.index), "base": means.reindex(seeds).to_numpy()})  # fmt: skip
        both = both.dropna()
        assert row["n"] == len(both)
        assert [row["rate_a"], row["rate_b"]] == pytest.approx(both.mean().tolist())


def check_missing(table: pd.DataFrame, frame: pd.DataFrame) -> None:
    missing = frame[frame["refused"].isna()]
    found = missing.groupby(["model", "unscored_because"]).size()
    assert table.set_index(["model", "reason"])["responses"].to_dict() == found.to_dict()


def check_report(folder: Path) -> int:
    """Hold all tables of a report on models, and its summary, against its responses.

    Returns:
        How many tables were looked at.
    """
    frame = responses_of(folder)
    tables = {path.stem: pd.read_csv(path) for path in sorted((folder / "tables").glob("*.csv"))}
    corrected = "corrections" in tables
    checks: dict[str, Callable[[pd.DataFrame], Any]] = {
        "models": lambda table: check_models(table, frame),
        "classes": lambda table: check_shares(table, frame, "response_class", corrected),
        "grounds": lambda table: check_shares(table, frame, "reason", False),
        "who-refused": lambda table: check_shares(table, frame, "provenance", False),
        "differences": lambda table: check_differences(table, frame, corrected),
        "vote-agreement": lambda table: check_votes(table, frame),
        "ranking-over-refusal": lambda table: check_ranking(table, tables["models"], False),
        "ranking-balanced-accuracy": lambda table: check_ranking(table, tables["models"], True),
        "worst-categories": lambda table: check_worst(table, frame),
        "steadiness": lambda table: check_steadiness(table, frame),
        "framings": lambda table: check_framings(table, folder),
        "lineage": lambda table: check_lineage(table, frame),
        "without-verdict": lambda table: check_missing(table, frame),
    }
    checks |= {
        name: lambda table: check_rates(table, frame)
        for name in tables
        if name.startswith("rates-by-") and name != "rates-by-consensus"
    }
    if not corrected:
        checks["pairs"] = lambda table: check_pairs(table, frame)
        checks |= dict.fromkeys(
            ("fourfold", "fourfold-by-language"), lambda table: check_outcomes(table, frame)
        )
    looked_at = [name for name in checks if name in tables]
    for name in looked_at:
        checks[name](tables[name])
    if "differences" in tables:
        check_not_wider(folder)
    for name, table, records in _in_both(summary_of(folder), tables):
        assert len(records) == len(table), name
        for column in [column for column in table if column in records[0]]:
            said = pd.Series([record[column] for record in records])
            if pd.api.types.is_numeric_dtype(table[column]):
                same = said.astype("float64").to_list()
                assert same == pytest.approx(table[column].to_list(), nan_ok=True), (name, column)
            else:
                assert said.fillna("").to_list() == table[column].fillna("").to_list()
    return len(looked_at)


def _in_both(
    summary: dict[str, Any], tables: dict[str, pd.DataFrame]
) -> Iterator[tuple[str, pd.DataFrame, list[dict[str, Any]]]]:
    """Give the tables that the summary has as well."""
    for key, value in summary.items():
        name = {"corrected": "corrections"}.get(key, key.replace("_", "-"))
        if key != "runs" and name in tables and isinstance(value, list) and value:
            yield name, tables[name], value


def check_changes(folder: Path, runs: list[pd.DataFrame]) -> None:
    """Hold a comparison of two runs against the responses of both."""
    table = pd.read_csv(folder / "tables" / "changes.csv")
    flips = pd.read_csv(folder / "tables" / "flips.csv")
    for row in table.to_dict("records"):
        of = [run[(run["model"] == row["model"]) & (run["label"] == row["label"])] for run in runs]
        one, other = (side.groupby("id")["value"].mean() for side in of)
        both = pd.DataFrame({"a": one, "b": other}).dropna()
        assert row["n"] == len(both)
        assert [row["rate_a"], row["rate_b"]] == pytest.approx(both.mean().tolist())
        assert row["difference"] == pytest.approx(row["rate_b"] - row["rate_a"])
        one, other = (side.groupby("id")["other"].mean() for side in of)
        beside = pd.DataFrame({"a": one, "b": other}).dropna()
        end = other_end(table)
        assert [row[f"rate_a{end}"], row[f"rate_b{end}"]] == pytest.approx(beside.mean().tolist())
        changed = [(both["b"] > both["a"]).sum(), (both["b"] < both["a"]).sum()]
        assert [row["newly_refused"], row["newly_answered"]] == changed
        named = flips[(flips["model"] == row["model"]) & (flips["label"] == row["label"])]
        told = [int((named["change"] == what).sum()) for what in ("newly refused", "newly answered")]  # fmt: skip
        assert told == changed
