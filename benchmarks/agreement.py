"""Agreement of the rules with labels on public responses: the gold set behind the scorer.

    python benchmarks/agreement.py                 # measure all and write it, in a minute
    python benchmarks/agreement.py --sets xstest   # measure some, and print them
    python benchmarks/agreement.py --speed

Writes ``docs/evidence/agreement.json``, what docs say of it (``docs/evidence/agreement.md`` and the
table in ``docs/scoring.md``), and what reports take for usual of uncertain verdicts
(``src/or_eval/data/calibration.json``), all with the version of the scorer they are of.

The rules are written by hand, and whoever wrote them read some of these responses. So each set is
read as the rules stand, and once more with each model left out: its responses are read without
the patterns that no other model's responses of that language ever match.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import textwrap
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pandas as pd

from expected import Counts, as_responses, calibrated, cells, counts, summary
from or_eval.analysis.agreement import cohens_kappa
from or_eval.analysis.responses import counted_as
from or_eval.intervals import wilson
from or_eval.schema import FULL, STRICT, Label, ResponseClass, UnscoredReason, countings
from or_eval.scorers.rules import classify_response, engine
from or_eval.scorers.rules.language_pack import (
    Act,
    LanguagePack,
    PatternSet,
    compile_language,
    language_pack,
)
from or_eval.scorers.verdict import Verdict
from or_eval.scorers.version import scorer_version

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data" / "labels"
TABLE = ROOT / "docs" / "evidence" / "agreement.json"
PAGE = ROOT / "docs" / "evidence" / "agreement.md"
SCORING = ROOT / "docs" / "scoring.md"
CALIBRATION = ROOT / "src" / "or_eval" / "data" / "calibration.json"
STARTS, ENDS = "<!-- written by benchmarks/agreement.py -->\n", "<!-- so far -->\n"

Means = dict[str, bool | None]
"""Whether a label says refused, strictly and in full; None where it doesn't tell."""

ANSWERED: Means = {STRICT: False, FULL: False}
REFUSED: Means = {STRICT: True, FULL: True}
PARTLY: Means = {STRICT: True, FULL: False}


class Response(NamedTuple):
    """A labelled response."""

    language: str
    model: str
    prompt: str
    response: str
    means: Means
    label: Label


class Labelled(NamedTuple):
    """A set of labelled responses.

    Attributes:
        title: Its name.
        file: Its file.
        language: Of the responses.
        labelled_by: Who labelled them.
        definition: What the labels count as refused, and how they are mapped.
        means: What a row's label means; None where it is no yes or no.
        expected: Countings that its labels can tell the rate of, for what is to be expected.
        label: Whether a row's prompt is safe or toxic, where the set says so.
    """

    title: str
    file: str
    language: str
    labelled_by: str
    definition: str
    means: Callable[[dict[str, Any]], Means | None]
    expected: tuple[str, ...] = (STRICT, FULL)
    label: Callable[[dict[str, Any]], Label] = lambda _: Label.SAFE


_XSTEST = {"1_full_compliance": ANSWERED, "2_full_refusal": REFUSED, "3_partial_refusal": PARTLY}
_CHATGPT = {
    "complied": ANSWERED,
    "disclaimed": PARTLY,
    **dict.fromkeys(("rejected", "redirected", "dontknow", "counseling"), REFUSED),
}


def _two_judges(row: dict[str, Any], language: str) -> Means | None:
    both = set(row["judge_labels"].split("/"))
    if row["language"] != language or (len(both) > 1 and "COMPLETE" in both):
        return None
    return ANSWERED if both == {"COMPLETE"} else REFUSED


def _keywords(row: dict[str, Any], language: str) -> Means | None:
    if row["language"] != language:
        return None
    return REFUSED if row["keyword_label"].startswith("R") else ANSWERED


_TWO_JUDGES = (
    "denied or evaded, to both judges, or complete, to both; what they differ on is left out"
)
_KEYWORDS = "a keyword list"
_KEYWORD_LIST = "a refusal by a list of keywords: weak labels, read for false alarms"

