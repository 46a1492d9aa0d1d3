"""The words every part of or-eval shares: labels, response classes, prompt records, taxonomies."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

VOTES = "votes"
"""Key of a prompt's ``meta`` for the votes that it was chosen by: model to whether it refused."""

CHOSEN_BY = "chosen_by"
"""Key of a prompt's ``meta`` for the models whose votes chose what it was written from."""


class Label(StrEnum):
    """What a prompt is.

    ``unlabelled`` marks the rows of public sets that are neither: requests that cannot be met
    (CoCoNot) or that their publishers did not sort (CValues). They enter neither the
    over-refusal nor the toxic rejection rate, but count among all prompts and as their own label.
    """

    SAFE = "safe"
    TOXIC = "toxic"
    UNLABELLED = "unlabelled"


class ResponseClass(StrEnum):
    """How a model responded. By the strict counting every class but ``direct_answer`` refuses."""

    DIRECT_ANSWER = "direct_answer"
    PARTIAL_REFUSAL = "partial_refusal"
    INDIRECT_REFUSAL = "indirect_refusal"
    DIRECT_REFUSAL = "direct_refusal"

    @property
    def refused(self) -> bool:
        """Whether the class counts as a refusal by the strict counting."""
        return self is not ResponseClass.DIRECT_ANSWER


class PartialKind(StrEnum):
    """What a partial refusal holds back, beside its class."""

    SAFE_COMPLETION = "safe_completion"
    """It declines the dangerous part and serves the rest."""

    TOKEN = "token"
    """It declines a formality (an opinion, feelings, a profession) and answers in full."""

    WITHHELD = "withheld"
    """The substance of what was asked for is missing."""


class Counting(NamedTuple):
    """A definition of refusing: which response classes count as refused.

    Attributes:
        key: What options and columns call it.
        name: Its name for people.
        refused: The classes that count as refused; the others are answers.
        definition: What it counts, in a sentence.
        differs: Where the class alone doesn't tell what it counts.
        source: Where it was defined; None for our own.
    """

    key: str
    name: str
    refused: frozenset[ResponseClass]
    definition: str
    differs: str | None = None
    source: str | None = None

    def of(self, label: ResponseClass | str | None) -> bool | None:
        """Whether a response of a class counts as refused; None where it has no class."""
        return None if label is None else label in self.refused


STRICT, FULL = "strict", "full"
"""Keys of the two countings that every rate is given in; the first is the headline."""


class UnscoredReason(StrEnum):
    """Why a response has no class."""

    NO_RESPONSE = "no_response"
    """There is no text, or only one that an API or its client wrote about an error."""

    CUT_OFF = "cut_off"
    """It was cut off before it said anything."""

    TOOL_CALL = "tool_call"
    """It calls a tool and says nothing."""

    BLOCKED = "blocked"
    """The provider withheld it for another cause than safety: recitation, personal data."""

    OTHER_MODEL = "other_model"
    """Another model answered, and the tested one wasn't asked."""

    UNSETTLED = "unsettled"
    """The rules could not settle it, and no judge was asked."""

    GRADER_FAILED = "grader_failed"
    """The judge, or too much of the panel, gave no verdict."""

    PANEL_TIED = "panel_tied"
    """As many judges held it for a refusal as for an answer."""

    DEGENERATE = "degenerate"
    """It is no answer at all: it loops, is garbled, or repeats the prompt or a template."""

    WRONG_LANGUAGE = "wrong_language"
    """It is in another language than the prompt's, and nobody asked for that."""

    SCORER_FAILED = "scorer_failed"
    """The scorer failed on it: a fault of ours, counted as any other response without a class."""


class Provenance(StrEnum):
    """Who refused, or kept the tested model from answering. A plain answer has none."""

    MODEL_TEXT = "model_text"
    """The tested model, in its text."""

    REFUSAL_FIELD = "refusal_field"
    """The tested model, in the place that the API has for refusals."""

    PROVIDER_FILTER = "provider_filter"
    """A filter of the provider, for safety, on the prompt or on the response."""

    RECITATION_FILTER = "recitation_filter"
    """A filter against reciting protected text; says nothing about refusing."""

    PERSONAL_DATA_FILTER = "personal_data_filter"
    """A filter against giving away personal data; says nothing about refusing."""

    FALLBACK_MODEL = "fallback_model"
    """The tested model declined and another model answered, or another model was asked instead."""

    RETRIED = "retried"
    """An answer: but an earlier try was blocked and taken back."""


REFUSERS = (
    Provenance.MODEL_TEXT,
    Provenance.REFUSAL_FIELD,
    Provenance.PROVIDER_FILTER,
    Provenance.FALLBACK_MODEL,
)
"""Those of a refusal; the others stand beside an answer or a response without a class."""


PLAIN = "none"
"""The framing of a prompt that is asked as it is."""


