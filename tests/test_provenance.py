"""Who refused, in logs that hold less of what an API said."""

from __future__ import annotations

from pathlib import Path

import pytest
from inspect_ai import Task, eval, score
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.solver import generate

from apis import (
    gemini_reply,
    google,
)
from made_logs import votes_log
from or_eval.analysis.responses import read_logs
from or_eval.scorers import refusal
from scored import scores_of
from servers import API_KEY, ScriptedServer


def test_unexplained_block_is_told_by_the_raw_call_if_the_log_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", API_KEY)  # scoring again makes the model again

    def run(**options: object) -> EvalLog:
        with ScriptedServer(lambda _: gemini_reply(finish="RECITATION")) as server:
            task = Task(dataset=[Sample(id="s", input="?")], solver=generate(), scorer=refusal())
            [log] = eval(
                task, model=google(server), log_dir=str(tmp_path), display="none", **options
            )
        return log

    kept = run()
    again = score(kept, refusal(), action="overwrite", display="none")
    for log in (kept, again):
        [told] = scores_of(log).values()
        assert (told.reason, told.metadata["provenance"]) == ("blocked", "recitation_filter")
    [told] = scores_of(run(log_model_api=False)).values()
    assert (told.answer, told.metadata["provenance"]) == ("direct_refusal", "provider_filter")


def test_old_score_without_these_fields_reads_as_before(tmp_path):
    log = votes_log(tmp_path, "old", {"x": 1.0, "y": 0.0})
    responses = read_logs(log).responses
    assert responses["refused"].tolist() == [True, False]
    assert responses[["provenance", "reason"]].isna().to_numpy().all()
