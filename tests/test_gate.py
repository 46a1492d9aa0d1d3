"""``or-eval gate``: what lets a model through, what doesn't, and what can't tell."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from benchmark_modules import benchmark
from made_logs import UNSCORED, made_log, made_sample
from or_eval.cli import main

simulated = benchmark("gate")


def log(
    folder: Path,
    safe: tuple[int, int],
    toxic: tuple[int, int] = (0, 0),
    model: str = "m",
    **more: object,
) -> str:
    """Write a run in which so many of so many safe prompts, and of toxic ones, are refused."""
    samples = [
        made_sample(f"{label}{n}", float(n < refused), label=label, **more)
        for label, (refused, asked) in (("safe", safe), ("toxic", toxic))
        for n in range(asked)
    ]
    made_log(folder / f"{len(list(folder.glob('*')))}.eval", model, samples)
    return str(folder)


def gate(*arguments: object, **environment: str) -> Result:
    given = {"GITHUB_ACTIONS": "", **environment}
    return CliRunner(env=given).invoke(main, ["gate", *map(str, arguments)])


def outcomes(result: Result) -> list[str]:
    return [line[:10].strip() for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("safe", "code", "outcome"),
    [((6, 200), 0, "PASS"), ((30, 200), 1, "FAIL"), ((0, 20), 3, "CAN'T TELL")],
)
def test_a_rate_is_held_against_its_limit(
    tmp_path: Path, safe: tuple[int, int], code: int, outcome: str
) -> None:
    result = gate(log(tmp_path, safe), "--max-over-refusal", 0.05)
    assert (result.exit_code, outcomes(result)) == (code, [outcome]), result.output


def test_strictly_it_is_the_rate_that_counts(tmp_path: Path) -> None:
    place = log(tmp_path, (12, 200))
    limits = ("--max-over-refusal", 0.05, "--margin", 0.1)
    assert gate(place, *limits).exit_code == 0
    assert gate(place, *limits, "--strictly").exit_code == 1


def test_a_margin_of_nothing_asks_for_proof_of_the_limit_itself(tmp_path: Path) -> None:
    place = log(tmp_path, (6, 200))
    assert gate(place, "--max-over-refusal", 0.05, "--margin", 0).exit_code == 3
    assert gate(place, "--max-over-refusal", 0.07, "--margin", 0).exit_code == 0


def test_families_count_not_prompts(tmp_path: Path) -> None:
    refused = [made_sample(f"p{n}", float(n < 40), seed_id=f"s{n // 40}") for n in range(200)]
    made_log(tmp_path / "a.eval", "m", refused)
    result = gate(tmp_path, "--max-over-refusal", 0.05)
    assert outcomes(result) == ["CAN'T TELL"]
    assert "5 families" in result.stdout


def test_it_says_how_many_families_could_tell(tmp_path: Path) -> None:
    result = gate(log(tmp_path / "few", (0, 20)), "--max-over-refusal", 0.05)
    assert "About 60 families could tell" in result.stdout
    assert gate(log(tmp_path / "more", (0, 60)), "--max-over-refusal", 0.05).exit_code == 0


def test_a_rise_fails_though_the_rate_may_be_so_high(tmp_path: Path) -> None:
    before, after = log(tmp_path / "a", (6, 200)), log(tmp_path / "b", (26, 200))
    limits = ("--max-rise", 0.02, "--max-over-refusal", 0.2)
    result = gate(after, "--baseline", before, *limits)
    assert (result.exit_code, outcomes(result)) == (1, ["PASS", "FAIL"]), result.output
    assert gate(before, "--baseline", before, *limits).exit_code == 0


def test_what_refuses_less_of_everything_does_not_pass(tmp_path: Path) -> None:
    before = log(tmp_path / "a", (20, 200), (190, 200))
    after = log(tmp_path / "b", (0, 200), (0, 200))
    result = gate(after, "--baseline", before, "--max-rise", 0.02)
    assert (result.exit_code, outcomes(result)) == (1, ["PASS", "FAIL"]), result.output
    alone = gate(after, "--baseline", before, "--max-rise", 0.02, "--max-fall", 1)
    assert alone.exit_code == 0
    result = gate(after, "--max-over-refusal", 0.05)
    assert "a model that answers everything passes" in result.stderr


def test_full_refusals_alone_count_by_the_full_counting(tmp_path: Path) -> None:
    samples = [made_sample(f"p{n}", 0.0) for n in range(160)]
    samples += [made_sample(f"q{n}", "partial_refusal") for n in range(40)]
    made_log(tmp_path / "a.eval", "m", samples)
    assert gate(tmp_path, "--max-over-refusal", 0.05).exit_code == 1
    assert gate(tmp_path, "--max-over-refusal", 0.05, "--counting", "full").exit_code == 0


def test_responses_without_a_verdict_may_hide_refusals(tmp_path: Path) -> None:
    samples = [made_sample(f"p{n}", UNSCORED if n < 30 else 0.0) for n in range(200)]
    made_log(tmp_path / "a.eval", "m", samples)
    result = gate(tmp_path, "--max-over-refusal", 0.05)
    assert outcomes(result) == ["CAN'T TELL"]
    assert "15.0 % of the responses have no verdict" in result.stdout


def test_a_model_that_the_baseline_lacks_is_not_let_through(tmp_path: Path) -> None:
    before = log(tmp_path / "a", (0, 200), model="x/one")
    log(tmp_path / "b", (0, 200), model="x/one")
    after = log(tmp_path / "b", (0, 200), model="x/two")
    result = gate(after, "--baseline", before, "--max-rise", 0.02)
    assert (result.exit_code, outcomes(result)) == (3, ["PASS", "CAN'T TELL"]), result.output
    assert "x/two" in result.stdout


def test_limits_on_prompts_that_are_not_there_are_not_kept(tmp_path: Path) -> None:
    result = gate(log(tmp_path, (0, 200)), "--max-over-refusal", 0.05, "--min-toxic-rejection", 0.9)
    assert (result.exit_code, outcomes(result)) == (3, ["PASS", "CAN'T TELL"])


def test_other_programs_read_what_came_of_it(tmp_path: Path) -> None:
    hostile = "m/x\n::error::owned <b>\x07"
    before, after = (
        log(tmp_path / name, safe, (150, 150), hostile)
        for name, safe in (("a", (0, 200)), ("b", (40, 200)))
    )
    file = tmp_path / "gate.xml"
    arguments = (after, "--baseline", before, "--max-rise", 0.02, "--junit", file)
    result = gate(*arguments, GITHUB_ACTIONS="true")
    lines = result.stdout.splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("::error title=FAIL%3A rise of over-refusal of m/x ")
    assert lines[3].startswith("::notice title=PASS%3A fall")
    assert not any(line.startswith("::error::") for line in lines)
    suite = ElementTree.parse(file).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    [failure] = suite.iter("failure")
    assert "+20.0" in str(failure.get("message"))
    assert outcomes(gate(*arguments)) == ["FAIL", "PASS"]


@pytest.mark.parametrize(
    "arguments",
    [[], ["--max-rise", "0.02"], ["--baseline", "x"], ["--max-over-refusal", "5"]],
)
def test_options_that_make_no_gate_are_a_mistake_of_use(
    tmp_path: Path, arguments: list[str]
) -> None:
    assert gate(log(tmp_path, (0, 20)), *arguments).exit_code == 2


@pytest.mark.parametrize("rate", [0.01, 0.95])
def test_an_equal_run_is_seldom_failed_and_five_points_mostly(rate: float) -> None:
    """Families of eight, and unequal ones; ``benchmarks/gate.py`` has more runs and worlds."""
    big, unequal = simulated.WORLDS[3], simulated.WORLDS[4]
    rise, of_rate = simulated.outcomes(big, rate, "same", 15)
    assert rise["PASS"] >= 14
    assert of_rate["FAIL"] <= 2
    assert simulated.outcomes(unequal, rate, "other", 15)[0]["FAIL"] <= 2
    assert simulated.outcomes(simulated.WORLDS[0], rate, "same", 5)[0]["PASS"] == 0
    if rate < 0.9:
        assert simulated.outcomes(big, rate, "worse", 15)[0]["FAIL"] >= 12
