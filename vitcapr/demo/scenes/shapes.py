"""The outline of every kind of thing: what ``shapes.yaml`` says, as polygons in the square from -1 to 1."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import yaml

Points = npt.NDArray[np.float64]


class Part(NamedTuple):
    """One polygon (n, 2) and the name of its paint."""

    points: Points
    paint: str


def _rectangle(left: float, top: float, right: float, bottom: float) -> Points:
    return np.array([(left, top), (right, top), (right, bottom), (left, bottom)], np.float64)


def _ellipse(x: float, y: float, rx: float, ry: float, turn: float = 0.0, points: int = 28) -> Points:
    angles = np.linspace(0, 2 * np.pi, points, endpoint=False)
    circle = np.stack([rx * np.cos(angles), ry * np.sin(angles)], axis=1)
    cos, sin = math.cos(turn), math.sin(turn)
    turned: Points = circle @ np.array([[cos, sin], [-sin, cos]]) + (x, y)
    return turned


def _arc(x: float, y: float, outer: float, inner: float, begin: float, end: float) -> Points:
    angles = np.radians(np.linspace(begin, end, 14))
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    ring: Points = np.add(np.concatenate([outer * circle, inner * circle[::-1]]), (x, y))
    return ring


def _star(outer: float, inner: float, y: float) -> Points:
    angles = np.radians(-90 + 36 * np.arange(10))
    radii = np.where(np.arange(10) % 2 == 0, outer, inner)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles) + y], axis=1)


def _petals(number: int, y: float, distance: float, rx: float, ry: float) -> Iterator[Points]:
    for turn in (math.radians(360 / number * place + 30) for place in range(number)):
        yield _ellipse(distance * math.cos(turn), y + distance * math.sin(turn), rx, ry, turn, 18)


_FORMS: dict[str, Callable[..., Points]] = {
    "polygon": lambda *corners: np.array(corners, np.float64),
    "rectangle": _rectangle,
    "ellipse": _ellipse,
    "arc": _arc,
    "star": _star,
}


def _parts(paint: str, petals: list[Any] | None = None, **form: list[Any]) -> list[Part]:
    outlines = [_FORMS[name](*numbers) for name, numbers in form.items()] if petals is None else _petals(*petals)
    return [Part(points, paint) for points in outlines]


_CONTENT = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
PAINTS: dict[str, tuple[int, int, int]] = {name: tuple(rgb) for name, rgb in _CONTENT.pop("paints").items()}
"""The colours of parts that do not have the colour of the thing."""
SHAPES: dict[str, list[Part]] = {
    kind: [part for entry in entries for part in _parts(**entry)] for kind, entries in _CONTENT.items()
}
