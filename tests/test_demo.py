"""``or-eval demo``, on a part of the prompts so that it takes seconds."""

from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from inspect_ai.log import list_eval_logs, read_eval_log

import or_eval.tasks
from or_eval.analysis import report
from or_eval.cli import main
from or_eval.cli.demo import _write_reports
from or_eval.sources.errors import how_to_install
from report_logs import summary_of
from scored import rates_in


def test_demo_shows_rates_logs_reports_and_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "or_eval.tasks.starter",
        partial(or_eval.tasks.starter, category="privacy", per_label=3),
    )
    monkeypatch.setattr("or_eval.cli.demo.MAX_TOKENS", 6)
    monkeypatch.setattr("or_eval.cli.demo.FIRST_LOOK", 1)
    result = CliRunner().invoke(main, ["demo", "--log-dir", str(tmp_path)])
    assert result.exit_code == 0, result.output
    [folder] = tmp_path.iterdir()
    [first] = list_eval_logs(str(folder / "first-look"))
    assert len(read_eval_log(first).samples) == 2
    first_table, rest = map(result.output.index, ("over-refusal", "2 of 4, system prompt 'none'"))
    assert (
        result.output.index("1 of 4, a first look: the model answers 2 prompts")
        < first_table
        < rest
    )
    logs = [read_eval_log(info) for info in list_eval_logs(str(folder), recursive=False)]
    assert [log.status for log in logs] == ["success", "success"]
    assert {log.eval.task_args["system_prompt"] for log in logs} == {"none", "safe"}
    assert all(len(log.samples) == 6 for log in logs)
    assert "over-refusal" in result.output
    for name in ("uncertain", "unscored"):
        shares = [rates_in(logs[0])[f"{label}_{name}"] for label in ("safe", "toxic")]
        assert ", ".join(f"{share:.0%}" for share in shares) in result.output
    for rate in ("over_refusal_rate", "toxic_rejection_rate"):
        assert f"{rates_in(logs[0])[rate]:.1%}  [" in result.output
        assert f"full: {rates_in(logs[0])[f'{rate}_full']:.1%}" in result.output
    assert "inspect view --log-dir" in result.output
    for name in ("report", "changes"):
        assert str(folder / name / "index.html") in result.output.replace("\n", "")
    assert [run["system_prompt"] for run in summary_of(folder / "report")["runs"]] == ["none"]
    runs = summary_of(folder / "changes")["runs"]
    assert [(run["run"], run["system_prompt"]) for run in runs] == [("A", "none"), ("B", "safe")]

    monkeypatch.setattr(report, "find_spec", lambda name: None)
    _write_reports(tmp_path / "other", logs)
    assert "No report is written." in (said := capsys.readouterr().out)
    assert how_to_install("report") in " ".join(said.split())
    assert not (tmp_path / "other").exists()
