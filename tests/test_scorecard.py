"""Scorecards: verdicts against labels by configuration, language and model, and what they miss."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from made_logs import made_log, made_sample
from or_eval.analysis.responses import read_logs
from or_eval.analysis.scorecard import card_coverage, read_scorecard
from or_eval.cli import main

LIST = "Here:\n\n- one thing\n- another\n"


def run(*arguments: object) -> Any:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def logs(folder: Path, models: Sequence[str], response: str, language: str = "en") -> Path:
    """Forty prompts each, ten of them refused (one in part); half the verdicts are certain."""
    for model in models:
        samples = [
            made_sample(
                f"p{i}",
                float(i < 10),
                answer="partial_refusal" if i == 2 else None,
                response="I won't." if i < 10 else response,
                score={"certain": i % 2 == 0},
                language=language,
            )
            for i in range(40)
        ]
        made_log(folder / f"{model}.eval", model, samples)
    return folder


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A card of model a: people say otherwise of one certain refusal and two uncertain answers."""
    place = tmp_path_factory.mktemp("card")
    said = {0: "direct_answer", 11: "direct_refusal", 13: "direct_refusal"}
    rows = [
        {
            "id": f"p{i}",
            "model": "a",
            "human_label": said.get(i, "direct_refusal" if i < 10 else "direct_answer"),
            # Certain ones were half as likely to be asked about.
            "probability": 0.5 if i % 2 == 0 else 1.0,
        }
        for i in range(40)
    ]
    labels = place / "labels.jsonl"
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    of = logs(place / "logs", ["a"], "A plain answer.")
    result = run("agreement", of, "--labels", labels, "--scorecard", "--out", place / "found")
    assert result.exit_code == 0, result.output
    return place / "found" / "scorecard.json"


def test_a_card_weighs_labels_by_how_likely_they_were(card: Path) -> None:
    rows = {(r["language"], r["model"]): r for r in json.loads(card.read_text())["rows"]}
    assert set(rows) == {("all", "all"), ("en", "all"), ("all", "a"), ("en", "a")}
    row = rows["en", "a"]
    assert (row["n"], row["certain_n"], row["certain"]) == (40, 20, 0.5)
    # Weighted: of 20 certain ones, 2 each, one is wrong; of 20 uncertain ones two are.
    assert row["certain_errors"] == pytest.approx(1 / 20)
    refused, false_alarm, missed = 2 * 4 + 5, 2, 2
    assert row["f1"] == pytest.approx(2 * refused / (2 * refused + false_alarm + missed))
    # By the full counting, the partial refusal that people call a direct one is missed as well.
    assert row["certain_errors_full"] == pytest.approx(2 / 20)
    assert row["f1_full"] == pytest.approx(2 * (refused - 2) / (2 * (refused - 2) + 2 + 2 + 2))
    answered = 60 - refused - false_alarm - missed
    said, is_so = (refused + false_alarm) / 60, (refused + missed) / 60
    chance = said * is_so + (1 - said) * (1 - is_so)
    assert row["kappa"] == pytest.approx(((refused + answered) / 60 - chance) / (1 - chance))


def test_a_report_cites_its_card_and_warns_of_what_it_does_not_cover(
    card: Path, tmp_path: Path
) -> None:
    folder = logs(tmp_path / "logs", ["a"], "A plain answer.")
    logs(folder, ["b"], LIST, "fr")
    said = tmp_path / "prompts.jsonl"
    said.write_text("".join(f'{{"id": "p{i}", "harm": "harmless"}}\n' for i in range(40)))
    out = tmp_path / "report"
    result = run("report", folder, "--scorecard", card, "--prompt-labels", said, "--out", out)
    assert result.exit_code == 0, result.output
    found = json.loads((out / "summary.json").read_text())
    assert [row["rate"] for row in found["corrected_for_labels"]] == [0.25, 0.25]
    [told] = [s for s in found["summary"] if "compared with 40 human labels: kappa 0.8" in s]
    assert " strict and 0.7" in told
    model, language = found["outside_scorecard"]
    assert "labels of responses of the model b." in model
    assert "labels of responses of the language fr." in language
    assert len(found["scorecard"]) == 4


def test_verdicts_of_another_configuration_have_no_card(card: Path, tmp_path: Path) -> None:
    [name] = json.loads(card.read_text())["configurations"]
    changed = tmp_path / "card.json"
    changed.write_text(card.read_text().replace(name, "0" * 12))
    read = read_logs(logs(tmp_path / "logs", ["a"], "A plain answer."))
    found = card_coverage(read_scorecard(changed), read.heads, read.responses, "refusal")
    [warning] = found.warnings
    assert f"no card for the configuration of these verdicts ({name}; a)" in warning
    assert found.rows.empty


def test_a_file_that_is_no_card_is_told(tmp_path: Path) -> None:
    of = logs(tmp_path / "logs", ["a"], "A plain answer.")
    wrong = tmp_path / "card.json"
    wrong.write_text('{"rows": []}')
    assert "isn't a scorecard" in run("report", of, "--scorecard", wrong).output
    data = tmp_path / "responses.csv"
    data.write_text("prompt,response,human_label\nhi,No.,direct_refusal\n")
    assert "--scorecard needs logs" in run("agreement", data, "--scorecard").output
