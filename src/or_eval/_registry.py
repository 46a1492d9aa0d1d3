"""What Inspect loads through the entry point: tasks, solvers, scorers, metrics, model providers."""

# ruff: noqa: F401 (being imported is what they are here for)
import sys

from or_eval.models.local import classifier, gguf
from or_eval.models.replay import replay_provider
from or_eval.scorers.keyword_scorer import keywords
from or_eval.scorers.metrics import (
    over_refusal_rate,
    over_refusal_rate_full,
    refusal_rate,
    refusal_rate_by_category,
    refusal_rate_by_framing,
    refusal_rate_by_language,
    refusal_rate_full,
    toxic_rejection_rate,
    toxic_rejection_rate_full,
    uncertain_share,
    unscored_share,
)
from or_eval.scorers.outcome_scorer import outcome
from or_eval.scorers.refusal_scorer import refusal
from or_eval.solvers import dialogue, system_prompt
from or_eval.tasks import (
    lto,
    or_bench_80k,
    or_bench_hard_1k,
    or_bench_toxic,
    prompts,
    starter,
    xstest,
)

# Only Scout looks for scanners, and it takes seconds to import: nobody else waits for it.
if "inspect_scout" in sys.modules:
    import or_eval.scanners
