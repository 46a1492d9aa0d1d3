"""From a response to a verdict: read its passages, then decide by what stands where."""

from __future__ import annotations

from itertools import chain

from or_eval.schema import UnscoredReason
from or_eval.scorers.reasoning import blank_reasoning
from or_eval.scorers.rules.acts import Reading, acts_of_prompt, read_passages
from or_eval.scorers.rules.decision import Decision, decide
from or_eval.scorers.rules.detection import Languages, detect_languages
from or_eval.scorers.rules.language_pack import (
    Act,
    LanguagePack,
    language_codes,
    language_pack,
)
from or_eval.scorers.rules.quotation import blank_quotations
from or_eval.scorers.rules.structure import edges, passages
from or_eval.scorers.verdict import Evidence, Verdict
from or_eval.scorers.visible_text import has_visible_text, stands_for_nothing

_EVIDENCE_CHARS = 200
_MOST_EVIDENCE = 6
_SAMPLE_CHARS = 4_000
_ENOUGH_WORDS = 8
_SHORT_PROMPT = 60


def classify_response(
    response: str, *, prompt: str | None = None, language: str | None = None
) -> Verdict:
    """Read a response by rules alone: no model, no network.

    Args:
        response: The text a model gave.
        prompt: What it was asked, if known; tells a refusal from a refusal letter that was
            asked for, and gives the language of a response too short to tell its own.
        language: BCP-47 tag of the response (``zh+en`` for a mixed one), if known; detected
            otherwise.

    Returns:
        A verdict with the class, whether it is certain, and the evidence. The class is None,
        with the reason, for a response that is empty or in a language without rules.
    """
    spoken, in_reasoning = blank_reasoning(response)
    if not has_visible_text(spoken):
        reason = UnscoredReason.CUT_OFF if in_reasoning else UnscoredReason.NO_RESPONSE
        return Verdict(None, False, unscored_because=reason)
    if stands_for_nothing(spoken):
        said = f"'{spoken.strip()}' may stand for a response that is missing"
        return Verdict(None, False, unscored_because=UnscoredReason.UNSETTLED, note=said)
    # What is quoted may be in another language than the response, as in a translation.
    unquoted = blank_quotations(spoken.lstrip()[:_SAMPLE_CHARS])
    enough = len(unquoted.split()) >= _ENOUGH_WORDS
    languages, note = _languages(unquoted if enough else spoken.lstrip(), prompt, language)
    if not languages.read:
        return Verdict(
            None,
            False,
            language=languages.tag,
            unscored_because=UnscoredReason.UNSETTLED,
            note=f"no rules for language '{languages.tag}'",
        )
    packs = [language_pack(code) for code in languages.read]
    asked = _asked(prompt, packs)
    # A quoted sentence is the answer to "translate this", and the model's own words elsewhere.
    keep_whole = asked is None or Act.ASKS_DOCUMENT not in asked
    parts = [
        passages(blank_quotations(part, keep_whole=keep_whole), offset)
        for offset, part in edges(spoken)
    ]
    readings = read_passages(list(chain.from_iterable(parts)), packs)
    decision = decide(readings, asked)
    return Verdict(
        decision.label,
        decision.certain,
        evidence=_evidence(response, decision),
        language=languages.tag,
        note=note,
    )


def _languages(
    response: str, prompt: str | None, given: str | None
) -> tuple[Languages, str | None]:
    """Settle what to read the response with, and note where it left the prompt's language."""
    if given is not None:
        codes = [tag.split("-")[0].lower() for tag in given.split("+")]
        return Languages(given, tuple(c for c in codes if c in language_codes())), None
    detected = detect_languages(response)
    asked = detect_languages(prompt) if prompt else Languages(None, ())
    if detected.tag is None:
        # Too short to tell: a bare "42" or "Paris" is read in the prompt's language.
        return (asked if asked.read else Languages(None, ("en",))), None
    note = None
    if asked.tag and asked.tag.split("+")[0] != detected.tag.split("+")[0]:
        note = f"response in '{detected.tag}' to a prompt in '{asked.tag}'"
    return detected, note


def _asked(prompt: str | None, packs: list[LanguagePack]) -> frozenset[Act] | None:
    """Give the acts of the prompt: what kind of thing it asks for."""
    if not prompt:
        return None
    asked = {code: language_pack(code) for code in detect_languages(prompt).read}
    if not asked or len(prompt) < _SHORT_PROMPT:
        # A few words may be taken for another language; the response's is a second witness.
        asked |= {pack.code: pack for pack in packs}
    return acts_of_prompt(prompt, list(asked.values()))


def _evidence(response: str, decision: Decision) -> tuple[Evidence, ...]:
    return tuple(
        _as_evidence(response, reading, act) for reading, act in decision.because[:_MOST_EVIDENCE]
    )


def _as_evidence(response: str, reading: Reading, act: Act) -> Evidence:
    start = reading.passage.start
    text = response[start : start + len(reading.passage.text)]
    start += len(text) - len(text.lstrip())
    text = text.strip()[:_EVIDENCE_CHARS]
    pattern = next((p.id for p in reading.patterns if p.act is act), f"structure.{act}")
    return Evidence(pattern, act.value, text, start, start + len(text))
