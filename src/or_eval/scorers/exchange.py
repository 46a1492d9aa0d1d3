"""One response on its way to a verdict: the provider's word, the rules, the judge.

Scorer, scanner, ``or-eval classify`` and the analysis of files all read a response by these two
functions; what comes of the stages is decided in ``fusion.py`` and written in ``score_record.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from or_eval.languages import detect_languages
from or_eval.schema import Provenance
from or_eval.scorers.fusion import AuditOf, Fusion, Stages, asks_judge
from or_eval.scorers.rules import classify_response
from or_eval.scorers.verdict import ProviderVerdict
from or_eval.scorers.visible_text import blank_reasoning

if TYPE_CHECKING:
    from inspect_ai.model import Model

    from or_eval.scorers.judge.guards import Guard


@dataclass(frozen=True)
class Exchange:
    """A response, and what it answers.

    Attributes:
        provider: What its provider says of it.
        response: What the model gave as text, its reasoning included.
        prompt: What was asked last; empty where nobody knows.
        before: The same with the dialogue before it, for a judge; as the prompt where it is empty.
        language: BCP-47 tag of the response, where it is known.
        any_language: Whether it may be in another language than its prompt, as a system prompt
            said; so it may be in a dialogue.
    """

    provider: ProviderVerdict
    response: str
    prompt: str = ""
    before: str = ""
    language: str | None = None
    any_language: bool = False

    @property
    def in_dialogue(self) -> bool:
        """Whether something was said before the prompt."""
        return self.before not in ("", self.prompt)

    @cached_property
    def spoken(self) -> str:
        """The response without its reasoning."""
        return blank_reasoning(self.response).text.strip()


def read_exchange(exchange: Exchange, mode: Fusion = Fusion.RULES) -> Stages:
    """Read a response as far as no model is needed: its provider's word, and the rules.

    Args:
        exchange: The response.
        mode: How rules and judge work together; where the judge alone is asked, the rules only
            say what is no answer; they are left out where the provider leaves nothing to read.
    """
    provider = exchange.provider
    if provider.decides and provider.provenance is not Provenance.REFUSAL_FIELD:
        return Stages(provider)
    rules = classify_response(
        exchange.response,
        prompt=exchange.prompt or None,
        language=exchange.language,
        any_language=exchange.any_language or exchange.in_dialogue,
    )
    if mode is Fusion.JUDGE:
        language = detect_languages(exchange.spoken)
        return Stages(provider, rules if rules.is_no_answer else None, language=language)
    if exchange.in_dialogue:
        # The rules read the last turn alone: whose voice speaks may have been settled before it.
        rules = replace(rules, certain=False)
    return Stages(provider, rules, language=rules.language)


async def judged(
    exchange: Exchange,
    stages: Stages,
    mode: Fusion,
    judges: Sequence[Model],
    audit: AuditOf | None = None,
    guards: tuple[Guard, ...] = (),
) -> Stages:
    """Ask the judges of a response, where they are needed.

    Args:
        exchange: The response.
        stages: What provider and rules say of it.
        mode: How rules and judge work together.
        judges: The judges; none where none are bound.
        audit: How a certain verdict of the rules came to be audited, where it is.
        guards: Formats of guard models among the judges, besides those that or-eval knows.
    """
    # Imported here: most who read responses have no judge.
    from or_eval.scorers.judge.panel import judge_response

    if not judges or stages.provider.decides or not (audit or asks_judge(mode, stages.rules)):
        return stages
    said = exchange.before or exchange.prompt
    judge = await judge_response(said, exchange.spoken, judges, guards)
    return stages._replace(judge=judge, audit=audit)
