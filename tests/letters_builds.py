"""A build of a small recipe with stages of the tests' own, on a scripted writer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from or_eval.dataset_builders import stages
from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.stages import stage_kinds
from servers import API_KEY, ScriptedServer

RECIPE = """\
name: letters
taxonomy: or_bench
stages:
  - stage: letters
    count: 6
    drop: [1]
  - stage: shout
  - stage: shout
    name: louder
    input: [shout, letters.unlucky]
"""


@pytest.fixture(scope="module")
def extra_stages() -> Iterator[None]:
    """Add the stages in `extra_stages/` to those that recipes may name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOPBACK_API_KEY", API_KEY)
        ours = str(Path(__file__).parent / "extra_stages")
        patch.setattr(stages, "__path__", [*stages.__path__, ours])
        stage_kinds.cache_clear()
        yield
    stage_kinds.cache_clear()


class Builder:
    """Builds one recipe in one folder, and keeps what was said."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self.out, self.server, self.said = folder / "out", server, []
        self.path = folder / "letters.yaml"
        self.path.write_text(RECIPE, "utf-8")

    def build(self, *changes: str, limit: int | None = None, **settings: object) -> Build:
        self.said = []
        role = f"writer={self.server.role_option('writer', **settings)}"
        asking = Asking(roles=(role,), config={"max_retries": 0}, display="none")
        return Build(load_recipe(self.path, changes), self.out, asking, limit, say=self.said.append)

    def prompts(self, stage: str) -> list[str]:
        [folder] = (self.out / "stages").glob(f"{stage}")
        return list(pd.read_parquet(folder / "rows.parquet")["prompt"])


def command(builder: Builder, *options: object, recipe: Path | None = None) -> list[object]:
    """Give the program and the arguments that build in a process of its own."""
    runner = Path(__file__).parent / "run_build.py"
    role = f"writer={builder.server.role_option('writer')}"
    return [
        runner, recipe or builder.path, "--out", builder.out,
        "--display", "none", "--model-role", role, *options,
    ]  # fmt: skip
