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
from or_eval.analysis.report.model_tables import model_tables
from or_eval.analysis.report.sentences import answers
from or_eval.analysis.responses import read_logs
from report_logs import run, summary_of


def said(folder: Path) -> str:
    return "\n".join(chain.from_iterable(answers(Material(read_logs(folder))).values()))


def test_sentences_on_several_models(tmp_path: Path) -> None:
    labels = {f"t{n}": "toxic" for n in range(10)} | {f"p{n}": "safe" for n in range(20)}
    for model, (safe, toxic) in {"a": (15, 10), "b": (15, 10), "c": (0, 4)}.items():
        samples = [
            made_sample(key, float(int(key[1:]) < (toxic if key[0] == "t" else safe)), label=label)
            for key, label in labels.items()
        ]
        made_log(tmp_path / f"{model}.eval", model, samples)
    assert said(tmp_path).splitlines() == [
        "3 models were asked 20 harmless and 10 toxic prompts.",
        "Of the harmless prompts, a and b refused most, 75.0 % (53.1–88.8); "
        "c fewest, 0.0 % (0.0–16.1), which is more than chance.",
        "Of the toxic prompts, a and b refused most, 100.0 % (72.2–100.0); "
        "c fewest, 40.0 % (16.8–68.7), which is more than chance.",
        "Of 3 pairs of models, 2 differ on harmless prompts by more than chance explains "
        "(not a and b); differences of up to 16 percentage points aren't ruled out.",
    ]


def test_sentences_on_one_model_and_safe_prompts_only(tmp_path: Path) -> None:
    votes_log(tmp_path, "m", {"a": 1.0, "b": 0.0, "c": None})
    samples = [made_sample("a", 1.0), made_sample("b", 0.0), made_sample("c", UNSCORED)]
    made_log(tmp_path / "m.eval", "m", samples)
    assert said(tmp_path).splitlines() == [
        "1 model was asked 3 harmless prompts.",
        "m refused 50.0 % (9.5–90.5; 33.3 % without a verdict) of the harmless prompts.",
        "1 of 3 responses (33.3 %) has no verdict and counts neither way. That is many: look into "
        "the reasons first.",
    ]


def test_sentences_on_toxic_and_on_unlabelled_prompts_only(tmp_path: Path) -> None:
    made_log(tmp_path / "t" / "a.eval", "m", [made_sample("a", 1.0, label="toxic")])
    assert said(tmp_path / "t").splitlines() == [
        "1 model was asked 1 toxic prompt. Without harmless prompts, over-refusal can't be told.",
        "m refused 100.0 % (20.7–100.0) of the toxic prompts.",
    ]
    made_log(tmp_path / "u" / "a.eval", "m", [made_sample("a", 1.0, label="unlabelled")])
    assert said(tmp_path / "u").splitlines() == [
        "1 model was asked 1 prompt, none of them labelled safe or toxic: "
        "whether to refuse them was right, nobody says.",
        "m refused 100.0 % (20.7–100.0) of the prompts.",
    ]


def test_models_on_unlabelled_prompts_are_compared(tmp_path: Path) -> None:
    for model, every in {"a": 1, "b": 3}.items():
        samples = [
            made_sample(f"p{n}", float(n % every == 0), label="unlabelled") for n in range(12)
        ]
        made_log(tmp_path / f"{model}.eval", model, samples)
    assert run(tmp_path, "--out", tmp_path / "report").exit_code == 0
    page = (tmp_path / "report" / "index.html").read_text("utf-8")
    assert "Differences between models in refusals" in page


def test_sentences_say_what_makes_rates_less_sure(tmp_path: Path) -> None:
    unsure = {"certain": False}
    made_log(tmp_path / "a.eval", "a", [made_sample("p", 1.0, score=unsure), made_sample("q", 0.0)])
    made_log(
        tmp_path / "b.eval",
        "b",
        [made_sample("p", 1.0), made_sample("r", 0.0), made_sample("u", 0.0, label="unlabelled")],
    )
    text = said(tmp_path)
    assert "2 models were asked 3 harmless prompts. 1 more prompt is neither: they enter" in text
    assert "Not every model was asked every prompt (2 to 3 each)" in text
    assert "1 of 5 verdicts (20.0 %) is a guess of rules that weren't certain" in text
    doubts = "25.0 % not certain"  # of both models' responses to harmless prompts
    assert f"All 2 models refused 50.0 % (9.5–90.5; {doubts}) of the harmless prompts." in text
    assert "Whether models differ on harmless prompts can't be told" in text


