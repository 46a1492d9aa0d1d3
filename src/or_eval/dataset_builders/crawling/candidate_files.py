"""The candidates of a snapshot as files beside its pages."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from or_eval.dataset_builders.crawling.candidates import candidates
from or_eval.dataset_builders.crawling.snapshot import Snapshot
from or_eval.dataset_builders.engine.stage import Kept

CANDIDATES, DROPPED = "candidates.jsonl", "dropped.jsonl"


class Found(NamedTuple):
    """What came of a snapshot.

    Attributes:
        path: The file of candidates.
        languages: How many there are by language.
        dropped: How many texts are none, by reason.
        failed: How many pages weren't had, by reason.
    """

    path: Path
    languages: Counter[str]
    dropped: Counter[str]
    failed: Counter[str]


def write_candidates(snapshot: Snapshot) -> Found:
    """Write the candidates of a snapshot, and the texts that are none, each as JSON lines."""
    path = snapshot.folder / CANDIDATES
    languages: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    with (
        path.open("w", encoding="utf-8") as kept_file,
        (snapshot.folder / DROPPED).open("w", encoding="utf-8") as dropped_file,
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
