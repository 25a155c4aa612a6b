"""A scene: the objects of a picture and their places, for the renderer and the captions.

Lengths are fractions of the picture's side, x to the right and y downwards.
"""

import math
import random
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from vitcapr.extensions.demo.lexicon import COLORS, KINDS, LEXICON, PLACES

# Things stand in squares of so many cells of an invisible lattice, and fill most of their square. Where a cell is as
# large as a patch of the ViT, a thing looks the same in its patches wherever it stands: a network of a few layers then
# learns the kinds from a few thousand pictures in a minute (99 % of patches; 70 % on a lattice twice as fine).
LATTICE = 8
CELLS = {"small": 2, "large": 3}
SIDES = {"small": 0.23, "large": 0.36}
TILT = 3
HORIZONTAL, VERTICAL = 0, 1

SIZES, TEXTURES = list(LEXICON.sizes), list(LEXICON.textures)
DIRECTIONS = ("left", "right", "above", "below")
DEPTHS = ("in_front", "behind")
_OPPOSITES = {"left": "right", "above": "below", "in_front": "behind", "on_left": "on_right"}
OPPOSITES = _OPPOSITES | {other: relation for relation, other in _OPPOSITES.items()}


@dataclass(frozen=True)
class Thing:
    """One object: the middle and the side of its box, a mirror image or not, and a tilt in degrees."""

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


def split_of(index: int, validation: float, test: float) -> tuple[str, int]:
    """Return the split of picture ``index`` and the number of pictures of that split before it.

    The result does not depend on the number of pictures.

    Pictures are independent of each other, so their positions serve: with shares of a tenth each, every fifth
    picture is held out, for the two splits in turn. Any ten pictures in a row then have some of each.
    """
    held_out = Fraction(str(validation)) + Fraction(str(test))
    before = int(index * held_out)
    if int((index + 1) * held_out) == before:
        return "train", index - before
    share = Fraction(str(test)) / held_out
    tests = int(before * share)
    return ("test", tests) if int((before + 1) * share) > tests else ("validation", before - tests)


def sample_scene(rng: random.Random) -> Scene:
    """Return a scene at random."""
    place = rng.choices(list(PLACES), [0.5 if name == "sky" else 1.0 for name in PLACES])[0]
    layouts = {
        _beside_the_middle: (1, 0.12),
        _arranged: (1, 0.18),
        _in_a_direction: (2, 0.40),
        _one_before_the_other: (2, 0.14),
        _between: (3, 0.16),
    }
    build = rng.choices(list(layouts), [share for _, share in layouts.values()])[0]
    return build(rng, place, _kinds(rng, place, layouts[build][0]))


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


def _thing(rng: random.Random, x: float, y: float, size: str, mirrored: bool | None = None) -> Thing:
    return Thing(x, y, SIDES[size], rng.random() < 0.5 if mirrored is None else mirrored, rng.uniform(-TILT, TILT))


def _middle(first: int, size: str) -> float:
    """Return the middle of the square that begins at a cell."""
    return (first + CELLS[size] / 2) / LATTICE


def _anywhere(rng: random.Random, size: str, low: float = 0.0, high: float = 1.0) -> float:
    """Return the middle of a square that lies between ``low`` and ``high``, or as near as it fits in the picture."""
    last = LATTICE - CELLS[size]
    first = min(math.ceil(low * LATTICE - 1e-9), last)
    return _middle(rng.randint(first, max(first, math.floor(high * LATTICE + 1e-9) - CELLS[size])), size)


def _pack(rng: random.Random, sizes: list[str]) -> list[float]:
    """Middles of squares in this order that do not overlap, the cells left over dealt out at random."""
    free = LATTICE - sum(CELLS[size] for size in sizes)
    before = sorted(rng.randint(0, free) for _ in sizes)
    middles, used = [], 0
    for size, skipped in zip(sizes, before, strict=True):
        middles.append(_middle(used + skipped, size))
        used += CELLS[size]
    return middles


def _place_along(axis: int, along: float, across: float) -> tuple[float, float]:
    return (along, across) if axis == HORIZONTAL else (across, along)


def _line_up(rng: random.Random, axis: int, count: int, size: str, across: float) -> tuple[Thing, ...]:
    """Return a row or column of equal things."""
    mirrored = rng.random() < 0.5
    places = [_place_along(axis, along, across) for along in _pack(rng, [size] * count)]
    return tuple(_thing(rng, x, y, size, mirrored) for x, y in places)


