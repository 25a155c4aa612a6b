"""Renders a scene: the picture and the object of each pixel."""

import math
import random
from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw

from vitcapr.demo.scenes.lexicon import COLORS, PLACES, Place, Rgb
from vitcapr.demo.scenes.scene import Group, Scene, Thing
from vitcapr.demo.scenes.shapes import PAINTS, SHAPES, Part, Points

OVERSAMPLING = 3


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
    first_label = [1]
    for group in scene.groups:
        first_label.append(first_label[-1] + group.count)
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
    outlines: list[list[float]] = [_to_pixels(part.points, thing, side).ravel().tolist() for part in parts]
    if place.casts_shadow:
        x, y, half = thing.x * side, thing.y * side, thing.side * side / 2
        box = (x - 0.85 * half, y + 0.78 * half, x + 0.85 * half, y + 1.08 * half)
        draw.ellipse(box, fill=_mix(place.gradient[1], (0, 0, 0), 0.3))
    width = max(2, round(side * 0.011))
    for outline in outlines:
        joint = "curve" if len(outline) <= 2 * 12 else None
        draw.line(outline + outline[:4], fill=place.outline, width=width, joint=joint)
    texture = None if group.texture == "plain" else _texture(group, thing, side, color)
    for part, outline in zip(parts, outlines, strict=True):
        draw_label.polygon(outline, fill=label)
        if part.paint == "body" and texture is not None:
            _paste_texture(picture, texture, outline)
        else:
            draw.polygon(outline, fill=_paint(part, color))


def _paint(part: Part, color: Rgb) -> Rgb:
    if part.paint == "body":
        return color
    if part.paint == "shade":
        return _mix(color, (0, 0, 0), 0.28) if max(color) > 80 else _mix(color, (255, 255, 255), 0.18)
    if part.paint == "light":
        return _mix(color, (255, 255, 255), 0.42) if min(color) < 200 else _mix(color, (0, 0, 0), 0.12)
    return PAINTS[part.paint]


def _to_pixels(points: Points, thing: Thing, side: int) -> Points:
    """From the shape's square to the supersampled picture: mirrored, tilted, scaled, moved."""
    angle = math.radians(thing.tilt)
    cos, sin = math.cos(angle), math.sin(angle)
    flip = -1.0 if thing.mirrored else 1.0
    half = thing.side * side / 2
    turn = half * np.array([[flip * cos, flip * sin], [-sin, cos]])
    moved: Points = points @ turn + (thing.x * side, thing.y * side)
    return moved


def _texture(group: Group, thing: Thing, side: int, color: Rgb) -> tuple[Image.Image, tuple[int, int]]:
    """A tile of stripes or dots as large as the thing, and where its corner lies in the picture."""
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


def _grass(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    shades = _mix(color, (20, 80, 10), 0.35), _mix(color, (220, 255, 140), 0.3)
    for number in range(90):
        x, y = rng.random() * side, rng.random() * side
        height = side * (0.02 + 0.025 * rng.random())
        draw.line((x, y, x + height * (rng.random() - 0.5), y - height), fill=shades[number % 2], width=3)


def _specks(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, shades: tuple[Rgb, Rgb], number: int) -> None:
    for count in range(number):
        x, y, radius = rng.random() * side, rng.random() * side, side * (0.003 + 0.004 * rng.random())
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=shades[count % 2])


def _sand(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    _specks(draw, side, rng, (_mix(color, (120, 84, 40), 0.3), _mix(color, (255, 255, 255), 0.4)), 90)


def _snow(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    for _ in range(4):
        x, y, width = rng.random() * side, rng.random() * side, side * (0.3 + 0.4 * rng.random())
        draw.arc((x - width / 2, y, x + width / 2, y + width / 3), 190, 350, _mix(color, (130, 160, 200), 0.3), 4)
    _specks(draw, side, rng, ((255, 255, 255), _mix(color, (140, 170, 205), 0.35)), 50)


def _water(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    light = _mix(color, (255, 255, 255), 0.4)
    for _ in range(26):
        x, y, width = rng.random() * side, rng.random() * side, side * (0.05 + 0.05 * rng.random())
        draw.arc((x, y, x + width, y + width / 2), 20, 160, light, 4)
        draw.arc((x + width * 0.94, y, x + 1.94 * width, y + width / 2), 20, 160, light, 4)


def _sky(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    white = _mix(color, (255, 255, 255), 0.75)
    for _ in range(rng.randrange(3, 6)):
        x, y, size = rng.random() * side, rng.random() * side, side * (0.05 + 0.05 * rng.random())
        for dx, dy, scale in ((-1.2, 0.25, 0.7), (0, 0, 1.0), (1.2, 0.3, 0.75)):
            radius = size * scale
            middle_x, middle_y = x + dx * size, y + dy * size
            draw.ellipse((middle_x - radius, middle_y - radius, middle_x + radius, middle_y + radius * 0.7), fill=white)


def _night(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    _specks(draw, side, rng, (_mix(color, (255, 255, 230), 0.8), _mix(color, (255, 255, 255), 0.45)), 45)


def _wall(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    mortar = _mix(color, (236, 222, 208), 0.55)
    height, width = side / 11, side / 5.5
    down = rng.random() * height
    for row in range(-1, 12):
        y = down + row * height
        draw.line((0, y, side, y), fill=mortar, width=3)
        shift = (row % 2) * width / 2
        for column in range(7):
            x = column * width + shift
            draw.line((x, y, x, y + height), fill=mortar, width=3)


def _floor(draw: ImageDraw.ImageDraw, side: int, rng: random.Random, color: Rgb) -> None:
    seam = _mix(color, (80, 48, 20), 0.4)
    height = side / 7
    down = rng.random() * height
    for row in range(-1, 8):
        y = down + row * height
        draw.line((0, y, side, y), fill=seam, width=3)
        x = rng.random() * side
        draw.line((x, y, x, y + height), fill=seam, width=3)


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