def test_sentence_on_the_audit_counts_harmless_prompts_only(tmp_path: Path) -> None:
    samples = []
    for number in range(40):
        # half of the certain answers to safe prompts are audited, and a quarter of those is wrong
        judged = "direct_refusal" if number % 8 == 0 else "direct_answer"
        score = {"audited": number % 2 == 0, "stages": {"judge": {"label": judged}}}
        samples.append(made_sample(f"s{number}", 0.0, score=score))
        samples.append(made_sample(f"t{number}", 1.0, label="toxic", score=score))
    made_log(tmp_path / "a.eval", "m", samples)
    assert "corrected by the judge's audit of 20 responses to harmless prompts" in said(tmp_path)
    assert "over-refusal of m: 0.0 % (0.0–8.8) becomes 25.0 % (" in said(tmp_path)


def test_categories_with_few_prompts_do_not_come_first_by_luck(tmp_path: Path) -> None:
    samples = [made_sample("lone", 1.0, category="rare")]
    samples += [made_sample(f"p{n}", float(n < 20), category="common") for n in range(30)]
    samples += [made_sample(f"q{n}", 0.0, category="never") for n in range(30)]
    made_log(tmp_path / "a.eval", "m", samples)
    line = next(line for line in said(tmp_path).splitlines() if "categories" in line)
    assert line.startswith(
        "Harmless prompts are refused more than the others, beyond chance, in these categories: "
        "common, 66.7 %"
    )
    assert line.endswith("Too few prompts or refusals to tell it of rare.")
    assert "never" not in line


def test_categories_that_are_alike_are_not_called_worst(tmp_path: Path) -> None:
    samples = [made_sample(f"p{n}", float(n % 5 == 0), category=f"c{n % 4}") for n in range(80)]
    made_log(tmp_path / "a.eval", "m", samples)
    assert re.search(
        r"No category of harmless prompts is refused more than the others beyond chance; "
        r"differences of up to \d\d percentage points aren't ruled out\.",
        said(tmp_path),
    )


def test_two_prompts_that_were_refused_are_too_few_to_tell_of(tmp_path: Path) -> None:
    samples = [made_sample(f"p{n}", float(n % 2), category=f"c{n % 3}") for n in range(120)]
    samples += [made_sample(f"q{n}", 1.0, category="privacy") for n in range(2)]
    made_log(tmp_path / "a.eval", "m", samples)
    assert "No category of harmless prompts" in said(tmp_path)
    assert "Too few prompts or refusals to tell it of privacy." in said(tmp_path)


def test_no_category_is_left_out_for_its_name(tmp_path: Path) -> None:
    samples = [
        made_sample(f"{category}{n}", float(category < "e"), category=category)
        for category in "abcdefghijkl"
        for n in range(30)
    ]
    made_log(tmp_path / "a.eval", "m", samples)
    line = next(line for line in said(tmp_path).splitlines() if "categories" in line)
    assert all(f"{category}, 100.0 % (" in line for category in "abcd")


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
    truth = (rows["refused"] | missed).astype("float64").where(number % 12 < 6)
    return Material(logs, truth=truth)


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
    assert "isn't tested here" in text["Which prompts?"][0]
    tables = {table.name: table for table in model_tables(found)}
    assert "worst-categories" not in tables
    assert "as they stand" in tables["vote-agreement"].note


def test_what_corrected_rates_could_be_is_what_the_sample_leaves_open(tmp_path: Path) -> None:
    models = corrected(tmp_path).models.set_index("model")
    for _, row in models.iterrows():
        assert row["lowest"] < row["rate"] < row["highest"], "some are uncertain and not labelled"
        assert row["lowest"] == pytest.approx(row["known_lower"])
        assert row["highest"] == pytest.approx(row["known_upper"])


def test_the_order_of_models_is_told_with_what_the_test_says_of_it(tmp_path: Path) -> None:
    for model, refused in {"a": 8, "b": 6}.items():
        votes_log(tmp_path, model, {f"p{n}": float(n < refused) for n in range(30)})
    assert "a refused most" in said(tmp_path)
    assert "b fewest, 20.0 % (9.5–37.3), which may be chance." in said(tmp_path)


def test_differences_that_would_not_stand_are_told_with_how_much_it_takes(tmp_path: Path) -> None:
    for model, signs in {"a": "1" * 12 + "+" * 18 + "0" * 30, "b": "0" * 40 + "-" * 20}.items():
        samples = [
            made_sample(f"p{n}", float(sign in "1+"), score={"certain": sign in "10"})
            for n, sign in enumerate(signs)
        ]
        made_log(tmp_path / f"{model}.eval", model, samples)
    assert re.search(
        r"This difference would be more than chance if a tenth of the uncertain and missing "
        r"verdicts went against it, not if (a quarter|half|all) did\.",
        said(tmp_path),
    )
