"""From pages to candidate prompts: what asks, cleaned, without personal data, each once."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from or_eval.dataset_builders.crawling.crawl import Page, Snapshot
from or_eval.dataset_builders.crawling.personal_data import without_personal_data
from or_eval.dataset_builders.crawling.questions import asked_in, asks_itself, sentences_of
from or_eval.dataset_builders.crawling.sources_file import SourcesFile
from or_eval.dataset_builders.engine.stage import Dropped, Kept
from or_eval.dataset_builders.prompt_sets import earlier_prompts
from or_eval.dataset_builders.similarity.near_by_letters import (
    bands_of,
    near_texts_of,
    near_texts_within,
)
from or_eval.dataset_builders.similarity.near_duplicates import NearDuplicates
from or_eval.dataset_builders.similarity.same_text import text_mark
from or_eval.dataset_builders.writing.language import count_words
from or_eval.languages import detect_language
from or_eval.schema import Label, PromptRecord, prompt_id

METHOD = "crawled"
NOT_ASKING, SHORT, LONG, BROKEN = "asks nothing", "too short", "too long", "broken text"
DUPLICATE, NEAR = "duplicate", "near duplicate"
REASONS = (NOT_ASKING, SHORT, LONG, BROKEN, DUPLICATE, NEAR)

_THRESHOLD = 0.7
_REPLACEMENT = "\ufffd"
# Written between letters by Persian, Hindi and others; every other such character hides something.
_JOINERS = "\u200c\u200d"
_LEADING = re.compile(
    r"(?:[-*•>#|]+\s+|\(?\d{1,3}[.)]\s+|\[[^\]]{1,20}\]\s*"
    r"|(?:q|question|re|fwd|title|问题?|提问)\s*[:：]\s*)+",
    re.IGNORECASE,
)


def candidates(pages: Iterable[Page], said: SourcesFile) -> Iterator[Kept | Dropped]:
    """Give the prompts that pages hold, and what is none with the reason.

    It holds the prompts.

    Args:
        pages: The pages.
        said: What was crawled: lengths, licences, and the sets that are known.
    """
    licences = {source.name: source.licence for source in said.sources}
    seen: set[bytes] = set()
    found: list[PromptRecord] = []
    for page in pages:
        for passage in page.passages:
            for text, reason, detail in _texts(passage, said):
                record = _record(text, page, licences[page.source])
                mark = text_mark(record.prompt)
                if reason or mark in seen:
                    yield Dropped(record, reason or DUPLICATE, detail)
                else:
                    seen.add(mark)
                    found.append(record)
    for data in said.known:
        known = earlier_prompts("known", data)
        near_known = _near(found, known.records)
        yield from _dropped(found, near_known, f"{NEAR} of {known.name}")
        found = _left(found, near_known)
    near = near_texts_within(*_compared(found), _THRESHOLD) if found else None
    yield from _dropped(found, near, NEAR)
    yield from (Kept(record) for record in _left(found, near))


class Found(NamedTuple):
    """The file of a snapshot's candidates, how many by language, and what is none by reason."""

    path: Path
    languages: Counter[str]
    dropped: Counter[str]
    failed: Counter[str]


def write_candidates(snapshot: Snapshot) -> Found:
    """Write the candidates of a snapshot, and the texts that are none, each as JSON lines."""
    path = snapshot.folder / "candidates.jsonl"
    languages: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    with (
        path.open("w", encoding="utf-8") as kept_file,
        (snapshot.folder / "dropped.jsonl").open("w", encoding="utf-8") as dropped_file,
    ):
        for outcome in candidates(snapshot.pages(), snapshot.sources):
            said = asdict(outcome.record)
            if isinstance(outcome, Kept):
                languages[outcome.record.language] += 1
                print(json.dumps(said, ensure_ascii=False), file=kept_file)
            else:
                dropped[outcome.reason] += 1
                said |= {"reason": outcome.reason, "detail": outcome.detail}
                print(json.dumps(said, ensure_ascii=False), file=dropped_file)
    failed = Counter(page.failed for page in snapshot.pages() if page.failed)
    return Found(path, languages, dropped, failed)


def tidy(text: str) -> str:
    """Write a text as somebody would type it: no invisible characters, no bullets and numbers."""
    composed = unicodedata.normalize("NFC", " ".join(text.split()))
    shown = "".join(
        char for char in composed if char in _JOINERS or unicodedata.category(char)[0] != "C"
    )
    return _LEADING.sub("", shown, count=1).strip() if _LEADING.match(shown) else shown.strip()


def _texts(passage: str, said: SourcesFile) -> Iterator[tuple[str, str, str]]:
    """Give the texts of a passage that may be prompts, each with why it is none, and the bound."""
    text = tidy(passage)
    if _REPLACEMENT in text:
        yield text, BROKEN, ""
    elif count_words(text) <= said.longest:
        asked = asked_in(text)
        words = count_words(asked or text)
        if words < said.shortest:
            yield asked or text, SHORT, f"{words} words, not {said.shortest}"
        else:
            yield asked or text, "" if asked else NOT_ASKING, ""
    else:
        asking = [one for one in sentences_of(text) if asks_itself(one)]
        fitting = [one for one in asking if said.shortest <= count_words(one) <= said.longest]
        yield from ((one, "", "") for one in fitting)
        if not fitting:
            yield text, LONG, f"{count_words(text)} words, not {said.longest}"


def _record(text: str, page: Page, licence: str) -> PromptRecord:
    language = detect_language(text)
    clean = without_personal_data(text, language, page.authors)
    return PromptRecord(
        id=prompt_id(clean),
        prompt=clean,
        label=Label.UNLABELLED,
        category="",
        language=language,
        source=page.source,
        method=METHOD,
        meta={"url": page.url, "time": page.time, "licence": licence},
    )


def _near(found: Sequence[PromptRecord], known: Sequence[PromptRecord]) -> NearDuplicates | None:
    if not found or not known:
        return None
    return near_texts_of(*_compared(found), *_compared(known), _THRESHOLD)


def _compared(records: Sequence[PromptRecord]) -> tuple[list[str], np.ndarray]:
    texts = [record.prompt for record in records]
    return texts, bands_of(texts, _THRESHOLD)


def _dropped(
    found: Sequence[PromptRecord], near: NearDuplicates | None, reason: str
) -> Iterator[Dropped]:
    if near is not None:
        for number in np.flatnonzero(near.of >= 0).tolist():
            yield Dropped(found[number], reason, f"{near.similarity[number]:.3f}")


def _left(found: Sequence[PromptRecord], near: NearDuplicates | None) -> list[PromptRecord]:
    if near is None:
        return list(found)
    return [found[number] for number in np.flatnonzero(near.of < 0).tolist()]