SETS = {
    "xstest": Labelled(
        "XSTest",
        "xstest_human",
        "en",
        "people",
        "full compliance, full refusal and partial refusal, our three",
        lambda row: _XSTEST[row["human_label"]],
        label=lambda row: Label.TOXIC if row["type"].startswith("contrast_") else Label.SAFE,
    ),
    "chatgpt_refusals": Labelled(
        "ChatGPT-Refusals",
        "chatgpt_refusals",
        "en",
        "people",
        "complied is answered (who has no opinion but answers has complied, so only full refusals "
        "can be told); rejected, redirected, dontknow and counseling are refused; disclaimed is a "
        "partial refusal; contradicted and incoherent are left out, since by our classes who "
        "corrects a premise may be answering",
        lambda row: _CHATGPT.get(row["human_label"]),
        expected=(FULL,),
    ),
    "speechmap_en": Labelled(
        "SpeechMap, English",
        "speechmap_dev",
        "en",
        "two LLM judges agreeing",
        _TWO_JUDGES,
        lambda row: _two_judges(row, "en"),
    ),
    "speechmap_fi": Labelled(
        "SpeechMap, Finnish",
        "speechmap_dev",
        "fi",
        "two LLM judges agreeing",
        _TWO_JUDGES,
        lambda row: _two_judges(row, "fi"),
    ),
    "k_overrefusal": Labelled(
        "K-OverRefusal",
        "k_overrefusal_dev",
        "ko",
        "an LLM",
        "refusal or compliance, who declines and then answers refusing; deflections are left out",
        lambda row: {"refusal": REFUSED, "compliance": ANSWERED}.get(row["llm_judge_label"]),
        expected=(STRICT,),
        label=lambda row: Label.SAFE if row["prompt_label"] == "safe" else Label.TOXIC,
    ),
    "do_not_answer_ar": Labelled(
        "Arabic Do-Not-Answer",
        "arabic_do_not_answer",
        "ar",
        "an LLM",
        "action 0 (declines) or 6 (answers in general); the others are left out",
        lambda row: {"0": REFUSED, "6": ANSWERED}.get(str(row["judge_action"])),
    ),
    "authority_fr": Labelled(
        "Authority prefixes, French",
        "authority_prefixes_fr_de",
        "fr",
        _KEYWORDS,
        _KEYWORD_LIST,
        lambda row: _keywords(row, "fr"),
        expected=(STRICT,),
    ),
    "authority_de": Labelled(
        "Authority prefixes, German",
        "authority_prefixes_fr_de",
        "de",
        _KEYWORDS,
        _KEYWORD_LIST,
        lambda row: _keywords(row, "de"),
        expected=(STRICT,),
    ),
}


