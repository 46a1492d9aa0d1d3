"""Where to write the names of points so that no two of them collide."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin
from typing import NamedTuple

from or_eval.analysis.figures.shown_names import em_width

FONT_SIZE = 11
"""Size of the labels, in pixels."""

_LINE = 13.0
_MARK = 6.0
_NEAR = 9.0
_STEP = 6.0
_FARTHEST = 240.0
_DIRECTIONS = tuple(
    2 * pi * turn / 16 for turn in (0, 1, 15, 8, 7, 9, 4, 12, 2, 14, 6, 10, 3, 13, 5, 11)
)


class Box(NamedTuple):
    """A rectangle in pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """Give the area that two rectangles share."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(width, 0.0) * max(height, 0.0)

    def inside(self, width: float, height: float) -> bool:
        """Tell whether it lies within an area that starts at the origin."""
        return self.left >= 0 and self.top >= 0 and self.right <= width and self.bottom <= height


class Place(NamedTuple):
    """Where a label goes.

    Attributes:
        box: The label's box.
        side: Which side of the box lies towards the point: ``left``, ``right`` or ``center``.
        far: Whether the label needs a line to its point.
    """

    box: Box
    side: str
    far: bool

    @property
    def anchor(self) -> tuple[float, float]:
        """Where the text starts or ends, by its side; its middle for ``center``."""
        middle = (self.box.left + self.box.right) / 2
        x = {"left": self.box.left, "right": self.box.right, "center": middle}[self.side]
        return x, (self.box.top + self.box.bottom) / 2

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """Give the point of the box nearest to a point: where a line from there ends."""
        return (
            min(max(x, self.box.left), self.box.right),
            min(max(y, self.box.top), self.box.bottom),
        )


def place_labels(
    points: Sequence[tuple[float, float]], labels: Sequence[str], width: float, height: float
) -> list[Place]:
    """Place a label beside each point: near it where there is room, farther off otherwise.

    Points in crowds choose last among their equals only by their order, so that the same points
    give the same places. Each label tries sixteen directions on ever wider rings and takes the
    first box that covers no point and no label placed before; if there is none, the least covered.

    Args:
        points: Positions in pixels, y downwards.
        labels: Their texts, a line each.
        width: Width of the area that labels must stay in.
        height: Its height.
    """
    marks = [Box(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in points]
    order = sorted(range(len(points)), key=lambda index: (points[index][1], points[index][0]))
    places: dict[int, Place] = {}
    for index in order:
        taken = [*marks, *(place.box for place in places.values())]
        places[index] = _place(
            points[index], em_width(labels[index]) * FONT_SIZE, taken, width, height
        )
    return [places[index] for index in range(len(points))]


def _place(
    point: tuple[float, float], text_width: float, taken: list[Box], width: float, height: float
) -> Place:
    half_width, half_height = text_width / 2, _LINE / 2
    best, least = Place(Box(*point, *point), "center", far=False), float("inf")
    distance = _NEAR
    while distance <= _FARTHEST:
        for angle in _DIRECTIONS:
            x = point[0] + cos(angle) * (distance + half_width)
            y = point[1] - sin(angle) * (distance + half_height)
            box = Box(x - half_width, y - half_height, x + half_width, y + half_height)
            if not box.inside(width, height):
                continue
            side = "center" if abs(cos(angle)) < 0.5 else "left" if cos(angle) > 0 else "right"
            place = Place(box, side, far=distance > _NEAR)
            covered = sum(box.overlap(other) for other in taken)
            if covered == 0:
                return place
            if covered < least:
                best, least = place, covered
        distance += _STEP
    return best
