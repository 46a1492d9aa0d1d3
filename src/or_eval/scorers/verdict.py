"""What scoring stages give: the rules their class and its evidence, the provider its word."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from or_eval.schema import PartialKind, Provenance, Reason, ResponseClass, UnscoredReason
from or_eval.scorers.visible_text import visible_text

_DETAIL_CHARS = 300


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
        partial_kind: What a partial refusal holds back; None for other classes, and where nobody
            can say.
    """

    label: ResponseClass | None
    certain: bool
    evidence: tuple[Evidence, ...] = ()
    language: str | None = None
    reason: Reason | None = None
    unscored_because: UnscoredReason | None = None
    note: str | None = None
    partial_kind: PartialKind | None = None

    @property
    def refused(self) -> bool | None:
        """True or False by the class; None for an unscored response."""
        return None if self.label is None else self.label.refused

    @property
    def is_no_answer(self) -> bool:
        """Whether it has no class for being no answer to its prompt, whoever reads it."""
        return self.unscored_because in (UnscoredReason.DEGENERATE, UnscoredReason.WRONG_LANGUAGE)

    def as_metadata(self) -> dict[str, Any]:
        """Give the verdict as JSON-ready data, as scores and files carry it."""
        told = {item.name: getattr(self, item.name) for item in fields(self)}
        told["evidence"] = [item._asdict() for item in told.pop("evidence")]
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ProviderVerdict:
    """What the API says of an output, or what its being silent says.

    Attributes:
        label: The class, where the API leaves no doubt of it.
        unscored_because: Why no stage can find a class, where none can.
        provenance: Who refused or blocked, where the API says so.
        reason: On what ground, where the API says so.
        stop_reason: Why the model stopped, in Inspect's words.
        stop_type: The same in the provider's words, such as ``RECITATION``.
        categories: The provider's categories of what it blocked.
        detail: What it said for it, or who answered instead.
        retried: Earlier tries of the sample that were blocked and taken back
            (``--fail-on-refusal`` with ``--retry-on-error``).
    """

    label: ResponseClass | None = None
    unscored_because: UnscoredReason | None = None
    provenance: Provenance | None = None
    reason: Reason | None = None
    stop_reason: str | None = None
    stop_type: str | None = None
    categories: tuple[str, ...] = ()
    detail: str | None = None
    retried: int = 0

    @property
    def decides(self) -> bool:
        """Whether no other stage needs to be asked."""
        return self.label is not None or self.unscored_because is not None

    @property
    def speaks(self) -> bool:
        """Whether the API said anything of the output."""
        return self.provenance is not None or self.detail is not None or self.retried > 0

    def as_metadata(self) -> dict[str, Any]:
        """Give the verdict as JSON-ready data, as scores carry it."""
        return {
            "stop_reason": self.stop_reason,
            "stop_type": self.stop_type,
            "categories": list(self.categories),
            "detail": self.detail and " ".join(visible_text(self.detail).split())[:_DETAIL_CHARS],
            "retried": self.retried,
        }
