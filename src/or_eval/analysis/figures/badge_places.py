"""Where to put numbered badges on points so that no two of them collide."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, hypot, pi, sin

RADIUS = 8.0
"""Radius of a badge, in pixels."""

_MARK = 3.0
_STEP = 4.0
_FARTHEST = 120.0
_DIRECTIONS = tuple(2 * pi * turn / 16 for turn in (2, 14, 6, 10, 1, 15, 7, 9, 3, 5, 13, 11, 0, 8))

Point = tuple[float, float]


def place_badges(points: Sequence[Point], width: float, height: float) -> list[Point]:
    """Place a badge on each point, or beside it where another is in the way.

    A badge stays on its point unless it would cover another point or badge. Otherwise it tries
    directions on ever wider rings, diagonals first (intervals go across and up), and takes the
    first place where it covers neither; if there is none, where it covers least.

    Args:
        points: Positions in pixels.
        width: Width of the area that badges keep to.
        height: Its height.

    Returns:
        How far from its point each badge goes, in pixels.
    """
    places: list[Point] = []
    for index, point in enumerate(points):
        others = [other for at, other in enumerate(points) if at != index]
        places.append(_place(point, others, places, width, height))
    return [
        (place[0] - point[0], place[1] - point[1])
        for place, point in zip(places, points, strict=True)
    ]


def _place(
    point: Point, others: Sequence[Point], badges: Sequence[Point], width: float, height: float
) -> Point:
    best, least = point, float("inf")
    distance = 0.0
    while distance <= _FARTHEST:
        for angle in _DIRECTIONS if distance else (0.0,):
            place = (point[0] + distance * cos(angle), point[1] - distance * sin(angle))
            if distance and not (0 <= place[0] <= width and 0 <= place[1] <= height):
                continue
            covered = sum(_covered(place, other, RADIUS + _MARK) for other in others)
            covered += sum(_covered(place, other, 2 * RADIUS + 1) for other in badges)
            if distance:
                covered += _covered(place, point, RADIUS + _MARK)
            if covered == 0:
                return place
            if covered < least:
                best, least = place, covered
        distance += _STEP
    return best


def _covered(one: Point, other: Point, reach: float) -> float:
    return max(reach - hypot(one[0] - other[0], one[1] - other[1]), 0.0)
