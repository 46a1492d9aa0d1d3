"""What is asked of a model, and what came of it: conversations that know nothing of networks.

A conversation is a generator: it gives what to ask next, is sent the reply, and returns what it
came to. Asking drives it and keeps the replies. From these the same conversation is brought to the
same end at any later time: what is made of replies is never kept, always made again. Where more is
wanted than then, it goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from inspect_ai.model import ChatMessage, ModelOutput, ResponseSchema

from or_eval.dataset_builders.engine.models import BoundModel, digest_of

Came = TypeVar("Came")


class Request(NamedTuple):
    """What is sent to a model.

    Attributes:
        messages: The messages.
        schema: The form of the reply, for providers that take one; the messages say it too.
        temperature: Sampling temperature where the user has set none; None for the model's own.
        about: What the reply will be about, for the conversation; JSON-ready.
        otherwise: What the conversation came to without this request, which a later version may
            send where the replies that are kept were enough for an earlier one; so a reply that an
            earlier version had here still serves, however it asked.
    """

    messages: tuple[ChatMessage, ...]
    schema: ResponseSchema | None = None
    temperature: float | None = None
    about: Any = None
    otherwise: Any = None

    @property
    def mark(self) -> str:
        """What stands for all that is sent, in 16 hex digits."""
        messages = [(message.role, message.text) for message in self.messages]
        form = None if self.schema is None else self.schema.model_dump(mode="json")
        return digest_of([messages, form, self.temperature])[:16]

    def is_answered_by(self, reply: Reply) -> bool:
        """Tell whether a kept reply serves: it answers this very request, or any would do."""
        return self.otherwise is not None or reply.asked == self.mark


class Reply(NamedTuple):
    """What came of a request.

    Attributes:
        model: Name of the model.
        text: What it said; of a problem, what the provider said of it.
        stop: Why it stopped, in Inspect's words.
        problem: ``blocked`` or ``failed`` where the provider would not have the request.
        about: What the request was about.
        input_tokens: Tokens sent.
        output_tokens: Tokens returned.
        dollars: Their price, where Inspect knows it.
        asked: Mark of the request.
    """

    model: str
    text: str
    stop: str = "stop"
    problem: str | None = None
    about: Any = None
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = None
    asked: str = ""


Talk: TypeAlias = Generator[Request, Reply, Came]
"""The questions to one model, or to several in turn, about one thing."""


class Told(NamedTuple):
    """What a conversation came to, for those who read its log."""

    value: float
    answer: str
    explanation: str = ""


def as_text(came: object) -> Told:
    """Tell what a conversation came to as it is."""
    return Told(1.0, str(came))


@dataclass(frozen=True)
class Question(Generic[Came]):
    """A conversation that is to be held, or was held before.

    Attributes:
        role: The role in which models are asked.
        models: The models that are asked in turn; the first is the one that answers.
        talk: Begins the conversation.
        told: Says for the log what it came to.
        size: How much is wanted; the answer to a smaller question of the same key is continued.
        opening: The request under which the answer is kept, where the first one tells the size.
        course: What beside this request makes it another conversation; JSON-ready.
        shown: What the log says of it beside the requests.
        text: What the log shows as its subject.
    """

    role: str
    models: Sequence[BoundModel]
    talk: Callable[[], Talk[Came]]
    told: Callable[[Came], Told] = as_text
    size: int = 1
    opening: Request | None = None
    course: Any = None
    shown: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""

    @cached_property
    def key(self) -> str:
        """What the answer is kept under: who is asked what, in 32 hex digits."""
        first = self.opening or next(self.talk())
        messages = [(message.role, message.text) for message in first.messages]
        schema = first.schema.name if first.schema is not None else None
        who = self.models[0].identity
        return digest_of([who, messages, schema, first.temperature, self.course])[:32]

    def replayed(self, replies: Sequence[Reply]) -> Came:
        """Bring the conversation to its end by replies that were kept, or as far as they go.

        Raises:
            LookupError: They aren't enough, or answer other requests than it now makes.
        """
        talk = self.talk()
        try:
            request = next(talk)
            for reply in replies:  # of a larger question, there may be more than this one wants
                if not request.is_answered_by(reply):
                    break
                request = talk.send(reply)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        if request.otherwise is None:
            raise LookupError(self.key)
        return request.otherwise  # type: ignore[no-any-return]

    def is_answered_by(self, replies: Sequence[Reply]) -> bool:
        """Tell whether replies that were kept bring the conversation to its end."""
        try:
            self.replayed(replies)
        except LookupError:
            return False
        return True


def reply_of(output: ModelOutput, model: str, about: Any) -> Reply:
    """Give what is kept of a model's output."""
    usage = output.usage
    stop = "unknown" if output.empty else output.stop_reason
    problem = "blocked" if stop == "content_filter" else None
    if stop == "model_length" and usage is None:
        # No model said this: Inspect's providers make an output of a 400 for too long a request.
        problem = "failed"
    return Reply(
        model,
        "" if output.empty else output.completion,
        stop,
        problem,
        about,
        0 if usage is None else usage.input_tokens,
        0 if usage is None else usage.output_tokens,
        None if usage is None else usage.total_cost,
    )
