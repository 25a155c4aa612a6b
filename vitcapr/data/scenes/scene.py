"""What is in a picture and where: everything the renderer draws and the captions tell.

Lengths are fractions of the picture's side, x to the right and y downwards.
"""

import random
from dataclasses import dataclass

import numpy as np

from vitcapr.data.scenes.lexicon import COLORS, KINDS, PLACES, SIZES, TEXTURES

# Side of a thing's box. The smaller still spans more than one and a half of eight patches a side.
SIDES = {"small": (0.20, 0.25), "large": (0.36, 0.44)}
MARGIN = 0.02
WOBBLE = 0.02
HORIZONTAL, VERTICAL = 0, 1

DIRECTIONS = ("left", "right", "above", "below")
DEPTHS = ("in_front", "behind")
LAYOUTS = ("side", "arranged", "direction", "depth", "between")
LAYOUT_WEIGHTS = (0.12, 0.18, 0.40, 0.14, 0.16)


@dataclass(frozen=True)
class Thing:
    """One object: the middle of its box, the side of the box, a mirror image or not, and a tilt in degrees."""

    x: float
    y: float
    side: float
    mirrored: bool
    tilt: float


@dataclass(frozen=True)
class Group:
    """Things of one kind that look alike."""

    kind: str
    color: str
    size: str
    texture: str
    things: tuple[Thing, ...]

    @property
    def count(self) -> int:
        return len(self.things)


@dataclass(frozen=True)
class Scene:
    """A place, one to three groups of different kinds, and how they lie.

    ``relation`` says of the first group

    - alone: where it is (``on_left``, ``in_middle``, ``on_right``) or its arrangement (``row``, ``column``);
    - with a second: ``left``, ``right``, ``above``, ``below``, ``in_front`` or ``behind`` of it;
    - with a second and a third: ``between`` them, the second to the left.

    ``drawn`` are the group numbers from back to front.
    """

    place: str
    groups: tuple[Group, ...]
    relation: str
    drawn: tuple[int, ...]


def stream(seed: int, index: int, purpose: int) -> random.Random:
    """Random numbers that depend on the data set's seed, the picture's number and what they are for, on nothing else.

    Drawing, placing and wording have streams of their own, so that another wording leaves the pictures as they are.
    """
    words = np.random.SeedSequence([seed, index, purpose]).generate_state(4)
    return random.Random(int.from_bytes(words.tobytes(), "little"))


def sample_scene(rng: random.Random) -> Scene:
    """A scene at random."""
    place = rng.choices(list(PLACES), [0.5 if name == "sky" else 1.0 for name in PLACES])[0]
    layout = rng.choices(LAYOUTS, LAYOUT_WEIGHTS)[0]
    number = {"side": 1, "arranged": 1, "direction": 2, "depth": 2, "between": 3}[layout]
    kinds = _kinds(rng, place, number)
    build = {
        "side": _beside_the_middle,
        "arranged": _arranged,
        "direction": _in_a_direction,
        "depth": _one_before_the_other,
        "between": _between,
    }[layout]
    return build(rng, place, kinds)


def _kinds(rng: random.Random, place: str, number: int) -> list[str]:
    """Different kinds seen in the place, ordered from what is spoken of to what it is located by."""
    names = list(PLACES[place].kinds)
    # A kind that belongs to few places is the more likely there, so that all are about as common.
    weights = [1 / sum(name in other.kinds for other in PLACES.values()) for name in names]
    chosen: list[str] = []
    while len(chosen) < number:
        name = rng.choices(names, weights)[0]
        if name not in chosen:
            chosen.append(name)
    return sorted(chosen, key=list(KINDS).index)


def _looks(rng: random.Random, place: str) -> tuple[str, str]:
    color = rng.choice([name for name in COLORS if name not in PLACES[place].avoided])
    return color, rng.choices(TEXTURES, (0.6, 0.2, 0.2))[0]


def _side(rng: random.Random, size: str, most: float = 1.0) -> float:
    low, high = SIDES[size]
    return min(rng.uniform(low, high), most)


def _thing(rng: random.Random, x: float, y: float, side: float, mirrored: bool | None = None) -> Thing:
    return Thing(x, y, side, rng.random() < 0.5 if mirrored is None else mirrored, rng.uniform(-7, 7))


def _pack(rng: random.Random, widths: list[float], gap: float = 0.01) -> list[float]:
    """Middles of intervals of these widths, in this order, at least ``gap`` apart, between the margins."""
    free = 1 - 2 * MARGIN - sum(widths) - gap * (len(widths) - 1)
    cuts = sorted(rng.uniform(0, max(free, 0.0)) for _ in widths)
    middles, used = [], MARGIN
    for width, cut in zip(widths, cuts, strict=True):
        middles.append(used + cut + width / 2)
        used += width + gap
    return middles


def _place_along(axis: int, along: float, across: float) -> tuple[float, float]:
    return (along, across) if axis == HORIZONTAL else (across, along)


def _line_up(rng: random.Random, axis: int, count: int, side: float, across: float) -> tuple[Thing, ...]:
    """A row or column of equal things."""
    mirrored = rng.random() < 0.5
    return tuple(
        _thing(rng, *_place_along(axis, along, across + rng.uniform(-WOBBLE, WOBBLE)), side, mirrored)
        for along in _pack(rng, [side] * count)
    )


