"""What the building engine costs: time a row against bare Inspect, and memory that doesn't grow.

    python benchmarks/build.py                      # 50,000 and 100,000 rows, with an instant model
    python benchmarks/build.py --rows 5000 10000    # quicker
    python benchmarks/build.py --part read          # 1,000,000 rows read and published, no model

Each part runs in a process of its own, so that peak memory is that part's. The bare arm is one
Inspect task on as many samples, which calls the same model once a sample and scores the reply.
The arms are compared by processor time, which other work on the machine changes least.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from or_eval.dataset_builders.engine.rows import RowWriter
from or_eval.schema import Label, PromptRecord, prompt_id
from timing import in_own_process, timed

RECIPE = """\
name: measured
taxonomy: or_bench
stages:
  - {stage: STORED, name: given}
  - {stage: dedup, threshold: null}
MODERATE  - {stage: publish, licence: mit}
"""
MODERATE = "  - {stage: moderate, keep: safe}\n"
STORED = '''\
from pathlib import Path
from or_eval.dataset_builders.engine.stage import Kept, Stage
from or_eval.dataset_builders.engine.rows import StoredRows

class STAGE(Stage):
    """Give the rows of the file beside this one."""

    def run(self, rows, build):
        return (Kept(row) for row in StoredRows(Path(__file__).with_name("given.parquet")))
'''


def prompts(count: int) -> Iterator[PromptRecord]:
    """Give prompts of some thirty words, a tenth of them given twice."""
    for number in range(count):
        own = number - 1 if number % 10 == 9 else number
        text = f"How do I tell my neighbour number {own} that " + "the music is too loud " * 5
        yield PromptRecord(prompt_id(text), text, Label.TOXIC, "violence", "en", "given")


def main() -> None:
    """Run the parts, and print what they found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 100_000])
    parser.add_argument("--part", choices=["model", "read"], default="model")
    parser.add_argument("--arm", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.arm:
        print(json.dumps(_arm(said.arm, said.rows[0], said.folder)))
    elif said.part == "read":
        _report("read", said.rows if said.rows != [50_000, 100_000] else [1_000_000])
    else:
        _report("build", said.rows)


def _report(arm: str, sizes: list[int]) -> None:
    print("rows     arm    seconds  cpu s    cpu ms/row  peak MB")
    for rows in sizes:
        found = {}
        for name in ("bare", arm) if arm == "build" else (arm,):
            with tempfile.TemporaryDirectory() as folder:
                given = ("--arm", name, "--rows", rows, "--folder", folder)
                found[name] = one = in_own_process(__file__, *given)
            print(
                f"{rows:<8} {name:<6} {one['seconds']:7.1f}  {one['cpu']:7.1f}  "
                f"{1000 * one['cpu'] / rows:10.2f}  {one['peak_mb']:7.0f}",
                flush=True,
            )
        if arm == "build":
            asked = found["build"]["asked"] / rows
            ratio = found["build"]["cpu"] / found["bare"]["cpu"] / asked
            print(f"{rows:<8} {ratio:.2f} x bare Inspect for each row asked ({asked:.0%} of all)")


def _arm(arm: str, rows: int, folder: Path) -> dict[str, Any]:
    if arm == "bare":
        asked, took = timed(_bare, rows, folder)
    else:
        with RowWriter(folder / "given.parquet") as writer:
            for row in prompts(rows):
                writer.append(row)
        asked, took = timed(_build, folder, arm == "build")
    return {"asked": asked, **took._asdict()}


def _build(folder: Path, moderate: bool) -> int:
    from or_eval.dataset_builders.engine.models import Asking
    from or_eval.dataset_builders.engine.recipe import load_recipe
    from or_eval.dataset_builders.engine.run import Build

    (folder / "stored.py").write_text(STORED)
    text = RECIPE.replace("STORED", str(folder / "stored.py"))
    (folder / "measured.yaml").write_text(text.replace("MODERATE", MODERATE if moderate else ""))
    _register()
    asking = Asking(roles=("moderator=instant/model",), display="none")
    build = Build(
        load_recipe(folder / "measured.yaml"), folder / "out", asking, say=lambda line: None
    )
    facts = {fact.name: fact for fact in build.run()}
    return facts["moderate"].rows_in if moderate else 0


def _bare(rows: int, folder: Path) -> int:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate

    _register()
    shard = 10_000
    for first in range(0, rows, shard):
        samples = [
            Sample(input=row.prompt, target="none", id=number)
            for number, row in enumerate(prompts(min(shard, rows - first)))
        ]
        task = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes())
        eval(
            task,
            model="instant/model",
            log_dir=str(folder / "logs"),
            display="none",
            log_header_only=True,
            log_buffer=shard // 20,
            ctl_server=False,
        )
    return rows


def _register() -> None:
    from inspect_ai.model import ModelAPI, ModelOutput, ModelUsage, modelapi

    @modelapi("instant")
    class Instant(ModelAPI):
        """Says at once that a prompt falls into no category."""

        async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
            key = re.search(r"Key of this case: (\w+)", input[-1].text)
            said = {"why": "So.", "category": "none", "key": key[1] if key else ""}
            output = ModelOutput.from_content(self.model_name, json.dumps(said))
            output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
            return output


if __name__ == "__main__":
    main()
