"""Renders a scene: the picture and the object of each pixel. ``shapes.yaml`` has the outline of every kind of thing."""

import math
import random
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml
from PIL import Image, ImageDraw

from vitcapr.extensions.demo.lexicon import COLORS, PLACES, Place, Rgb
from vitcapr.extensions.demo.scene import Group, Scene, Thing

OVERSAMPLING = 3
BLACK, WHITE = (0, 0, 0), (255, 255, 255)
Points = npt.NDArray[np.float64]
"""Corners (n, 2) of a polygon; of a shape, in the square from -1 to 1."""


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
    angles, radii = np.radians(-90 + 36 * np.arange(10)), np.tile([outer, inner], 5)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles) + y], axis=1)


def _petals(number: int, y: float, distance: float, rx: float, ry: float) -> list[Points]:
    turns = [math.radians(360 / number * place + 30) for place in range(number)]
    return [_ellipse(distance * math.cos(turn), y + distance * math.sin(turn), rx, ry, turn, 18) for turn in turns]


_FORMS: dict[str, Callable[..., list[Points]]] = {
    "polygon": lambda *corners: [np.array(corners, np.float64)],
    "rectangle": lambda left, top, right, bottom: [
        np.array([(left, top), (right, top), (right, bottom), (left, bottom)], np.float64)
    ],
    "ellipse": lambda *numbers: [_ellipse(*numbers)],
    "arc": lambda *numbers: [_arc(*numbers)],
    "star": lambda *numbers: [_star(*numbers)],
    "petals": _petals,
}
_CONTENT: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("shapes.yaml").read_text(encoding="utf-8"))
PAINTS: dict[str, Rgb] = {name: tuple(rgb) for name, rgb in _CONTENT.pop("paints").items()}
"""The colours of parts that do not have the colour of the thing."""
SHAPES: dict[str, list[tuple[str, Points]]] = {
    kind: [
        (entry["paint"], points)
        for entry in entries
        for form in entry.keys() & _FORMS.keys()
        for points in _FORMS[form](*entry[form])
    ]
    for kind, entries in _CONTENT.items()
}
"""The parts of each kind from back to front: the name of its paint, and its polygon."""


def render(scene: Scene, size: int, rng: random.Random) -> tuple[Image.Image, Image.Image]:
    """Draw a scene.

    Args:
        size: width and height in pixels.
        rng: for what no caption tells: shades, blades of grass, clouds.

    Returns:
        The RGB picture, and an 8-bit label picture of the same size: 0 where no object is seen, else the object's
        label. Objects are numbered from 1 in the order of ``scene.groups`` and their things.
    """
    side = size * OVERSAMPLING
    place = PLACES[scene.place]
    picture = _background(scene.place, side, rng)
    labels = Image.new("L", (side, side), 0)
    first_label = list(accumulate((group.count for group in scene.groups), initial=1))
    for number in scene.drawn:
        group = scene.groups[number]
        color = _jitter(COLORS[group.color].rgb, rng, 8)
        for offset, thing in enumerate(group.things):
            _draw_thing(picture, labels, place, group, thing, color, first_label[number] + offset)
    return picture.reduce(OVERSAMPLING), labels.resize((size, size), Image.Resampling.NEAREST)