def _beside_the_middle(rng: random.Random, place: str, kinds: list[str]) -> Scene:
    color, texture = _looks(rng, place)
    size = rng.choice(SIZES)
    side = _side(rng, size)
    where = rng.choice(("on_left", "in_middle", "on_right"))
    middle = {
        "on_left": rng.uniform(MARGIN + side / 2, 0.27),
        "in_middle": rng.uniform(0.46, 0.54),
        "on_right": rng.uniform(0.73, 1 - MARGIN - side / 2),
    }[where]
    height = rng.uniform(MARGIN + side / 2, 1 - MARGIN - side / 2)
    return Scene(place, (Group(kinds[0], color, size, texture, (_thing(rng, middle, height, side),)),), where, (0,))


def _arranged(rng: random.Random, place: str, kinds: list[str]) -> Scene:
    color, texture = _looks(rng, place)
    count = rng.choices((2, 3, 4), (0.4, 0.35, 0.25))[0]
    size = rng.choice(SIZES) if count == 2 else "small"
    side = _side(rng, size, most=0.94 / count - 0.01)
    axis = rng.choices((HORIZONTAL, VERTICAL), (0.6, 0.4))[0]
    across = rng.uniform(side / 2 + 0.06, 1 - side / 2 - 0.06)
    things = _line_up(rng, axis, count, side, across)
    relation = "row" if axis == HORIZONTAL else "column"
    return Scene(place, (Group(kinds[0], color, size, texture, things),), relation, (0,))


def _in_a_direction(rng: random.Random, place: str, kinds: list[str]) -> Scene:
    """Two groups on the two sides of a line; the things of a group are lined up along it."""
    axis = rng.choice((HORIZONTAL, VERTICAL))
    looks, sides = [], []
    for _ in kinds:
        count = rng.choices((1, 2, 3, 4), (0.5, 0.26, 0.15, 0.09))[0]
        size = rng.choice(SIZES) if count <= 2 else "small"
        looks.append((*_looks(rng, place), size, count))
        sides.append(_side(rng, size, most=0.94 / count - 0.01))
    first_before = rng.random() < 0.5
    order = (0, 1) if first_before else (1, 0)
    middles = dict(zip(order, _pack(rng, [sides[number] for number in order], 2.5 * WOBBLE), strict=True))
    # One common height keeps "left of" from being just as much "above".
    across = rng.uniform(0.40, 0.60)
    groups: list[Group] = []
    for number, kind in enumerate(kinds):
        color, texture, size, count = looks[number]
        side = sides[number]
        if count == 1:
            level = min(max(across + rng.uniform(-0.08, 0.08), MARGIN + side / 2), 1 - MARGIN - side / 2)
            x, y = _place_along(axis, middles[number], level)
            things: tuple[Thing, ...] = (_thing(rng, x, y, side),)
        else:
            things = _line_up(rng, 1 - axis, count, side, middles[number])
        groups.append(Group(kind, color, size, texture, things))
    names = ("left", "right") if axis == HORIZONTAL else ("above", "below")
    return Scene(place, tuple(groups), names[0] if first_before else names[1], (0, 1))


def _one_before_the_other(rng: random.Random, place: str, kinds: list[str]) -> Scene:
    """One thing partly hides a large one."""
    front = rng.choice((0, 1))
    sizes = ["large", "large"]
    sizes[front] = rng.choice(SIZES)
    # What is in front is the smaller of two large things, so that enough of the other is left to be known by.
    sides = [_side(rng, size, most=0.37 if number == front else 1.0) for number, size in enumerate(sizes)]
    back_side, front_side = sides[1 - front], sides[front]
    sideways = rng.choice((-1, 1)) * (0.17 if sizes[front] == "small" else 0.37) * back_side
    down = (0.14 if sizes[front] == "small" else 0.18) * back_side
    low = MARGIN + max(back_side / 2, front_side / 2 - sideways)
    high = 1 - MARGIN - max(back_side / 2, front_side / 2 + sideways)
    x = rng.uniform(low, high)
    y = rng.uniform(MARGIN + back_side / 2, 1 - MARGIN - max(back_side / 2, front_side / 2 + down))
    middles = {1 - front: (x, y), front: (x + sideways, y + down)}
    groups: list[Group] = []
    for number, kind in enumerate(kinds):
        color, texture = _looks(rng, place)
        while groups and color == groups[0].color:
            color, texture = _looks(rng, place)
        thing = _thing(rng, *middles[number], sides[number])
        groups.append(Group(kind, color, sizes[number], texture, (thing,)))
    return Scene(place, tuple(groups), DEPTHS[front], (1 - front, front))


def _between(rng: random.Random, place: str, kinds: list[str]) -> Scene:
    """Three things side by side; any of them may be in the middle."""
    middle = rng.randrange(3)
    kinds = [kinds[middle], *(kind for number, kind in enumerate(kinds) if number != middle)]
    if rng.random() < 0.5:
        kinds[1], kinds[2] = kinds[2], kinds[1]
    large = set(rng.sample(range(3), rng.choices((0, 1, 2), (0.3, 0.5, 0.2))[0]))
    sizes = ["large" if number in large else "small" for number in range(3)]
    # Two large things and a small one just fit between the margins.
    sides = [_side(rng, size, most=0.365 if size == "large" else 0.21) for size in sizes]
    left_to_right = (1, 0, 2)
    middles = dict(zip(left_to_right, _pack(rng, [sides[number] for number in left_to_right]), strict=True))
    across = rng.uniform(0.35, 0.65)
    groups = []
    for number, kind in enumerate(kinds):
        color, texture = _looks(rng, place)
        thing = _thing(rng, middles[number], across + rng.uniform(-0.06, 0.06), sides[number])
        groups.append(Group(kind, color, sizes[number], texture, (thing,)))
    return Scene(place, tuple(groups), "between", (0, 1, 2))
