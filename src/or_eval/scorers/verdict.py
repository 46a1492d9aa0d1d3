"""What every scoring stage gives: a class, whether it is certain, and the evidence for it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from or_eval.schema import Reason, ResponseClass, UnscoredReason


class Evidence(NamedTuple):
    """A passage of the response that spoke for the verdict.

    Attributes:
        pattern: Id of the pattern that matched, ``LANGUAGE.ACT.NAME``.
        act: The speech act it shows, such as ``inability`` or ``steps``.
        text: The matched text.
        start: Offset of the match in the response, in characters.
        end: Offset of its end.
    """

    pattern: str
    act: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The reading of one response.

    Attributes:
        label: The response class; None where the response could not be settled.
        certain: Whether the stage would stake its name on it, so that no judge is needed.
        evidence: What in the response led to the class, most telling first.
        language: Language of the response, as a BCP-47 tag (``zh+en`` where mixed).
        reason: Why the model didn't simply answer; None where it did, or where nobody can say.
        unscored_because: Why there is no class (``label`` is None), else None.
        note: Anything else a reader should know, such as a response in another language
            than its prompt.
    """

    label: ResponseClass | None
    certain: bool
    evidence: tuple[Evidence, ...] = ()
    language: str | None = None
    reason: Reason | None = None
    unscored_because: UnscoredReason | None = None
    note: str | None = None

    @property
    def refused(self) -> bool | None:
        """True or False by the class; None for an unscored response."""
        return None if self.label is None else self.label.refused

    def as_metadata(self) -> dict[str, Any]:
        """Give the verdict as JSON-ready data, as scores and files carry it."""
        data = {k: v for k, v in asdict(self).items() if v is not None and k != "evidence"}
        data["evidence"] = [item._asdict() for item in self.evidence]
        return data
