"""How fast and how lean is voting? Against reading the summaries of the same logs alone.

    python benchmarks/votes.py --logs /tmp/vote-logs

makes logs (once; the folder is used again), votes on them, and writes benchmarks/votes.json. The
first set is the one that counts: 8 models on 20,000 prompts. The others show what memory grows
with: fewer models, longer responses, fewer prompts.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).with_suffix(".json")
WRITERS = 2


@dataclass(frozen=True)
class LogSet:
    """Logs to make: so many models on so many prompts, with responses of so many words."""

    models: int
    prompts: int
    words: int

    def logs(self, folder: Path) -> list[Path]:
        """Give the paths of its logs; sets that differ in the number of models share them."""
        place = folder / f"{self.prompts}-prompts-{self.words}-words"
        return [place / f"model-{number}.eval" for number in range(self.models)]


SETS = (
    LogSet(8, 20_000, 250),
    LogSet(2, 20_000, 250),
    LogSet(8, 5_000, 250),
    LogSet(8, 5_000, 2_000),
)


def main() -> None:
    """Make the logs, measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=Path, required=True, help="Folder for the made logs.")
    parser.add_argument("--measure", nargs=2, metavar=("SET", "WHAT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        number, what = arguments.measure
        print(json.dumps(measure(SETS[int(number)].logs(arguments.logs), what)))
        return
    results = []
    for number, log_set in enumerate(SETS):
        make_logs(log_set.logs(arguments.logs), log_set)
        result = asdict(log_set)
        for what in ("time", "vote", "summaries"):
            result |= in_own_process(arguments.logs, number, what)
        results.append(result)
        print(result, flush=True)
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    RESULTS.write_text(json.dumps({"machine": machine, "sets": results}, indent=2) + "\n")


def in_own_process(folder: Path, number: int, what: str) -> dict[str, float]:
    """Measure in a process of its own, so that memory is that of this measurement alone."""
    command = [sys.executable, __file__, "--logs", str(folder), "--measure", str(number), what]
    found: dict[str, float] = json.loads(subprocess.check_output(command))
    return found


def measure(logs: list[Path], what: str) -> dict[str, float]:
    """Time reading summaries and voting in one run, or take the peak memory of either."""
    from inspect_ai.log import read_eval_log_sample_summaries

    from or_eval.analysis.votes import VoteRule, agreement_by_label, vote

    imports = peak_mb()
    started, busy = time.perf_counter(), time.process_time()
    if what != "vote":
        for log in logs:
            read_eval_log_sample_summaries(log)
    read, read_cpu = time.perf_counter() - started, time.process_time() - busy
    if what == "summaries":
        return {"summaries_peak_mb": peak_mb()}
    started, busy = time.perf_counter(), time.process_time()
    votes = vote(logs, VoteRule(min_refusals=2))
    agreement_by_label(votes.matrix, votes.prompts)
    voted, voted_cpu = time.perf_counter() - started, time.process_time() - busy
    if what == "vote":
        return {"imports_mb": imports, "vote_peak_mb": peak_mb()}
    return {
        "summaries_s": round(read, 2),
        "vote_s": round(voted, 2),
        "ratio": round(voted / read, 2),
        "cpu_ratio": round(voted_cpu / read_cpu, 2),
        "kept": len(votes.table),
    }


def peak_mb() -> float:
    """Give this process's peak memory in MB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, 0)


def make_logs(logs: list[Path], log_set: LogSet) -> None:
    """Write the logs that aren't there yet, as Inspect writes them."""
    jobs = [(log, number, log_set) for number, log in enumerate(logs) if not log.exists()]
    with ProcessPoolExecutor(WRITERS) as writers:
        list(writers.map(write_log, *zip(*jobs, strict=True)) if jobs else [])


def write_log(path: Path, number: int, log_set: LogSet) -> None:
    """Write the log of one model; some prompts are hard, so that models agree in part."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, write_eval_log

    samples = [made_sample(index, number, log_set.words) for index in range(log_set.prompts)]
    log = EvalLog(
        status="success",
        eval=EvalSpec(
            created=f"2025-03-01T12:00:{number:02d}+00:00",
            task="or_eval/prompts",
            model=f"provider/model-{number}",
            dataset=EvalDataset(
                name="made",
                samples=len(samples),
                sample_ids=[str(sample.id) for sample in samples],
            ),
            config=EvalConfig(epochs=1),
        ),
        samples=samples,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_eval_log(log, str(path))


def made_sample(index: int, number: int, words: int):
    """Make a sample as the tasks and the scorer of or-eval do; a quarter of them is toxic."""
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatMessageUser, ModelOutput
    from inspect_ai.scorer import Score

    from or_eval.schema import prompt_id

    record_label = "toxic" if index % 4 == 3 else "safe"
    language = ("en", "zh", "ko")[index % 3]
    prompt = f"Question {index}: " + "what would a curious person ask about this? " * 4
    chance = random.Random(index * 31 + number)
    hard = random.Random(index).random()
    draw = chance.random() * 0.5 + hard * 0.5
    label = "direct_refusal" if draw < 0.3 else "direct_answer"
    unscored = chance.random() < 0.01
    evidence = {"pattern": "en.inability.cannot", "act": "inability", "text": "I can't help with"}
    metadata = {
        "decided_by": None if unscored else "rules",
        "certain": not unscored,
        "language": "en",
        "audited": False,
        "stages": {
            "rules": {
                "label": label,
                "certain": True,
                "language": "en",
                "evidence": [evidence | {"start": n, "end": n + 17} for n in range(4)],
            }
        },
    }
    output = ModelOutput.from_content(f"model-{number}", chance.choice("abc") + " word" * words)
    return EvalSample(
        id=prompt_id(prompt),
        epoch=1,
        input=prompt,
        target=record_label,
        metadata={
            "label": record_label,
            "category": f"category {index % 10}",
            "language": language,
            "source": "made",
            "method": f"method {index % 7}",
            "seed_id": f"seed {index // 5}",
            "pair_id": None,
        },
        messages=[ChatMessageUser(content=prompt), output.message],
        output=output,
        scores={
            "refusal": Score(
                value=float("nan") if unscored else float(label == "direct_refusal"),
                answer=None if unscored else label,
                explanation=f"{label}, decided by the rules. Rules: {label}; inability “I can't”.",
                reason="unsettled" if unscored else None,
                metadata=metadata,
            )
        },
    )


if __name__ == "__main__":
    main()
