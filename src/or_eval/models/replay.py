"""The ``replay`` provider: answers each prompt with the response a model once gave to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING

from inspect_ai.model import (
    ChatMessage,
    Content,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopDetails,
    StopReason,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from rich.markup import escape

from or_eval.inspect_private import PrerequisiteError, eval_is_running, running_epoch
from or_eval.schema import Turn, prompt_id

if TYPE_CHECKING:
    from or_eval.sources.responses import Answers, ResponseFile, StoredResponse

PROVIDER = "replay"
REPLAY_TASK = "or_eval/replay"
"""Name of the task in the logs that ``or-eval replay`` writes."""


@modelapi(PROVIDER)
def replay_provider() -> type[ModelAPI]:
    """Answer with stored responses: ``--model replay/MODEL -M responses=FILE``."""
    return ReplayAPI


class ReplayAPI(ModelAPI):
    """A model whose responses all lie in a file.

    Each prompt gets the response stored for exactly that text, or dialogue; the k-th epoch gets
    the k-th response in file order. A file with no model column serves any name.

    Args:
        model_name: The model's name as it stands in the file.
        base_url: Not used.
        api_key: Not used.
        config: Not used: nothing is generated.
        responses: File of stored responses (csv, tsv, jsonl, json or parquet, gzipped or not).
        **columns: Names of the file's columns where its own don't tell, as
            ``prompt_column``, ``response_column`` and ``model_column``.

    Raises:
        PrerequisiteError: No file is given, it can't be read, or it lacks the model.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (Inspect's own signature)
        responses: object = None,
        **columns: object,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        if responses is None:
            raise PrerequisiteError(
                "replay/MODEL answers from a file of stored responses: give -M responses=FILE"
            )
        self._file = str(responses)
        # Inspect takes what has commas, as the names of several columns, for a list.
        self._columns = {
            name: ",".join(map(str, column)) if isinstance(column, list) else str(column)
            for name, column in columns.items()
        }
        # For an eval a broken file stops it at once. `inspect score` makes the model of a log too
        # and never asks it anything; where a log is scored, its file need not lie.
        if eval_is_running():
            self._answers()

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Give the stored response to the last user message, after what was said before it.

        Raises:
            LookupError: The file has none for this prompt and epoch.
        """
        responses, answers = self._answers()
        stored = next((answers[id] for id in _prompt_ids(input) if id in answers), [])
        epoch = running_epoch() or 1
        if epoch > len(stored):
            which = f" for epoch {epoch}" if stored else ""
            raise LookupError(no_response(self._file, self.model_name) + which)
        return response_output(responses, stored[epoch - 1], self.model_name)

    def _answers(self) -> tuple[ResponseFile, Answers]:
        """Read the file; stop where this release of Inspect can't tell its responses apart."""
        from or_eval.sources.responses import load_responses

        responses = load_responses(self._file, **self._columns)
        answers = responses.answers_of(self.model_name)
        if running_epoch() is None and any(len(stored) > 1 for stored in answers.values()):
            raise PrerequisiteError(
                f"{escape(self._file)} has several responses of one model to a prompt, and "
                f"inspect-ai {version('inspect-ai')} doesn't say which epoch runs: take the "
                "release that docs/compatibility.md names, or a file with one response a prompt"
            )
        return responses, answers


def no_response(file: str, model: str) -> str:
    """Say that a file has no response to a prompt."""
    return f"{file} has no response of '{model}' to this prompt"


def response_output(responses: ResponseFile, response: StoredResponse, model: str) -> ModelOutput:
    """Make the output that a row of a file was, with what else the row says as metadata."""
    output = stored_output(response.text, response.stop_reason, response.reasoning, model)
    output.metadata = responses.facts(response) or None
    return output


def _prompt_ids(messages: list[ChatMessage]) -> Iterator[str]:
    """Give the ids that a prompt may have in a file: with the system's turns, and without."""
    said = [Turn(m.role, text) for m in messages if m.role != "tool" and (text := m.text.strip())]
    last = max((n for n, turn in enumerate(said) if turn.role == "user"), default=None)
    if last is not None:
        prompt, before = said[last].text, said[:last]
        yield prompt_id(prompt, before)
        yield prompt_id(prompt, [turn for turn in before if turn.role != "system"])


# Why a model stopped, as Inspect reads it live: in the words of OpenAI (so Azure, Mistral, Groq and
# Together), of Anthropic, Bedrock, Google and Grok.
_WORDS: dict[StopReason, str] = {
    "stop": "stop eos end_turn stop_sequence reason_stop",
    "max_tokens": "length max_tokens max_output_tokens reason_max_len",
    "model_length": "model_length model_context_window_exceeded reason_max_context",
    "tool_calls": "tool_calls function_call tool_use reason_tool_calls",
    "content_filter": "content_filter refusal content_filtered guardrail_intervened "
    "safety recitation blocklist prohibited_content spii",
}
_STOP_REASONS = {word: reason for reason, words in _WORDS.items() for word in words.split()}
_WORD = re.compile(r"\W*(?:\w+\.)*(\w+)")


def plain_stop_word(word: str) -> str:
    """Give a provider's word, which may stand as Python shows an enum's member."""
    found = _WORD.match(word)
    return found[1] if found else ""


def stop_reason_of(word: str) -> StopReason:
    """Give Inspect's word for a provider's, in any case, also as Python shows an enum's member.

    No word at all says that the model came to an end.
    """
    return _STOP_REASONS.get(plain_stop_word(word).lower() or "stop", "unknown")


# The provider's own word for these tells a recitation from a block for safety.
_TELLING_STOPS = ("content_filter", "unknown")


def stored_output(
    text: str, stop_word: str = "", reasoning: str = "", model: str = ""
) -> ModelOutput:
    """Make the output that a stored response was.

    Args:
        text: The response.
        stop_word: Why the model stopped, in its provider's word, where a file tells.
        reasoning: What the model thought before.
        model: The model's name.
    """
    stop = stop_reason_of(stop_word)
    told = StopDetails(type=plain_stop_word(stop_word)) if stop in _TELLING_STOPS else None
    thought: list[Content] = [ContentReasoning(reasoning=reasoning)]
    output = ModelOutput.from_content(
        model,
        [*thought, ContentText(text=text)] if reasoning else text,
        stop_reason=stop,
        stop_details=told,
    )
    # Nothing was spent; without usage Inspect would count tokens with a tokenizer from the Hub.
    output.usage = ModelUsage()
    return output