def _draw_thing(
    picture: Image.Image, labels: Image.Image, place: Place, group: Group, thing: Thing, color: Rgb, label: int
) -> None:
    side = picture.width
    draw, draw_label = ImageDraw.Draw(picture), ImageDraw.Draw(labels)
    parts = SHAPES[group.kind]
    # x0, y0, x1, y1, ...: the form that Pillow draws fastest.
    outlines: list[list[float]] = [_to_pixels(points, thing, side).ravel().tolist() for _, points in parts]
    if place.casts_shadow:
        x, y, half = thing.x * side, thing.y * side, thing.side * side / 2
        box = (x - 0.85 * half, y + 0.78 * half, x + 0.85 * half, y + 1.08 * half)
        draw.ellipse(box, fill=_mix(place.gradient[1], BLACK, 0.3))
    width = max(2, round(side * 0.011))
    for outline in outlines:
        joint = "curve" if len(outline) <= 2 * 12 else None
        draw.line(outline + outline[:4], fill=place.outline, width=width, joint=joint)
    texture = None if group.texture == "plain" else _texture(group, thing, side, color)
    paints = {
        **PAINTS,
        "body": color,
        "shade": _mix(color, BLACK, 0.28) if max(color) > 80 else _mix(color, WHITE, 0.18),
        "light": _mix(color, WHITE, 0.42) if min(color) < 200 else _mix(color, BLACK, 0.12),
    }
    for (paint, _), outline in zip(parts, outlines, strict=True):
        draw_label.polygon(outline, fill=label)
        if paint == "body" and texture is not None:
            _paste_texture(picture, texture, outline)
        else:
            draw.polygon(outline, fill=paints[paint])


def _to_pixels(points: Points, thing: Thing, side: int) -> Points:
    """Map points from the shape's square to the supersampled picture: mirrored, tilted, scaled, moved."""
    angle = math.radians(thing.tilt)
    cos, sin = math.cos(angle), math.sin(angle)
    flip = -1.0 if thing.mirrored else 1.0
    half = thing.side * side / 2
    turn = half * np.array([[flip * cos, flip * sin], [-sin, cos]])
    moved: Points = points @ turn + (thing.x * side, thing.y * side)
    return moved


def _texture(group: Group, thing: Thing, side: int, color: Rgb) -> tuple[Image.Image, tuple[int, int]]:
    """Return a tile of stripes or dots as large as the thing, and where its corner lies in the picture."""
    extent = math.ceil(thing.side * side * 1.2)
    mark = (54, 54, 62) if group.color in ("white", "yellow") else (250, 250, 250)
    tile = Image.new("RGB", (extent, extent), color)
    draw = ImageDraw.Draw(tile)
    # The marks grow less than the thing, so that they can be seen on a small one and stay a texture on a large one.
    step = side * (0.042 + 0.055 * thing.side)
    if group.texture == "striped":
        width = round(0.42 * step)
        for number in range(-1, math.ceil(2 * extent / step) + 1):
            at = number * step
            draw.line((at - extent, extent, at, 0), fill=mark, width=width)
    else:
        radius = 0.27 * step
        for row in range(math.ceil(extent / step) + 1):
            for column in range(math.ceil(extent / step) + 1):
                x, y = (column + 0.5 * (row % 2)) * step, row * step
                draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=mark)
    return tile, (round(thing.x * side - extent / 2), round(thing.y * side - extent / 2))


def _paste_texture(picture: Image.Image, texture: tuple[Image.Image, tuple[int, int]], outline: list[float]) -> None:
    tile, (left, top) = texture
    shape = Image.new("1", tile.size, 0)
    moved = [value - (top if number % 2 else left) for number, value in enumerate(outline)]
    ImageDraw.Draw(shape).polygon(moved, fill=1)
    picture.paste(tile, (left, top), shape)


def _background(place: str, side: int, rng: random.Random) -> Image.Image:
    top, bottom = (_jitter(color, rng, 7) for color in PLACES[place].gradient)
    ramp = np.linspace(0, 1, 64)[:, None]
    column = np.rint((1 - ramp) * np.array(top) + ramp * np.array(bottom)).astype(np.uint8)
    picture = Image.fromarray(column[:, None, :]).resize((side, side), Image.Resampling.BILINEAR)
    _DETAILS[place](ImageDraw.Draw(picture), side, rng, _mix(top, bottom, 0.5))
    return picture


