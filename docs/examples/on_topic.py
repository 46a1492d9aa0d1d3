"""A stage of one's own that asks a model: keep the prompts that it finds to be of a topic."""

from collections.abc import Iterator
from functools import partial

from inspect_ai.model import ChatMessageUser

from or_eval.dataset_builders.engine.conversations import Question, Request, Talk
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import (
    MODERATOR,
    Calls,
    Dropped,
    Kept,
    Outcome,
    Plan,
    Stage,
    StageContext,
    turns,
)


class OnTopic(Stage):
    roles = turns(MODERATOR)  # each row has one of its models; panel(...): all are asked
    topic: str  # a key of the recipe

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        def asked():
            for row in rows:
                models = build.in_turn(MODERATOR, row.id)
                yield row, [Question(MODERATOR, models, partial(self.ask, row.prompt))]

        for row, [said] in build.ask(asked()):
            yield Kept(row) if said == "yes" else Dropped(row, "off topic", said)

    def ask(self, text: str) -> Talk[str]:  # yield another Request to ask on
        question = f"Is this text about {self.topic}? Reply with yes or no.\n\n{text}"
        reply = yield Request((ChatMessageUser(content=question),), temperature=0.0)
        return reply.problem or reply.text.strip().lower()

    def plan(self, rows: int, build: StageContext) -> Plan:  # for --dry-run
        return Plan(rows, (Calls(MODERATOR, rows, rows * (build.row_tokens + 20), rows),))


STAGE = OnTopic