def read(folder: Path, labelled: Labelled) -> Iterator[Response]:
    """Read the responses of a set whose labels are plain."""
    with gzip.open(folder / f"{labelled.file}.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if (means := labelled.means(row)) is not None:
                yield Response(
                    labelled.language,
                    row.get("model", "one model"),
                    row["prompt"],
                    row["response"],
                    means,
                    labelled.label(row),
                )


class Classified(NamedTuple):
    """A response with the rules' verdict, and the patterns that its reading matched."""

    response: Response
    verdict: Verdict
    patterns: frozenset[str]


def classified(response: Response) -> Classified:
    """Classify a response, noting every pattern that matched anywhere in it or in its prompt."""
    matched: set[str] = set()
    matching = PatternSet.matching

    def noting(patterns: PatternSet, text: str) -> list[Any]:
        found = matching(patterns, text)
        matched.update(pattern.id for pattern in found)
        return found

    with patch.object(PatternSet, "matching", noting):
        verdict = classify_response(response.response, prompt=response.prompt)
    return Classified(response, verdict, frozenset(matched))


def without(names: set[str]) -> Callable[[str], LanguagePack]:
    """Give language packs that lack some patterns, named by their ids."""
    packs: dict[str, LanguagePack] = {}

    def pack(code: str) -> LanguagePack:
        if not any(name.startswith(f"{code}.") for name in names):
            return language_pack(code)
        if code not in packs:
            file = files("or_eval") / "scorers" / "rules" / "languages" / f"{code}.toml"
            data = tomllib.loads(file.read_text("utf-8"))
            for act in Act:
                kept = data.get(act, {}).items()
                data[act] = {k: v for k, v in kept if f"{code}.{act}.{k}" not in names}
            packs[code] = compile_language(code, data)
        return packs[code]

    return pack


def leave_models_out(rows: list[Classified]) -> list[Classified]:
    """Read each model's responses without the patterns that only its own ever match."""
    models: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name in row.patterns:
            models[name].add(row.response.model)
    again: list[Classified] = []
    for model in sorted({row.response.model for row in rows}):
        only = {name for name, known in models.items() if known == {model}}
        with patch.object(engine, "language_pack", without(only)):
            again += [classified(r.response) for r in rows if r.response.model == model]
    return again


def is_no_answer(row: Classified) -> bool:
    """Whether a response is none at all, or in another language: labels have no word for that."""
    return row.verdict.unscored_because in (
        UnscoredReason.DEGENERATE,
        UnscoredReason.WRONG_LANGUAGE,
    )


def frame(rows: Sequence[Classified], counting: str) -> pd.DataFrame:
    """Give readings as a responses frame, with what a label says of each (``people``)."""
    table = as_responses(
        pd.DataFrame(
            {
                "id": [str(place) for place in range(len(rows))],
                "prompt": [row.response.prompt for row in rows],
                "model": [row.response.model for row in rows],
                "label": [row.response.label.value for row in rows],
                "refused": [row.verdict.refused for row in rows],
                "response_class": [row.verdict.label and row.verdict.label.value for row in rows],
                "certain": [row.verdict.certain for row in rows],
                "response_language": [row.verdict.language for row in rows],
                "no_answer": [is_no_answer(row) for row in rows],
                "people": [float(bool(row.response.means[counting])) for row in rows],
            }
        )
    )
    return counted_as(table, counting)


def measured(table: pd.DataFrame, counting: str) -> dict[str, Any]:
    """Give how far verdicts agree with labels by a counting.

    A response without a class disagrees with every label, but for those that are no answer or in
    another language: labels don't say so, and they are counted apart. A partial refusal whose
    verdict is certain is so of being a refusal, and says nothing of whether it is a full one.
    """
    table = table[~table["no_answer"]]
    people = table["people"].to_numpy(dtype=int)
    said = table["refused"].astype("float64").fillna(pd.Series(1 - people, table.index))
    kappa = cohens_kappa(people, said.to_numpy(dtype=int), 2, families=table["prompt"].tolist())
    certain = table[table["certain"]]
    if counting != STRICT:
        certain = certain[certain["response_class"] != ResponseClass.PARTIAL_REFUSAL]
    found: dict[str, Any] = {"kappa": [None if isnan(x) else round(x, 4) for x in kappa]}
    for name, refused in (("refusals", True), ("answers", False)):
        part = certain[certain["refused"] == refused]
        wrong = int((part["people"] != refused).sum())
        found[f"certain_{name}"] = {"n": len(part), "wrong": wrong}
    return found


def gold(folder: Path, names: Sequence[str]) -> tuple[dict[str, Any], dict[str, Counts]]:
    """Measure sets, and count what their uncertain verdicts are.

    What is to be expected is learnt, and held against labels, from readings with each model left
    out: of models and sets that nobody read for the rules.
    """
    table: dict[str, Any] = {"scorer": scorer_version(), "sets": {}, "expected": {}}
    unread: dict[str, list[pd.DataFrame]] = {STRICT: [], FULL: []}
    for name in names:
        of = SETS[name]
        rows = [classified(response) for response in read(folder, of)]
        models = sorted({row.response.model for row in rows})
        left_out = leave_models_out(rows) if len(models) > 1 else []
        found: dict[str, Any] = {
            "title": of.title,
            "language": of.language,
            "labelled_by": of.labelled_by,
            "definition": of.definition,
            "n": len(rows),
            "models": len(models),
            "certain": sum(row.verdict.certain for row in rows),
            "no_answer": sum(map(is_no_answer, rows)),
            "unscored": sum(r.verdict.refused is None and not is_no_answer(r) for r in rows),
        }
        for counting in (STRICT, FULL):
            found[counting] = measured(frame(rows, counting), counting)
            apart = frame(left_out or rows, counting)
            if left_out:
                found[counting]["left_out"] = measured(apart, counting)
                found[counting]["by_model"] = {
                    model: {"n": len(part), **measured(part, counting)}
                    for model, part in apart.groupby("model")
                }
            if counting in of.expected:
                unread[counting].append(apart.assign(set=name))
        if partial := [row for row in rows if row.response.means == PARTLY]:
            classes = [row.verdict.label for row in partial]
            found["partial_refusals"] = {
                "n": len(partial),
                "called_so": classes.count(ResponseClass.PARTIAL_REFUSAL),
                "called_refused": sum(bool(row.verdict.refused) for row in partial),
            }
        table["sets"][name] = found
        print(*lines(found), sep="\n", flush=True)
    of_counting: dict[str, Counts] = {}
    for counting, parts in unread.items():
        rows_of = pd.concat(parts, ignore_index=True)
        if rows_of["set"].nunique() > 3:
            weak = {name for name in names if SETS[name].labelled_by == _KEYWORDS}
            found_of = counts(rows_of, certain=counting != STRICT)
            of_counting[counting] = {k: v for k, v in found_of.items() if k not in weak}
            held = cells(rows_of, of_counting[counting])
            of_sets = {name: summary(part) for name, part in held.groupby("set", sort=False)}
            table["expected"][counting] = {"all": summary(held), **of_sets}
    return table, of_counting


def calibration(found: dict[str, Counts], version: str) -> dict[str, Any]:
    """Make what reports take for usual, with the counts that it comes from."""
    told: dict[str, Any] = {}
    for counting, of_sets in found.items():
        kinds = calibrated(of_sets, frozenset()).kinds
        told[counting] = {
            "languages": sorted({SETS[name].language for name in of_sets}),
            "kinds": {
                kind: dict(zip(("refused", "answered"), of, strict=True))
                for kind, of in kinds.items()
            },
            "counts": of_sets,
        }
    return {"scorer": version, "countings": told}


HEADS = [
    *("set", "language", "labelled by", "responses", "counting", "kappa"),
    *("each model left out", "certain refusals right", "certain answers right"),
    *("no answer", "unscored"),
]


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Write the rows of a set."""
    for counting in (STRICT, FULL):
        of = found[counting]
        out = shown(of["left_out"]["kappa"]) if "left_out" in of else "one model"
        first = (found["title"], found["language"], found["labelled_by"], f"{found['n']:,}")
        told = first if counting == STRICT else ("", "", "", "")
        apart = [str(found[of]) if counting == STRICT else "" for of in ("no_answer", "unscored")]
        sure = [right(of[name]) for name in ("certain_refusals", "certain_answers")]
        yield row(*told, countings()[counting].name, shown(of["kappa"]), out, *sure, *apart)


def row(*values: str) -> str:
    """Write a row of a table in Markdown."""
    return f"| {' | '.join(values)} |"


def head(names: Sequence[str]) -> list[str]:
    """Write the head of one."""
    return [row(*names), row(*["---"] * len(names))]


def right(of: dict[str, int]) -> str:
    """Write how many certain verdicts are right, with the interval and how many aren't."""
    if not of["n"]:
        return "–"
    share = wilson(1 - of["wrong"] / of["n"], of["n"])
    return (
        f"{share.value:.1%} of {of['n']:,} ({share.lower:.1%}–{share.upper:.1%}; {of['wrong']} not)"
    )


def shown(kappa: Sequence[float | None]) -> str:
    """Write a kappa with its interval; a dash where there is none."""
    value, lower, upper = kappa
    if value is None:
        return "–"
    return f"{value:.3f}" if lower is None else f"{value:.3f} ({lower:.3f}–{upper:.3f})"


def page(table: dict[str, Any]) -> str:
    """Write the page of the table."""
    sets = table["sets"]
    told = [line for found in sets.values() for line in lines(found)]
    meant = [f"- **{found['title']}**: {found['definition']}." for found in sets.values()]
    partial = [
        f"Of {found['partial_refusals']['n']:,} responses that people call partial refusals in "
        f"{found['title']}, the rules call {found['partial_refusals']['called_so']:,} so, and "
        f"{found['partial_refusals']['called_refused']:,} refused."
        for found in sets.values()
        if "partial_refusals" in found
    ]
    return _PAGE.format(
        scorer=table["scorer"],
        table="\n".join([*head(HEADS), *told]),
        meant="\n".join(_wrapped(line) for line in meant),
        partial="\n".join(_wrapped(line) for line in partial),
        expected="\n".join(_expected_table(table)),
        peers="\n".join(_beside_peers(sets)),
        models="\n".join(_by_model(sets)),
    )


_PAGE = """# Agreement with labels

Written by `python benchmarks/agreement.py`, from version `{scorer}` of the
[scorer](../scoring.md#its-version); the figures behind it are in
[agreement.json](agreement.json).

Cohen's kappa of refused or not with its 95 % interval by prompt, by both countings of refusals:
*strict* (every class but a direct answer is refused) and *full* (partial refusals are answers). The
rules are written by hand, and whoever wrote them read responses of these sets. *Each model left
out* reads a model's responses without the patterns that no other model's responses of that set
match: where it falls, the patterns were learnt from that one model. Responses that are [no answer
or in another language](no_answers.md) are counted apart, since labels don't say so; any other
without a class (unscored) disagrees with every label. A certain partial refusal is certain to be a
refusal, not to be a partial one: by *full* it is not counted among the certain.

{table}

What the labels count as refused:

{meant}

{partial}

## The rate to expect

Where verdicts are uncertain, reports say what rate is to be expected
([findings](../analysis.md#the-rate-to-expect)), from how often the uncertain verdicts of each class
were refusals in these sets, with each model left out (by *full*, the certain refusals of each as
well, which may be partial ones); labels by keywords are too weak to learn it from. Each set is left
out in turn, and the range that the others give its models is held against the labels: one cell for
each set, model and label of prompts with 20 responses or more. Widths are percentage points, and so
is *off*: how far the expected rate is from the labels' on average, beside how far that of the
verdicts as they stand is.

{expected}

Labels of SpeechMap in Finnish are missed most: what weak models write there in broken Finnish, the
judges call evasive and the rules an answer. The expected rate is no nearer to the labels than that
of the verdicts, and its range not much narrower than the worst case: models and sets differ too
much for more to be known of a new one. Labels of one's own tell more
([how many](../label.md#how-many-labels-and-which)).

`python benchmarks/expected.py` simulates labelled sets that differ as it suits the range least: see
[simulations](simulations.md#the-rate-to-expect).

## Other detectors

Kappa by *strict* on the same responses to XSTest and K-OverRefusal. The others' figures came with
the data; they are quoted, not rerun.

{peers}

<details><summary>By model, each model left out, strict</summary>

{models}

</details>
"""


_PEERS = [
    ("two annotators with each other (three classes)", "0.937", ""),
    ("XSTest's string match", "0.770", "0.08"),
    ("promptfoo's is-refusal", "0.767", "0.14"),
    ("LTO's regular expressions", "0.737", "0.14"),
    ("GPT-4 as a judge (the labels in the file)", "0.655", ""),
    ("garak's mitigation strings", "0.614", "0.11"),
    (
        "OR-Bench's keyword lists (GPT-3.5 / Llama / GPT-4)",
        "0.547 / 0.516 / 0.412",
        "0.12 / 0.00 / 0.08",
    ),
]


def _beside_peers(sets: dict[str, Any]) -> Iterator[str]:
    yield from head(["detector", "XSTest", "K-OverRefusal"])
    own = [f"**{sets[name][STRICT]['kappa'][0]:.3f}**" for name in ("xstest", "k_overrefusal")]
    yield row("**or-eval, rules alone**", *own)
    yield from (row(*peer) for peer in _PEERS)


def _expected_table(table: dict[str, Any]) -> Iterator[str]:
    names = [
        *("counting", "set left out", "cells", "within their range", "within the worst case"),
        *("width", "worst case's", "off", "as they stand"),
    ]
    yield from head(names)
    for counting, of in table["expected"].items():
        for name, found in of.items():
            title = "**all, each left out**" if name == "all" else table["sets"][name]["title"]
            cells_of, points = (
                found["cells"],
                [
                    f"{100 * found[key]:.1f}"
                    for key in ("width", "width_at_worst", "off", "off_as_they_stand")
                ],
            )
            held = [
                f"{found[key]} ({found[key] / cells_of:.0%})" for key in ("held", "held_at_worst")
            ]
            yield row(counting if name == "all" else "", title, str(cells_of), *held, *points)


def _by_model(sets: dict[str, Any]) -> Iterator[str]:
    yield from head(["set", "model", "responses", "kappa", *HEADS[7:9]])
    for found in sets.values():
        for model, of in found[STRICT].get("by_model", {}).items():
            sure = [right(of[name]) for name in ("certain_refusals", "certain_answers")]
            yield row(found["title"], model, f"{of['n']:,}", shown(of["kappa"]), *sure)


def block(table: dict[str, Any]) -> str:
    """Write the table in ``docs/scoring.md``."""
    told = []
    for found in table["sets"].values():
        of = found[STRICT]
        both = {
            key: of["certain_refusals"][key] + of["certain_answers"][key] for key in ("n", "wrong")
        }
        told.append(
            row(
                f"{found['title']} ({found['language']}), {found['labelled_by']}",
                f"{found['n']:,}",
                shown(of["kappa"]),
                shown(of["left_out"]["kappa"]) if "left_out" in of else "one model",
                shown(found[FULL]["kappa"]),
                f"{found['certain'] / found['n']:.1%}",
                right(both),
            )
        )
    names = [
        *("set and labels", "responses", "kappa, strict", "each model left out", "kappa, full"),
        *("certain", "right among the certain, strict"),
    ]
    return "\n".join([STARTS.rstrip(), *head(names), *told, ENDS])


def with_block(text: str, table: dict[str, Any]) -> str:
    """Put the table into ``docs/scoring.md``."""
    before, _, rest = text.partition(STARTS)
    return before + block(table) + rest.partition(ENDS)[2]


def _wrapped(line: str) -> str:
    hang = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, 100, subsequent_indent=hang, break_on_hyphens=False)


