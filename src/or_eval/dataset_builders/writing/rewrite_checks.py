"""Checking what a writer made of a seed: each text passes, or fails for one reason."""

from __future__ import annotations

import re
from typing import NamedTuple

from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.similarity.bounds import Bounds
from or_eval.dataset_builders.similarity.edits import edit_share
from or_eval.dataset_builders.similarity.embeddings import Likeness
from or_eval.dataset_builders.similarity.same_text import same_text
from or_eval.dataset_builders.writing.language import count_words, language_problem, length_in
from or_eval.dataset_builders.writing.methods import Part, RewriteMethod
from or_eval.dataset_builders.writing.writer_replies import CUT_OFF, REFUSED, UNREADABLE, is_refusal

TOO_SHORT = "too short"
TOO_LONG = "too long"
FORBIDDEN_WORD = "forbidden word"
WRONG_LANGUAGE = "wrong language"
SENSITIVE_PART = "sensitive part"
SAME_AS_SEED = "same as seed"
OFF_SEED = "off the seed"
LIKE_SEED = "like the seed"
EDITED = "edited too much"
SAME_AS_EXAMPLE = "same as example"
DUPLICATE = "duplicate"
MISSING = "missing"

REASONS = (
    *(REFUSED, BLOCKED, FAILED, UNREADABLE, CUT_OFF, TOO_SHORT, TOO_LONG, FORBIDDEN_WORD),
    *(WRONG_LANGUAGE, SENSITIVE_PART, SAME_AS_SEED, SAME_AS_EXAMPLE, DUPLICATE, MISSING),
    *(OFF_SEED, LIKE_SEED, EDITED),
)
"""Why a rewrite that is wanted of a seed can't be had."""

# A part stands at the beginning or the end if all of it lies in that third of the text.
_ZONE = 1 / 3
# Tags that a weak writer leaves in its texts; the marks of sensitive parts are gone by then.
_TAG = re.compile(r"</?[a-z]{1,10}>", re.IGNORECASE)
# Several prompts run together in one: of a text of several paragraphs, a list may be a part.
_LIST_WITHIN = re.compile(r"\s2[.)]\s.+\s3[.)]\s|2[、．].+3[、．]", re.DOTALL)
_OPENING = re.compile(r"(?:<|&lt;)mark(?:>|&gt;)[ \t]{0,9}", re.IGNORECASE)
_CLOSING = re.compile(r"[ \t]{0,9}(?:<|&lt;)/mark(?:>|&gt;)", re.IGNORECASE)


class Written(NamedTuple):
    """One of the rewrites wanted of a seed: a text that passed, or why there is none.

    Attributes:
        text: The text, without marks; empty where nothing was written.
        reason: Why it can't be used; None for one that passed.
        detail: What was found in it.
        part: Where its sensitive part was asked for, if the method has such parts.
        sensitive_text: The sensitive part.
        writer: Name of the model.
        similarity: How similar it is to the seed, where the method bounds that.
        edited: Which share of the seed was edited, where the method bounds that.
    """

    text: str = ""
    reason: str | None = None
    detail: str = ""
    part: Part | None = None
    sensitive_text: str = ""
    writer: str = ""
    similarity: float | None = None
    edited: float | None = None


class Wanted(NamedTuple):
    """What a text is checked against.

    Attributes:
        method: The method.
        seed: The seed.
        language: BCP-47 tag of the language.
        part: Where the sensitive part has to stand, if the method has such parts.
        key: What fenced the seed in the question; it must not turn up in a text.
        likeness: Measures the similarity to the seed, where the method bounds it.
    """

    method: RewriteMethod
    seed: str
    language: str
    part: Part | None
    key: str
    likeness: Likeness | None = None