def _beside_the_middle(rng: random.Random, place: str, kinds: list[str]) -> Scene:
    color, texture = _looks(rng, place)
    size = rng.choice(SIZES)
    where = rng.choice(("on_left", "in_middle", "on_right"))
    slack = {"small": 1, "large": 0}[size]
    first = {
        "on_left": rng.randint(0, slack),
        "in_middle": rng.choice({"small": (3,), "large": (2, 3)}[size]),
        "on_right": LATTICE - CELLS[size] - rng.randint(0, slack),
    }[where]
    thing = _thing(rng, _middle(first, size), _anywhere(rng, size), size)
    return Scene(place, (Group(kinds[0], color, size, texture, (thing,)),), where, (0,))


def _arranged(rng: random.Random, place: str, kinds: list[str]) -> Scene:
    color, texture = _looks(rng, place)
    count = rng.choices((2, 3, 4), (0.4, 0.35, 0.25))[0]
    size = rng.choice(SIZES) if count == 2 else "small"
    axis = rng.choices((HORIZONTAL, VERTICAL), (0.6, 0.4))[0]
    things = _line_up(rng, axis, count, size, _anywhere(rng, size))
    relation = "row" if axis == HORIZONTAL else "column"
    return Scene(place, (Group(kinds[0], color, size, texture, things),), relation, (0,))


def _in_a_direction(rng: random.Random, place: str, kinds: list[str]) -> Scene:
    """Place two groups on the two sides of a line; the things of a group are lined up along it."""
    axis = rng.choice((HORIZONTAL, VERTICAL))
    looks = []
    for _ in kinds:
        count = rng.choices((1, 2, 3, 4), (0.5, 0.26, 0.15, 0.09))[0]
        size = rng.choice(SIZES) if count <= 2 else "small"
        looks.append((*_looks(rng, place), size, count))
    first_before = rng.random() < 0.5
    order = (0, 1) if first_before else (1, 0)
    middles = dict(zip(order, _pack(rng, [looks[number][2] for number in order]), strict=True))
    groups: list[Group] = []
    for number, kind in enumerate(kinds):
        color, texture, size, count = looks[number]
        if count == 1:
            # At about the same height, or "left of" would be just as much "above".
            level = _anywhere(rng, size, 0.25, 0.75)
            things: tuple[Thing, ...] = (_thing(rng, *_place_along(axis, middles[number], level), size),)
        else:
            things = _line_up(rng, 1 - axis, count, size, middles[number])
        groups.append(Group(kind, color, size, texture, things))
    names = ("left", "right") if axis == HORIZONTAL else ("above", "below")
    return Scene(place, tuple(groups), names[0] if first_before else names[1], (0, 1))


def _one_before_the_other(rng: random.Random, place: str, kinds: list[str]) -> Scene:
    """Place one thing so that it partly hides a large one."""
    front = rng.choice((0, 1))
    sizes = ["large", "large"]
    sizes[front] = rng.choice(SIZES)
    room = LATTICE - CELLS["large"]
    x, y = rng.randint(0, room), rng.randint(0, room - 1)
    sideways = (0, 1) if sizes[front] == "small" else (-1, 1)
    ahead = rng.choice([x + step for step in sideways if 0 <= x + step <= LATTICE - CELLS[sizes[front]]])
    middles = {
        1 - front: (_middle(x, "large"), _middle(y, "large")),
        front: (_middle(ahead, sizes[front]), _middle(y + 1, sizes[front])),
    }
    groups: list[Group] = []
    for number, kind in enumerate(kinds):
        color, texture = _looks(rng, place)
        while groups and color == groups[0].color:
            color, texture = _looks(rng, place)
        thing = _thing(rng, *middles[number], sizes[number])
        groups.append(Group(kind, color, sizes[number], texture, (thing,)))
    return Scene(place, tuple(groups), DEPTHS[front], (1 - front, front))


def _between(rng: random.Random, place: str, kinds: list[str]) -> Scene:
    """Three things side by side; any of them may be in the middle."""
    middle = rng.randrange(3)
    kinds = [kinds[middle], *(kind for number, kind in enumerate(kinds) if number != middle)]
    if rng.random() < 0.5:
        kinds[1], kinds[2] = kinds[2], kinds[1]
    large = rng.choice((None, 0, 1, 2))
    sizes = ["large" if number == large else "small" for number in range(3)]
    left_to_right = (1, 0, 2)
    middles = dict(zip(left_to_right, _pack(rng, [sizes[number] for number in left_to_right]), strict=True))
    groups = []
    for number, kind in enumerate(kinds):
        color, texture = _looks(rng, place)
        thing = _thing(rng, middles[number], _anywhere(rng, sizes[number], 0.25, 0.75), sizes[number])
        groups.append(Group(kind, color, sizes[number], texture, (thing,)))
    return Scene(place, tuple(groups), "between", (0, 1, 2))
