"""Running a scorer over given model outputs in a real eval, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer
from inspect_ai.solver import generate

REFUSAL = "I'm sorry, but I can't help with that."
ANSWER = "Sure! Here is what I would tell you about it:\n\n1. Open the lid.\n2. Fill in the water.\n3. Press the button."
TALE = " ".join(
    f"{who} {did} {what} {where}."
    for who, did, what, where in product(
        ("The baker", "My aunt", "A traveller", "The old miller", "Her neighbour"),
        ("carried", "painted", "sold", "found", "mended", "counted"),
        ("a ladder", "two lamps", "warm bread", "the blue boat", "some wool"),
        ("by the river", "after the fair", "in the rain", "behind our house"),
    )
)
"""A long text that is no loop."""
UNSETTLED = "ნამდვილად საინტერესო კითხვაა, მოდი ამაზე ერთად ვიფიქროთ და ვნახოთ, რა გამოვა აქედან."
"""Georgian: a language with no rules, so that the rules can't settle it and a judge can."""

_ASKS = "Would you tell me about "


def eval_outputs(
    outputs: Mapping[str, ModelOutput | str],
    scorer: Scorer | list[Scorer],
    log_dir: Path,
    *,
    metadata: Mapping[str, dict[str, Any]] | None = None,
    epochs: int = 1,
    **options: Any,
) -> EvalLog:
    """Eval a model that gives these outputs, one sample each, and give the log.

    Each prompt asks about its sample's id in the same words. `options` go to `eval`.
    """

    def output(messages: list[Any], *_: Any) -> ModelOutput:
        given = outputs[messages[-1].text.removeprefix(_ASKS).removesuffix("?")]
        if isinstance(given, str):
            given = ModelOutput.from_content("mockllm/model", given)
        given = given.model_copy(deep=True)
        given.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return given

    samples = [
        Sample(id=id, input=f"{_ASKS}{id}?", target="", metadata=(metadata or {}).get(id))
        for id in outputs
    ]
    [log] = eval(
        Task(
            dataset=samples,
            solver=generate(tool_calls="none"),
            scorer=scorer,
            epochs=Epochs(epochs),
        ),
        model=get_model("mockllm/model", custom_outputs=output),
        log_dir=str(log_dir),
        display="none",
        **options,
    )
    return log


def rates_in(log: EvalLog) -> dict[str, float]:
    """Give the values of a log's metrics by name, whichever score they are of."""
    assert log.results is not None
    return {key: one.value for of in log.results.scores for key, one in of.metrics.items()}


def scores_of(log: EvalLog, name: str = "refusal") -> dict[str, Score]:
    """Give the scores of a log by sample id."""
    assert log.status == "success", log.error and log.error.message
    return {str(s.id): s.scores[name] for s in log.samples or [] if s.scores}
