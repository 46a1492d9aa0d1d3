"""Scripts for whole builds whose replies are as long as real ones, each made from the question alone."""

from __future__ import annotations

import hashlib
import json
import re

from scripted_builds import REFUSAL
from servers import Request, case_key

WORDS = [
    "the",
    "neighbour",
    "who",
    "lives",
    "beside",
    "us",
    "near",
    "the",
    "crumbling",
    "watermill",
    "keeps",
    "honeybees",
    "all",
    "summer",
    "with",
    "patience",
]
OTHERS = [
    "weather",
    "market",
    "bread",
    "lamp",
    "river",
    "stone",
    "paper",
    "clock",
    "bridge",
    "music",
    "horse",
    "winter",
    "kitchen",
    "train",
    "mirror",
    "apple",
    "ladder",
    "candle",
    "forest",
    "harbour",
    "pencil",
    "thunder",
    "carpet",
]
ANSWER = "There are several things to know about that. " + "".join(
    # Sentences that aren't alike: a loop would be no answer.
    f"It is {' '.join(OTHERS[(n * n + 7 * n * m + m**3) % len(OTHERS)] for m in range(7))}. "
    for n in range(25)
)


def text(mark: object, words: int) -> str:
    """A text of so many English words that no other mark gives."""
    digits = hashlib.sha256(str(mark).encode()).hexdigest()
    inside = (WORDS[(int(digits[n % 60], 16) + n) % len(WORDS)] for n in range(words - 6))
    return f"What about {digits[:8]} and {' '.join(inside)} in {digits[8:14]}?"


def writer(request: Request) -> str:
    asked = request.question
    if seed := re.search(r"<<<SEED (\w+)\n", asked):
        count = int(re.search(r"(?:into|Write) (\d+) (?:prompts|messages)", asked)[1])
        if "<mark>" not in request.messages[0]["content"]:
            texts = [text((seed[1], n), 16) for n in range(count)]
        else:
            long, end = [text((seed[1], asked, n), 480) for n in range(count)], "very end" in asked
            marks = [f"<mark>{text((one, 'mark'), 25)}</mark>" for one in long]
            pairs = zip(long, marks, strict=True)
            texts = [f"{one} {mark}" if end else f"{mark} {one}" for one, mark in pairs]
    elif topics := re.search(r"Name (\d+) narrower topics", asked):
        texts = [text((asked, n), 12).split(" about ")[1][:30] for n in range(int(topics[1]))]
    else:
        count = int(re.search(r"Write (\d+) new", asked)[1])
        texts = [text((asked, n), 13) for n in range(count)]
    return json.dumps({"texts": texts})


def moderator(request: Request) -> str:
    why = "It asks how a thing comes about, and the answer would help nobody to do it."
    fields = {"category": "none", "verdict": "harmless", "alarm": "4"}
    field = {name: said for name, said in fields.items() if f'"{name}"' in request.question}
    return json.dumps({"why": why, **field, "key": case_key(request)})


def target(request: Request) -> str:
    return (
        REFUSAL
        if int(hashlib.sha256(request.question.encode()).hexdigest(), 16) % 5 == 0
        else ANSWER
    )