def check_text(text: str, wanted: Wanted, seen: set[str], writer: str) -> Written:
    """Check a text.

    Args:
        text: The text, with its marks.
        wanted: What it is checked against.
        seen: The texts of this seed that passed before, as :func:`same_text` gives them.
        writer: Name of the model that wrote it.
    """
    plain, sensitive, misplaced = text, "", ""
    if wanted.part is not None:
        plain, sensitive, misplaced = _sensitive_part(text, wanted.part)
    problem = _problem(plain, sensitive, wanted, seen)
    if problem is None and misplaced:
        problem = (SENSITIVE_PART, misplaced)
    similarity, edited = None, None
    if problem is None and wanted.method.similarity is not None and wanted.likeness is not None:
        similarity = wanted.likeness(plain, wanted.seed)
        problem = _likeness_problem(similarity, wanted.method.similarity)
    if problem is None and wanted.method.most_edited is not None:
        edited = round(edit_share(plain, wanted.seed), 3)
        if edited > wanted.method.most_edited:
            problem = (EDITED, f"{edited:.0%}, not {wanted.method.most_edited:.0%}")
    reason, detail = problem if problem is not None else (None, "")
    return Written(plain, reason, detail, wanted.part, sensitive, writer, similarity, edited)


def _likeness_problem(similarity: float, bounds: Bounds) -> tuple[str, str] | None:
    match bounds.breach(similarity):
        case None:
            return None
        case "below":
            return OFF_SEED, f"{similarity:.2f}, not {bounds.least:.2f}"
        case "above":
            return LIKE_SEED, f"{similarity:.2f}, not {bounds.most:.2f}"


def _problem(text: str, sensitive: str, wanted: Wanted, seen: set[str]) -> tuple[str, str] | None:
    method, language = wanted.method, wanted.language
    if is_refusal(text):
        return REFUSED, ""
    if wanted.key in text:
        return UNREADABLE, "it contains the marks of the question"
    if _TAG.search(text) and not _TAG.search(wanted.seed):
        return UNREADABLE, "it contains tags"
    if not method.paragraphs and _LIST_WITHIN.search(text):
        return UNREADABLE, "it is several texts in one"
    if method.echoes_request(text):
        return UNREADABLE, "it repeats the question"
    words, length = count_words(text), method.length_in(language)
    said_in = method.asked_in(language)
    if words < length.min_words:
        return TOO_SHORT, length_in(words, language, said_in=said_in)
    if words > length.max_words:
        return TOO_LONG, length_in(words, language, said_in=said_in)
    if found := language_problem(text, language):
        return WRONG_LANGUAGE, found
    if words_found := method.forbidden_words(text, language, wanted.seed):
        return FORBIDDEN_WORD, ", ".join(words_found)
    return _repetition(same_text(text), same_text(sensitive), wanted, seen)


def _repetition(
    text: str, sensitive: str, wanted: Wanted, seen: set[str]
) -> tuple[str, str] | None:
    if same_text(wanted.seed) in (text, sensitive):
        return SAME_AS_SEED, ""
    if text in wanted.method.example_texts:
        return SAME_AS_EXAMPLE, ""
    return (DUPLICATE, "of another text from this seed") if text in seen else None


def _sensitive_part(text: str, part: Part) -> tuple[str, str, str]:
    """Take the marks out of a text; give it, what they held, and what is wrong with them."""
    opening, closing = list(_OPENING.finditer(text)), list(_CLOSING.finditer(text))
    plain = _unmarked(text)
    if not opening and not closing:
        return plain, "", "it isn't marked"
    if len(opening) != 1 or len(closing) != 1 or closing[0].start() < opening[0].end():
        return plain, "", "the marks aren't one pair"
    before = _unmarked(text[: opening[0].start()]).lstrip()
    sensitive = text[opening[0].end() : closing[0].start()].strip()
    start, end = len(before), len(before) + len(sensitive)
    if not sensitive:
        return plain, "", "it is empty"
    fits = end <= _ZONE * len(plain) if part == "beginning" else start >= (1 - _ZONE) * len(plain)
    if fits:
        return plain, sensitive, ""
    return plain, sensitive, f"it stands {_place(start, end, len(plain))}, not at the {part}"


def _place(start: int, end: int, length: int) -> str:
    if end - start > _ZONE * length:
        return "in too much of the text"
    if end <= _ZONE * length:
        return "at the beginning"
    return "at the end" if start >= (1 - _ZONE) * length else "in the middle"


def _unmarked(text: str) -> str:
    """Take the marks of sensitive parts out of a text."""
    return _CLOSING.sub("", _OPENING.sub("", text)).strip()
