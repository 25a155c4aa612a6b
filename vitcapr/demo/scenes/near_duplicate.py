"""The near duplicate of a scene: the same scene with one fact changed.

A retriever that knows only what is in a picture, and not of which colour, with which texture, where or on which side,
takes one for the other.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

from vitcapr.demo.scenes.lexicon import COLORS, LEXICON, PLACES
from vitcapr.demo.scenes.scene import Group, Scene

OPPOSITES = {
    "left": "right",
    "right": "left",
    "above": "below",
    "below": "above",
    "on_left": "on_right",
    "on_right": "on_left",
}


def near_duplicate(scene: Scene, rng: random.Random) -> Scene:
    """``scene`` with the colour or the texture of one group, the place or the side changed; each is as likely."""
    ways = [list(way(scene)) for way in (_recolored, _retextured, _elsewhere, _mirrored)]
    return rng.choice(rng.choice([scenes for scenes in ways if scenes]))


def _recolored(scene: Scene) -> Iterator[Scene]:
    taken = {group.color for group in scene.groups} | set(PLACES[scene.place].avoided)
    for number, group in enumerate(scene.groups):
        for color in COLORS:
            if color not in taken:
                yield _with_group(scene, number, replace(group, color=color))


def _retextured(scene: Scene) -> Iterator[Scene]:
    for number, group in enumerate(scene.groups):
        for texture in LEXICON.textures:
            if texture != group.texture:
                yield _with_group(scene, number, replace(group, texture=texture))


def _elsewhere(scene: Scene) -> Iterator[Scene]:
    kinds, colors = ({getattr(group, name) for group in scene.groups} for name in ("kind", "color"))
    for name, place in PLACES.items():
        if name != scene.place and kinds <= set(place.kinds) and not colors & set(place.avoided):
            yield replace(scene, place=name)


def _mirrored(scene: Scene) -> Iterator[Scene]:
    """Left for right, or top for bottom; each thing stands as it did, and only its middle is mirrored."""
    if scene.relation not in OPPOSITES:
        return
    upside_down = scene.relation in ("above", "below")
    groups = []
    for group in scene.groups:
        moved = (replace(t, y=1 - t.y) if upside_down else replace(t, x=1 - t.x) for t in group.things)
        groups.append(replace(group, things=tuple(moved)))
    yield replace(scene, groups=tuple(groups), relation=OPPOSITES[scene.relation])


def _with_group(scene: Scene, number: int, group: Group) -> Scene:
    groups = list(scene.groups)
    groups[number] = group
    return replace(scene, groups=tuple(groups))
