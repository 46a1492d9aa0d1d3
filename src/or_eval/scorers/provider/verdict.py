"""What an output says before anybody reads its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from or_eval.schema import Provenance, Reason, ResponseClass, UnscoredReason
from or_eval.scorers.visible_text import visible_text

_DETAIL_CHARS = 300


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
