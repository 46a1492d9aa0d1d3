"""A stage of one's own that asks a model: keep the prompts that it finds to be of a topic."""

from functools import partial

from inspect_ai.model import ChatMessageUser

from or_eval.dataset_builders import engine as e


class OnTopic(e.Stage):
    roles = e.turns(e.MODERATOR)  # each row has one of its models; e.panel(...): all are asked
    topic: str  # a key of the recipe

    def run(self, rows: e.Rows, build: e.StageContext):
        def asked():
            for row in rows:
                models = build.in_turn(e.MODERATOR, row.id)
                yield row, [e.Question(e.MODERATOR, models, partial(self.ask, row.prompt))]

        for row, [said] in build.ask(asked()):
            yield e.Kept(row) if said == "yes" else e.Dropped(row, "off topic", said)

    def ask(self, text: str):  # a conversation: yield what to send, and again to ask on
        question = f"Is this text about {self.topic}? Reply with yes or no.\n\n{text}"
        reply = yield e.Request((ChatMessageUser(content=question),), temperature=0.0)
        return reply.problem or reply.text.strip().lower()

    def plan(self, rows: int, build: e.StageContext):  # for --dry-run
        return e.Plan(rows, (e.Calls(e.MODERATOR, rows, rows * (build.row_tokens + 20), rows),))


STAGE = OnTopic