def _spots(rng: random.Random, side: int, number: int, least: float, more: float) -> Iterator[tuple[float, ...]]:
    """Places at random, each with a size in parts of the side: ``least``, and up to ``more`` larger."""
    for _ in range(number):
        yield rng.random() * side, rng.random() * side, side * (least + more * rng.random())


def _specks(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, shades: tuple[Rgb, Rgb], number: int) -> None:
    for count, (x, y, radius) in enumerate(_spots(rng, side, number, 0.003, 0.004)):
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=shades[count % 2])


def _grass(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    shades = _mix(color, (20, 80, 10), 0.35), _mix(color, (220, 255, 140), 0.3)
    for number, (x, y, height) in enumerate(_spots(rng, side, 90, 0.02, 0.025)):
        draw.line((x, y, x + height * (rng.random() - 0.5), y - height), fill=shades[number % 2], width=3)


def _sand(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    _specks(draw, side, rng, (_mix(color, (120, 84, 40), 0.3), _mix(color, WHITE, 0.4)), 90)


def _snow(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    for x, y, width in _spots(rng, side, 4, 0.3, 0.4):
        draw.arc((x - width / 2, y, x + width / 2, y + width / 3), 190, 350, _mix(color, (130, 160, 200), 0.3), 4)
    _specks(draw, side, rng, (WHITE, _mix(color, (140, 170, 205), 0.35)), 50)


def _water(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    for x, y, width in _spots(rng, side, 26, 0.05, 0.05):
        for left, right in ((x, x + width), (x + width * 0.94, x + 1.94 * width)):
            draw.arc((left, y, right, y + width / 2), 20, 160, _mix(color, WHITE, 0.4), 4)


def _sky(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    for x, y, size in _spots(rng, side, rng.randrange(3, 6), 0.05, 0.05):
        for dx, dy, scale in ((-1.2, 0.25, 0.7), (0, 0, 1.0), (1.2, 0.3, 0.75)):
            radius, across, down = size * scale, x + dx * size, y + dy * size
            box = (across - radius, down - radius, across + radius, down + radius * 0.7)
            draw.ellipse(box, fill=_mix(color, WHITE, 0.75))


def _night(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    _specks(draw, side, rng, (_mix(color, (255, 255, 230), 0.8), _mix(color, WHITE, 0.45)), 45)


def _lines_across(
    draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb, rows: int
) -> Iterator[tuple[int, float]]:
    """Yield the number and the top of each row; it is drawn before the row is yielded."""
    down = rng.random() * (side / rows)
    for row in range(-1, rows + 1):
        y = down + row * (side / rows)
        draw.line((0, y, side, y), fill=color, width=3)
        yield row, y


def _wall(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    mortar, width = _mix(color, (236, 222, 208), 0.55), side / 5.5
    for row, y in _lines_across(draw, side, rng, mortar, 11):
        for x in (column * width + (row % 2) * width / 2 for column in range(7)):
            draw.line((x, y, x, y + side / 11), fill=mortar, width=3)


def _floor(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    seam = _mix(color, (80, 48, 20), 0.4)
    for _, y in _lines_across(draw, side, rng, seam, 7):
        x = rng.random() * side
        draw.line((x, y, x, y + side / 7), fill=seam, width=3)


_DETAILS: dict[str, Callable[[ImageDraw.ImageDraw, int, random.Random, Rgb], None]] = {
    draw.__name__.strip("_"): draw for draw in (_grass, _sand, _snow, _water, _sky, _night, _wall, _floor)
}
"""By the place."""


def _mix(color: Rgb, other: Rgb, share: float) -> Rgb:
    """``color`` moved towards ``other`` by ``share``."""
    red, green, blue = (round((1 - share) * a + share * b) for a, b in zip(color, other, strict=True))
    return red, green, blue


def _jitter(color: Rgb, rng: random.Random, most: int) -> Rgb:
    red, green, blue = (min(max(value + rng.randint(-most, most), 0), 255) for value in color)
    return red, green, blue
