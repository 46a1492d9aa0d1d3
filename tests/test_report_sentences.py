"""The sentences of a report, and what stands beside its rates."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log, write_eval_log

from made_logs import UNSCORED, made_log, made_sample, votes_log
from or_eval.analysis.material import Material
from or_eval.analysis.report import write_report
from or_eval.analysis.report.contents import sentences
from or_eval.analysis.report.forms import shown_table
from or_eval.analysis.report.model_tables import model_tables
from or_eval.analysis.report.sentences import answers
from or_eval.analysis.responses import read_logs
from report_logs import run, summary_of


def said(folder: Path) -> str:
    return "\n".join(chain.from_iterable(answers(Material(read_logs(folder))).values()))


def test_models_that_differ_are_parted_from_the_best(tmp_path: Path) -> None:
    labels = {f"t{n}": "toxic" for n in range(10)} | {f"p{n}": "safe" for n in range(20)}
    for model, (safe, toxic) in {"a": (15, 10), "b": (15, 10), "c": (0, 4)}.items():
        samples = [
            made_sample(key, float(int(key[1:]) < (toxic if key[0] == "t" else safe)), label=label)
            for key, label in labels.items()
        ]
        made_log(tmp_path / f"{model}.eval", model, samples)
    assert said(tmp_path) == (
        "2 of the 3 pairs of models differ by more than chance on safe prompts. a and b each refuse "
        "more of them than at least one other model; c refuses fewest. In the other pairs, "
        "differences of up to 16 percentage points can't be ruled out."
    )


def test_many_models_that_cannot_be_told_apart_are_named_once(tmp_path: Path) -> None:
    for number in range(12):
        votes_log(
            tmp_path, f"m{number}", {f"p{n}": float(n < 30 * (number > 9)) for n in range(40)}
        )
    assert (
        "m10 and m11 each refuse more of them than at least one other model; 10 models don't differ by"
        in said(tmp_path)
    )
    [over, *_] = [t for t in model_tables(Material(read_logs(tmp_path))) if "ranking" in t.name]
    ranks = [row[3].text for row in shown_table(over.frame, over.name).rows]
    assert ranks == ["1 (10 models)", *[""] * 9, "11 (2 models)", ""]


def test_no_name_passes_for_a_sentence_or_a_question() -> None:
    told = sentences(
        "scan",
        rates=[],
        decided=[],
        kinds=[
            {
                "model": "m\n# Owned?\nAll is well",
                "kind": "{{ 7*7 }}",
                "refusals": 1,
                "transcripts": 1,
            }
        ],
    )
    assert told == {
        "What did the models do besides refusing?": [
            "m # Owned? All is well: {{ 7*7 }}, 1 refusal in 1 transcript."
        ]
    }


@pytest.mark.parametrize(
    ("label", "values", "line"),
    [
        ("safe", (1.0, 0.0), ""),
        ("safe", (1.0, UNSCORED), "1 of 2 responses (50.0 %) has no verdict and enters no rate: "
         "many, so check the reasons first."),
        ("toxic", (1.0,), "There are no safe prompts, so over-refusal can't be computed."),
        ("unlabelled", (1.0,), "None of the 1 prompt is labelled safe or toxic, "
         "so neither over-refusal nor toxic rejection can be computed."),
    ],
)  # fmt: skip
def test_what_one_model_leaves_open(
    tmp_path: Path, label: str, values: tuple[float, ...], line: str
) -> None:
    samples = [made_sample(f"p{n}", value, label=label) for n, value in enumerate(values)]
    made_log(tmp_path / "m.eval", "m", samples)
    assert said(tmp_path) == line


def test_models_on_unlabelled_prompts_are_compared(tmp_path: Path) -> None:
    for model, every in {"a": 1, "b": 3}.items():
        samples = [
            made_sample(f"p{n}", float(n % every == 0), label="unlabelled") for n in range(12)
        ]
        made_log(tmp_path / f"{model}.eval", model, samples)
    assert run(tmp_path, "--out", tmp_path / "report").exit_code == 0
    page = (tmp_path / "report" / "index.html").read_text("utf-8")
    assert "Differences between models in refusals" in page
    assert "<title>Refusals of a and b on" in page


def test_sentences_say_what_makes_rates_less_sure(tmp_path: Path) -> None:
    unsure = {"certain": False}
    made_log(tmp_path / "a.eval", "a", [made_sample("p", 1.0, score=unsure), made_sample("q", 0.0)])
    made_log(
        tmp_path / "b.eval",
        "b",
        [made_sample("p", 1.0), made_sample("r", 0.0), made_sample("u", 0.0, label="unlabelled")],
    )
    text = said(tmp_path)
    assert "1 prompt is labelled neither safe nor toxic and enters neither rate." in text
    assert "Not every model was asked every prompt (2 to 3 each)" in text
    assert "1 of 5 verdicts (20.0 %) is uncertain" in text
    assert "There are too few families of safe prompts to compare models" in text


def test_sentence_on_the_audit_counts_safe_prompts_only(tmp_path: Path) -> None:
    samples = []
    for number in range(40):
        # half of the certain answers to safe prompts are audited, and a quarter of those is wrong
        judged = "direct_refusal" if number % 8 == 0 else "direct_answer"
        score = {"audited": number % 2 == 0, "stages": {"judge": {"label": judged}}}
        samples.append(made_sample(f"s{number}", 0.0, score=score))
        samples.append(made_sample(f"t{number}", 1.0, label="toxic", score=score))
    made_log(tmp_path / "a.eval", "m", samples)
    assert "corrected by the judge's audit of 20 responses to safe prompts" in said(tmp_path)
    assert "over-refusal (strict) of m: 0.0 % (0.0–8.8) becomes 25.0 % (" in said(tmp_path)


@pytest.mark.parametrize(
    ("refused", "lines"),
    [
        (  # few prompts don't come first by luck
            {"rare": "1", "common": "1" * 20 + "0" * 10, "never": "0" * 30},
            (r"One category .*: common, 66.7 % \(", r"For rare, .* to test\.$"),
        ),
        (  # alike
            dict.fromkeys("abcd", "1000" * 5),
            (r"No category .* by more than chance: differences of up to \d\d percentage points",),
        ),
        (  # two that were refused are too few to tell of
            {"a": "10" * 20, "b": "10" * 20, "privacy": "11"},
            (r"No category", r"For privacy, .* to test\."),
        ),
        (  # none is left out for its name
            dict.fromkeys("abcd", "1" * 30) | dict.fromkeys("efghijkl", "0" * 30),
            (r": a, 100.0 % \(.*\); b, 100.0 % \(.*\); c, 100.0 % \(.*\); d, 100.0 % \(",),
        ),
    ],
)
def test_categories_that_stand_out_are_named_and_no_others(
    tmp_path: Path, refused: dict[str, str], lines: tuple[str, ...]
) -> None:
    samples = [
        made_sample(f"{name}{n}", float(sign), category=name)
        for name, signs in refused.items()
        for n, sign in enumerate(signs)
    ]
    made_log(tmp_path / "a.eval", "m", samples)
    assert all(re.search(line, said(tmp_path)) for line in lines)
    assert "never" not in said(tmp_path)


def test_rates_stand_beside_what_uncertain_and_missing_verdicts_allow(tmp_path: Path) -> None:
    unsure = {"certain": False}
    samples = [
        *(made_sample(f"sure{n}", float(n < 2)) for n in range(4)),
        *(made_sample(f"unsure{n}", float(n < 1), score=unsure) for n in range(4)),
        *(made_sample(f"none{n}", UNSCORED) for n in range(2)),
    ]
    made_log(tmp_path / "logs" / "a.eval", "m", samples)
    found = summary_of(write_report(tmp_path / "logs", tmp_path / "out").parent)
    [row] = found["models"]
    assert row["over_refusal"] == pytest.approx(3 / 8)
    assert (row["over_refusal_lowest"], row["over_refusal_highest"]) == pytest.approx((0.2, 0.8))
    assert (row["safe_uncertain"], row["unscored"]) == (0.4, 2)
    assert "20.0–80.0 %" in (tmp_path / "out" / "index.html").read_text("utf-8")


def corrected(folder: Path) -> Material:
    """Find what two conditions and another model show by labels of half of their responses.

    People call half of what ``m`` answered uncertainly without a system prompt refusals.
    """
    for name, (model, prompt) in enumerate((("m", "none"), ("m", "safe"), ("x", "none"))):
        samples = [
            made_sample(
                f"p{n}",
                float(n % 4 == 0),
                category=f"c{n % 2}",
                score={"certain": n % 3 == 0},
            )
            for n in range(60)
        ]
        path = made_log(folder / f"{name}.eval", model, samples, second=name)
        log = read_eval_log(str(path))
        log.eval.task_args = {"system_prompt": prompt}
        write_eval_log(log, str(path))
    logs = read_logs(folder)
    rows = logs.responses
    number = rows["id"].str[1:].astype(int)
    missed = (rows["model"] == "m (system_prompt=none)") & ~rows["certain"] & (number % 4 == 1)
    truth = (rows["refused"] | missed).map({True: "refused", False: "answered"})
    return Material(logs, said=truth.where(number % 12 < 6))


def test_all_that_is_compared_is_corrected_by_labels_or_withheld(tmp_path: Path) -> None:
    found = corrected(tmp_path)
    over = found.models.set_index("model")["rate"]
    a, b = (f"m (system_prompt={prompt})" for prompt in ("none", "safe"))
    effect = found.effects.set_index("factor").loc["system_prompt"]
    assert over[a] > 0.3
    assert effect[["rate_a", "rate_b"]].tolist() == pytest.approx([over[a], over[b]])
    assert effect["difference"] == pytest.approx(over[a] - over[b])
    assert effect["upper"] - effect["lower"] > 0.1
    assert found.standing_out.empty
    assert found.groups == {}
    assert found.standing is None
    text = answers(found)
    assert "aren't tested here" in text["Which prompts?"][0]
    tables = {table.name: table for table in model_tables(found)}
    assert "worst-categories" not in tables
    assert "uncorrected" in tables["vote-agreement"].note


def test_what_corrected_rates_could_be_is_what_the_sample_leaves_open(tmp_path: Path) -> None:
    models = corrected(tmp_path).models.set_index("model")
    for _, row in models.iterrows():
        assert row["lowest"] < row["rate"] < row["highest"], "some are uncertain and not labelled"
        assert row["lowest"] == pytest.approx(row["known_lower"])
        assert row["highest"] == pytest.approx(row["known_upper"])


def test_differences_that_would_not_stand_are_told_with_how_much_it_takes(tmp_path: Path) -> None:
    for model, signs in {"a": "1" * 12 + "+" * 18 + "0" * 30, "b": "0" * 40 + "-" * 20}.items():
        samples = [
            made_sample(f"p{n}", float(sign in "1+"), score={"certain": sign in "10"})
            for n, sign in enumerate(signs)
        ]
        made_log(tmp_path / f"{model}.eval", model, samples)
    assert re.search(
        r"The difference would stay more than chance if (a tenth of|a quarter of|half of) these went against it\.",
        said(tmp_path),
    )
