"""Real responses with people's labels: logs, rates and votes against what pandas reads directly."""

from pathlib import Path

import pandas as pd
import pytest
from inspect_ai import score
from inspect_ai.log import write_eval_log
from inspect_ai.scorer import precomputed_scores

from commands import run_inspect
from or_eval.analysis.human_labels import read_labels
from or_eval.analysis.logs import read_heads
from or_eval.analysis.responses import read_logs
from or_eval.cli.agreement import agreement
from or_eval.schema import prompt_id
from or_eval.sources import DataError
from replayed import logs_of, run_replay

CLASSES = {
    "1_full_compliance": "direct_answer",
    "2_full_refusal": "direct_refusal",
    "3_partial_refusal": "partial_refusal",
}


@pytest.fixture(scope="module")
def labelled(shared_data: Path) -> pd.DataFrame:
    """Give the responses of five models to XSTest with people's labels of them."""
    table = pd.read_json(shared_data / "labels" / "xstest_human.jsonl.gz", lines=True)
    # An eighth of the prompts of each type, to be quick.
    of_type = table.groupby("type")["prompt"].rank("dense")
    table = table[of_type % 8 == 0].reset_index(drop=True)
    table["id"] = table["prompt"].str.strip().map(prompt_id)
    table["answer"] = table["human_label"].map(CLASSES)
    table["value"] = (table["answer"] != "direct_answer").astype(float)
    table["label"] = table["type"].str.startswith("contrast_").map({True: "toxic", False: "safe"})
    table["category"] = table["type"]
    return table


@pytest.fixture(scope="module")
def human_logs(labelled: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replay the five models' responses into logs that carry the labels as a score."""
    folder = tmp_path_factory.mktemp("human")
    columns = ["id", "model", "prompt", "response", "label", "category"]
    labelled[columns].to_json(folder / "responses.jsonl", orient="records", lines=True)
    run_replay(folder / "responses.jsonl", "--log-dir", folder / "logs", "--no-score")
    for model, log in logs_of(folder / "logs").items():
        rows, scores = labelled[labelled["model"] == model], folder / f"{model}.scores.jsonl"
        rows[["id", "value", "answer"]].to_json(scores, orient="records", lines=True)
        write_eval_log(score(log, precomputed_scores(str(scores)), display="none"))
    return folder / "logs"


def test_a_column_of_labels_is_found_however_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    path.write_text("Prompt,Human Label\np,direct_refusal\n", "utf-8")
    assert read_labels(path).frame.to_dict("list") == {"prompt": ["p"], "human": ["direct_refusal"]}


def test_inspect_score_puts_labels_into_a_log_beside_the_verdicts(
    human_logs: Path, labelled: pd.DataFrame, tmp_path: Path
) -> None:
    """The command of docs/agreement.md, on a log that already has a score."""
    [log] = [head.location for head in read_heads(human_logs) if head.model == "gpt4"]
    rows = labelled[labelled["model"] == "gpt4"]
    rows[["id", "value", "answer"]].to_json(tmp_path / "s.jsonl", orient="records", lines=True)
    run_inspect(
        *("score", log, "--scorer", "precomputed_scores", "-S", "scores=s.jsonl"),
        *("--action", "append", "--output-file", "both.eval"),
        cwd=tmp_path,
    )
    logs = read_logs(tmp_path / "both.eval", scorer="precomputed_scores1")
    assert logs.notes == ["score used: precomputed_scores1; also in the logs: precomputed_scores"]
    assert logs.responses["refused"].astype(float).sum() == rows["value"].sum()


def test_labels_agree_with_themselves(
    human_logs: Path, labelled: pd.DataFrame, shared_data: Path, tmp_path: Path
) -> None:
    from click.testing import CliRunner

    words = [word for pair in CLASSES.items() for word in ("--map", "=".join(pair))]
    labels = str(shared_data / "labels" / "xstest_human.jsonl.gz")
    out = tmp_path / "out"
    done = CliRunner().invoke(
        agreement,
        [
            *(str(human_logs), "--labels", labels, "--scorer", "precomputed_scores"),
            *("--annotator", "annotation_1", "--annotator", "annotation_2"),
            *("--label-column", "human_label", *words, "--out", str(out)),
        ],
        catch_exceptions=False,
    )
    assert (
        f"{len(labelled)} responses with a label, joined by prompt, model; 0 responses without"
        in done.output
    )
    groups = pd.read_csv(out / "groups.csv")
    assert (groups.loc[groups["by"] == "model", "kappa"] == 1).all()
    raters = pd.read_csv(out / "raters.csv").set_index(["measure", "on"])
    two = raters.loc[("Cohen's kappa", "classes")]
    one, other = labelled["annotation_1"], labelled["annotation_2"]
    chance = (one.value_counts(normalize=True) * other.value_counts(normalize=True)).sum()
    kappa = ((one == other).mean() - chance) / (1 - chance)
    assert two["value"] == pytest.approx(kappa)
    # The README of the data gives 0.937 for the two annotators, of all responses.
    assert kappa == pytest.approx(0.937, abs=0.05)
    assert (out / "disagreements.jsonl").read_text() == ""


def test_labels_are_found_in_the_folder_they_were_imported_into(tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").write_text('{"prompt": "p", "human_label": "refused"}\n', "utf-8")
    (tmp_path / "sample.jsonl").write_text('{"prompt": "p"}\n', "utf-8")
    assert read_labels(tmp_path).frame["human"].tolist() == ["refused"]
    (tmp_path / "labels.jsonl").rename(tmp_path / "history.jsonl")
    with pytest.raises(
        DataError, match=r"give one of the files in it: history\.jsonl, sample\.jsonl"
    ):
        read_labels(tmp_path)
