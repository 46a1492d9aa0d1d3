"""How similar two texts may be: the one way in which recipes and methods say it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Bounds(BaseModel):
    """How similar a text may be to the one it is compared with.

    Attributes:
        least: Least similarity.
        most: Greatest similarity.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    least: float = Field(default=0, ge=-1, le=1)
    most: float = Field(default=1, ge=-1, le=1)

    @model_validator(mode="after")
    def _in_order(self) -> Bounds:
        if self.least > self.most:
            raise ValueError(f"least ({self.least}) is above most ({self.most})")
        return self

    def breach(self, similarity: float) -> Literal["below", "above"] | None:
        """Tell on which side of the bounds a similarity lies, if it isn't within them."""
        if similarity < self.least:
            return "below"
        return "above" if similarity > self.most else None