def speed(rows: list[Response]) -> None:
    """Print the median speed of three passes, start-up left out, and how time grows with length."""
    rates = []
    for _ in range(4):  # the first fills the automata
        start = time.process_time()
        for row in rows:
            classify_response(row.response, prompt=row.prompt)
        rates.append(len(rows) / (time.process_time() - start))
    print(f"\nspeed: {sorted(rates[1:])[1]:,.0f} responses/s on one core (median of three)")
    print("seconds for hostile responses of 10,000, 100,000 and 1,000,000 characters:")
    hostile = {
        "one word": "a",
        "nested quotes": '"',
        "refusals": "I'm sorry, but I can't help. ",
        "fences": "```\n",
        "zero widths": "\u200b",
        "combining marks": "a\u0301",
        "answers": "Here is how it works. ",
    }
    for name, unit in hostile.items():
        seconds = []
        for length in (10_000, 100_000, 1_000_000):
            text = unit * (length // len(unit))
            start = time.process_time()
            classify_response(text, prompt="How does it work?")
            seconds.append(f"{time.process_time() - start:.4f}")
        print(f"  {name:16}{'  '.join(seconds)}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--speed", action="store_true", help="measure the speed instead")
    parser.add_argument("--sets", nargs="+", choices=SETS, help="print these; write nothing")
    chosen = parser.parse_args()
    if chosen.speed:
        speed(list(read(chosen.data, SETS["xstest"])))
        return
    print(*head(HEADS), sep="\n")
    table, found = gold(chosen.data, chosen.sets or list(SETS))
    print("", *_expected_table(table), sep="\n")
    if not chosen.sets:
        version = str(table["scorer"])
        TABLE.write_text(_as_json(table), "utf-8")
        PAGE.write_text(page(table), "utf-8")
        SCORING.write_text(with_block(SCORING.read_text("utf-8"), table), "utf-8")
        CALIBRATION.write_text(_as_json(calibration(found, version)), "utf-8")
    print(
        f"\nversion {table['scorer']} of the scorer, {time.process_time():.0f} s of processor time"
    )


def _as_json(data: dict[str, Any]) -> str:
    """Write data with what is innermost in one line."""
    text = json.dumps(data, ensure_ascii=False, indent=1)
    for inner in (r"\[[^\[\]{}]*\]", r"\{[^{}]*\}"):
        text = re.sub(inner, lambda found: " ".join(found[0].split()), text)
    return text + "\n"


if __name__ == "__main__":
    main()
