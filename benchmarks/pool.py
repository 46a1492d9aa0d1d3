"""What a pool gains: four endpoints of different speed and limits against one of them, and a death.

    python benchmarks/pool.py

Each endpoint can answer one call a second. Rates are counted from the first call to the last
reply, so that loading Inspect doesn't count; calls only wait, so a busy machine changes little.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from inspect_ai.model import ChatMessageUser, ModelAPI, ModelOutput, ModelUsage, modelapi

from or_eval.dataset_builders.engine.asking import Asker
from or_eval.dataset_builders.engine.conversations import Question, Request, Talk
from or_eval.dataset_builders.engine.models import Asking, binding_of

ROWS = 160
ENDPOINTS = ((2.0, 2), (1.0, 1), (4.0, 4), (2.0, 2))
"""Seconds that an endpoint takes for a reply, and the calls that it takes at once."""


class Answered(NamedTuple):
    """A call that was answered: by which endpoint, what it asked, and when."""

    endpoint: str
    asked: str
    started: float
    ended: float


ANSWERED: list[Answered] = []
DEAD: dict[str, int] = {}
"""Endpoints that die, and after how many calls in all."""


@modelapi("waiting")
class Waiting(ModelAPI):
    """Answers after a while; its address says which endpoint it is and how long it takes."""

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        """Wait, then answer, unless it has died."""
        started = time.monotonic()
        await anyio.sleep(float(str(self.base_url).split("/")[1]))
        if len(ANSWERED) >= DEAD.get(str(self.base_url), ROWS):
            raise ConnectionError("gone")
        ended = time.monotonic()
        ANSWERED.append(Answered(str(self.base_url), input[-1].text, started, ended))
        output = ModelOutput.from_content(self.model_name, "Yes.")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    def should_retry(self, ex: Any) -> bool:
        """Leave it to the pool."""
        return False


def once(text: str) -> Talk[str]:
    """Ask, once."""
    return (yield Request((ChatMessageUser(content=text),))).text


def rate(endpoints: Sequence[tuple[float, int]], dying: dict[int, int] | None = None) -> float:
    """Ask all rows; give the replies a second, after making sure that none is lost or twice."""
    places = [f"{number}/{seconds}" for number, (seconds, _) in enumerate(endpoints)]
    ANSWERED.clear()
    DEAD.clear()
    DEAD.update({places[number]: calls for number, calls in (dying or {}).items()})
    pool = [
        {"model": "waiting/x", "model_args": {"base_url": place}, "max_connections": most}
        for place, (_, most) in zip(places, endpoints, strict=True)
    ]
    models = binding_of({"pool": pool}).models

    def asked() -> Iterator[tuple[int, list[Question[str]]]]:
        for number in range(ROWS):
            yield number, [Question("writer", models, lambda n=number: once(f"Number {n}?"))]

    with tempfile.TemporaryDirectory() as folder:
        asker = Asker(Asking(display="none"), Path(folder))
        replies = [reply for _, [reply] in asker.ask("pool", asked())]
    times = Counter(call.asked for call in ANSWERED)
    assert replies == ["Yes."] * ROWS
    assert len(times) == len(ANSWERED) == ROWS
    shares = Counter(call.endpoint for call in ANSWERED)
    seconds = max(call.ended for call in ANSWERED) - min(call.started for call in ANSWERED)
    print(f"   {ROWS / seconds:5.2f} replies a second; by endpoint: {dict(sorted(shares.items()))}")
    return ROWS / seconds


def main() -> None:
    """Compare one endpoint, four, and four of which one dies half-way."""
    print("one endpoint:")
    one = rate(ENDPOINTS[:1])
    print("four endpoints:")
    four = rate(ENDPOINTS)
    print(f"   {four / one:.2f} x one endpoint")
    print("four endpoints, one of which dies half-way:")
    print(
        f"   {rate(ENDPOINTS, {2: ROWS // 2}) / one:.2f} x one endpoint; none lost or asked twice"
    )


if __name__ == "__main__":
    main()
