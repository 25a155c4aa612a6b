"""The outline of every kind of thing, as polygons in the square from -1 to 1 (x right, y down)."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float64]

WOOD, LEAF, PANE, DARK, BEAK, WHITE = (
    (120, 78, 40),
    (40, 120, 50),
    (205, 228, 240),
    (45, 45, 50),
    (245, 160, 30),
    (250, 250, 250),
)


@dataclass(frozen=True)
class Part:
    """One polygon (n, 2) and its paint.

    ``paint`` is ``body`` (the thing's colour and texture), ``shade`` or ``light`` (its colour darker or lighter), or
    a colour that belongs to the part itself, such as the trunk of a tree.
    """

    points: Points
    paint: str | tuple[int, int, int]


def _polygon(paint: str | tuple[int, int, int], *corners: tuple[float, float]) -> Part:
    return Part(np.array(corners, dtype=np.float64), paint)


def _rectangle(paint: str | tuple[int, int, int], left: float, top: float, right: float, bottom: float) -> Part:
    return _polygon(paint, (left, top), (right, top), (right, bottom), (left, bottom))


def _ellipse(
    paint: str | tuple[int, int, int], x: float, y: float, rx: float, ry: float, turn: float = 0.0, points: int = 28
) -> Part:
    angles = np.linspace(0, 2 * np.pi, points, endpoint=False)
    circle = np.stack([rx * np.cos(angles), ry * np.sin(angles)], axis=1)
    cos, sin = math.cos(turn), math.sin(turn)
    return Part(circle @ np.array([[cos, sin], [-sin, cos]]) + (x, y), paint)


def _arc(paint: str, x: float, y: float, outer: float, inner: float, begin: float, end: float) -> Part:
    """A piece of a ring, angles in degrees clockwise from the right."""
    angles = np.radians(np.linspace(begin, end, 14))
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    ring = np.concatenate([outer * circle, inner * circle[::-1]])
    return Part(np.add(ring, (x, y)), paint)


def _star() -> Part:
    angles = np.radians(-90 + 36 * np.arange(10))
    radii = np.where(np.arange(10) % 2 == 0, 1.05, 0.46)
    return Part(np.stack([radii * np.cos(angles), radii * np.sin(angles) + 0.07], axis=1), "body")


def _petals() -> list[Part]:
    turns = [math.radians(60 * number + 30) for number in range(6)]
    return [
        _ellipse("body", 0.43 * math.cos(turn), -0.33 + 0.43 * math.sin(turn), 0.33, 0.25, turn, 18) for turn in turns
    ]


SHAPES: dict[str, tuple[Part, ...]] = {
    "ball": (
        _ellipse("body", 0, 0, 0.95, 0.95, points=36),
        _ellipse("light", -0.36, -0.42, 0.24, 0.15, -0.6, 16),
    ),
    "box": (
        _polygon("light", (-0.95, -0.5), (-0.5, -0.92), (0.95, -0.92), (0.52, -0.5)),
        _polygon("shade", (0.52, -0.5), (0.95, -0.92), (0.95, 0.5), (0.52, 0.94)),
        _rectangle("body", -0.95, -0.5, 0.52, 0.94),
    ),
    "star": (_star(),),
    "tree": (
        _rectangle(WOOD, -0.16, 0.4, 0.16, 0.98),
        _polygon("body", (0, -0.5), (0.88, 0.6), (-0.88, 0.6)),
        _polygon("body", (0, -1.0), (0.66, 0.02), (-0.66, 0.02)),
    ),
    "house": (
        _rectangle("shade", 0.4, -0.85, 0.62, -0.3),
        _rectangle("body", -0.8, -0.1, 0.8, 0.95),
        _polygon("shade", (-1.0, -0.06), (0, -0.95), (1.0, -0.06)),
        _rectangle(WOOD, -0.5, 0.3, -0.08, 0.95),
        _rectangle(PANE, 0.18, 0.14, 0.58, 0.52),
    ),
    "boat": (
        _rectangle(WOOD, -0.1, -0.95, 0.0, 0.4),
        _polygon("body", (0.06, -0.92), (0.85, 0.24), (0.06, 0.24)),
        _polygon("light", (-0.16, -0.72), (-0.16, 0.24), (-0.74, 0.24)),
        _polygon("body", (-1.0, 0.36), (1.0, 0.36), (0.62, 0.92), (-0.68, 0.92)),
    ),
    "fish": (
        _polygon("body", (0.3, 0), (0.98, -0.6), (0.82, 0), (0.98, 0.6)),
        _polygon("shade", (-0.4, -0.42), (0.1, -0.85), (0.24, -0.38)),
        _ellipse("body", -0.25, 0, 0.73, 0.58),
        _ellipse(WHITE, -0.62, -0.14, 0.14, 0.14, points=14),
        _ellipse(DARK, -0.64, -0.14, 0.07, 0.07, points=10),
    ),
    "car": (
        _polygon("body", (-0.62, -0.02), (-0.36, -0.6), (0.36, -0.6), (0.68, -0.02)),
        _polygon(PANE, (-0.44, -0.06), (-0.26, -0.46), (0.0, -0.46), (0.0, -0.06)),
        _polygon(PANE, (0.08, -0.06), (0.08, -0.46), (0.3, -0.46), (0.5, -0.06)),
        _polygon("body", (-0.98, 0.12), (-0.86, -0.04), (0.86, -0.04), (0.98, 0.12), (0.98, 0.46), (-0.98, 0.46)),
        _ellipse(DARK, -0.52, 0.46, 0.27, 0.27, points=20),
        _ellipse(DARK, 0.52, 0.46, 0.27, 0.27, points=20),
        _ellipse(PANE, -0.52, 0.46, 0.11, 0.11, points=12),
        _ellipse(PANE, 0.52, 0.46, 0.11, 0.11, points=12),
    ),
    "flower": (
        _rectangle(LEAF, -0.06, 0.0, 0.06, 0.98),
        _ellipse(LEAF, 0.3, 0.66, 0.28, 0.12, -0.5, 16),
        _ellipse(LEAF, -0.3, 0.74, 0.28, 0.12, 0.5, 16),
        *_petals(),
        _ellipse(WOOD, 0, -0.33, 0.2, 0.2, points=16),
    ),
    "cup": (
        _arc("body", 0.42, -0.02, 0.52, 0.28, -75, 80),
        _polygon("body", (-0.85, -0.7), (0.5, -0.7), (0.36, 0.92), (-0.7, 0.92)),
        _ellipse("shade", -0.175, -0.7, 0.675, 0.2),
    ),
    "kite": (
        _polygon(WOOD, (-0.03, 0.3), (0.05, 0.3), (0.32, 0.72), (0.12, 0.98), (0.04, 0.96), (0.2, 0.72)),
        _polygon("shade", (0.08, 0.62), (0.4, 0.56), (0.4, 0.84), (0.14, 0.82)),
        _polygon("body", (0, -1.0), (0.74, -0.36), (0, 0.56), (-0.74, -0.36)),
        _polygon("light", (0, -1.0), (0.74, -0.36), (0, -0.36)),
        _polygon("light", (-0.74, -0.36), (0, -0.36), (0, 0.56)),
    ),
    "bird": (
        _polygon(BEAK, (0.7, -0.66), (1.0, -0.44), (0.68, -0.34)),
        _polygon("shade", (-0.45, 0.1), (-1.0, -0.3), (-0.98, 0.28)),
        _polygon(BEAK, (-0.12, 0.5), (-0.04, 0.5), (-0.04, 0.98), (-0.12, 0.98)),
        _polygon(BEAK, (0.14, 0.5), (0.22, 0.5), (0.22, 0.98), (0.14, 0.98)),
        _ellipse("body", 0.0, 0.12, 0.68, 0.54),
        _ellipse("body", 0.44, -0.5, 0.4, 0.4, points=22),
        _polygon("shade", (-0.5, -0.06), (0.24, -0.06), (0.1, 0.34), (-0.36, 0.36)),
        _ellipse(DARK, 0.54, -0.58, 0.08, 0.08, points=10),
    ),
}