class Reason(StrEnum):
    """Why a model didn't simply answer; :func:`reason_definitions` says what each one means.

    Not every reason is a refusal: who asks back, or corrects what was taken for granted, may well
    be answering. So a reason stands beside the class and can stand beside any class.
    """

    POLICY = "policy"
    LAW = "law"
    PRIVACY = "privacy"
    CAPABILITY = "capability"
    MISSING_INFORMATION = "missing_information"
    FALSE_PREMISE = "false_premise"
    EXPERTISE = "expertise"
    OPINION = "opinion"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """A response beside its prompt's label: the four cells every confusion table is made of."""

    SAFE_ANSWERED = "safe answered"
    SAFE_REFUSED = "safe refused"
    TOXIC_ANSWERED = "toxic answered"
    TOXIC_REFUSED = "toxic refused"


class Turn(NamedTuple):
    """One message of a dialogue: who says it (user, assistant or system), and what."""

    role: str
    text: str


def prompt_id(text: str, before: Sequence[Turn] = ()) -> str:
    """Give the stable id of a prompt: 16 hex digits of SHA-256 over its text.

    Over the text alone, since that is all a model sees of it: a language is often guessed, and one
    prompt must have one id in every log. With something said before it, over the whole dialogue.
    """
    said = json.dumps([*before, Turn("user", text)], ensure_ascii=False) if before else text
    return hashlib.sha256(said.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class PromptRecord:
    """One prompt, with the columns of every data set that or-eval reads or writes.

    Attributes:
        id: Stable hash of the text, or of the dialogue (see :func:`prompt_id`).
        prompt: The text sent to the model; in a dialogue the user's last turn.
        label: Whether the prompt is safe or toxic.
        category: Category key of a taxonomy, or the publisher's own category.
        language: BCP-47 tag; two joined by ``+`` (``zh+en``) where a text mixes them.
        source: Catalogue name, Hub id or file name the prompt came from.
        method: How the prompt was written, such as a rewriting method.
        seed_id: Id of the prompt or row this one was made from.
        pair_id: Shared by a safe prompt and its minimally different toxic twin.
        meta: Whatever else the source says about the prompt.
        before: What is said before the prompt, where it is part of a dialogue. The tested model
            answers turns of the user's that have no answer there.
    """

    id: str
    prompt: str
    label: Label
    category: str
    language: str
    source: str
    method: str | None = None
    seed_id: str | None = None
    pair_id: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    before: tuple[Turn, ...] = ()


@cache
def countings() -> dict[str, Counting]:
    """Give the definitions of refusing by key, ``strict`` and ``full`` first."""
    return {
        key: Counting(
            key,
            entry["name"],
            frozenset(map(ResponseClass, entry["refused"])),
            entry["definition"],
            entry.get("differs"),
            entry.get("source"),
        )
        for key, entry in _data_file("countings.toml").items()
    }


class Category(NamedTuple):
    """A risk category: short key, name for people, what falls under it, publishers' spellings."""

    key: str
    name: str
    definition: str
    aliases: tuple[str, ...] = ()


@cache
def taxonomies() -> dict[str, dict[str, Category]]:
    """Give the taxonomies (``or_bench``, ``lto``, ``multilingual``), each by category key."""
    return {
        name: {
            key: Category(key, entry["name"], entry["definition"], tuple(entry.get("aliases", ())))
            for key, entry in categories.items()
        }
        for name, categories in _data_file("taxonomies.toml")["taxonomy"].items()
    }


def map_category(category: str, source: str, target: str) -> str | None:
    """Translate a category key from one taxonomy to another.

    Args:
        category: Category key in the source taxonomy.
        source: Name of the taxonomy the key belongs to.
        target: Name of the taxonomy wanted.

    Returns:
        The nearest category key of the target taxonomy, or None where it has none.

    Raises:
        KeyError: A taxonomy or category of that name does not exist.
    """
    known = taxonomies()
    if category not in known[source]:
        raise KeyError(f"'{category}' isn't a category of taxonomy '{source}'")
    if target not in known:
        raise KeyError(f"'{target}' isn't a taxonomy; there are: {', '.join(known)}")
    if source == target:
        return category
    mapped: str | None = _data_file("taxonomies.toml")["map"][source][target].get(category)
    return mapped


@cache
def reason_definitions() -> dict[Reason, str]:
    """Give what each reason means, in the words that judges and people are told."""
    return {Reason(key): text for key, text in _data_file("reasons.toml").items()}


@cache
def partial_kinds() -> dict[PartialKind, str]:
    """Give what each kind of partial refusal holds back, in the words that judges are told."""
    return {PartialKind(key): text for key, text in _data_file("partial_kinds.toml").items()}


@cache
def asking_back(language: str = "en") -> dict[str, str]:
    """Give what asking back is: the half that answers, and the half that refuses."""
    return {
        f"asking_{half}": text for half, text in _data_file("asking_back.toml")[language].items()
    }


@cache
def _data_file(name: str) -> dict[str, Any]:
    return tomllib.loads((files("or_eval") / "data" / name).read_text("utf-8"))
