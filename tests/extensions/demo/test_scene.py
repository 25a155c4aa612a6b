"""Scenes are possible and say what they are; a near duplicate differs from its scene in one fact."""

from collections import Counter

import numpy as np
import pytest

from vitcapr.extensions.demo.dataset import near_duplicate
from vitcapr.extensions.demo.lexicon import KINDS, PLACES
from vitcapr.extensions.demo.scene import DEPTHS, DIRECTIONS, OPPOSITES, Group, Scene, sample_scene, stream
from vitcapr.extensions.demo.sentences import english
from vitcapr.extensions.demo.statements import checked_claims, read_caption

SCENES = [sample_scene(stream(5, index, 0)) for index in range(1500)]
PAIRS = [(scene := sample_scene(stream(2, n, 0)), near_duplicate(scene, stream(2, n, 9))) for n in range(400)]


def middle(group: Group) -> tuple[float, float]:
    return float(np.mean([t.x for t in group.things])), float(np.mean([t.y for t in group.things]))


def test_relations_hold_between_the_middles() -> None:
    for scene in SCENES:
        x, y = zip(*map(middle, scene.groups), strict=True)
        if scene.relation in DIRECTIONS:
            axis, sign = {"left": (x, -1), "right": (x, 1), "above": (y, -1), "below": (y, 1)}[scene.relation]
            cross = y if axis is x else x
            assert sign * (axis[0] - axis[1]) > 0.15
            assert sign * (axis[0] - axis[1]) > abs(cross[0] - cross[1]) - 0.15
        elif scene.relation == "between":
            assert x[1] < x[0] < x[2]
        elif scene.relation in DEPTHS:
            front = 0 if scene.relation == "in_front" else 1
            assert scene.drawn == (1 - front, front)
            assert y[front] >= y[1 - front]
        elif scene.relation == "row":
            assert np.ptp([t.y for t in scene.groups[0].things]) < 0.06
        elif scene.relation == "column":
            assert np.ptp([t.x for t in scene.groups[0].things]) < 0.06
        else:
            assert {"on_left": x[0] < 0.3, "in_middle": 0.4 < x[0] < 0.6, "on_right": x[0] > 0.7}[scene.relation]


def test_everything_is_inside_the_picture_and_only_depth_overlaps() -> None:
    for scene in SCENES:
        things = [thing for group in scene.groups for thing in group.things]
        for thing in things:
            assert thing.side / 2 <= thing.x + 1e-9 <= 1 - thing.side / 2 + 2e-9
            assert thing.side / 2 <= thing.y + 1e-9 <= 1 - thing.side / 2 + 2e-9
        for number, one in enumerate(things):
            for other in things[number + 1 :]:
                apart = max(abs(one.x - other.x), abs(one.y - other.y)) >= (one.side + other.side) / 2
                assert apart is (scene.relation not in DEPTHS)


def test_kinds_differ_fit_the_place_and_are_named_in_a_fixed_order() -> None:
    order = list(KINDS)
    for scene in (*SCENES, *(other for _, other in PAIRS)):
        kinds = [group.kind for group in scene.groups]
        assert len(set(kinds)) == len(kinds)
        assert set(kinds) <= set(PLACES[scene.place].kinds)
        if len(kinds) == 2:
            assert order.index(kinds[0]) < order.index(kinds[1])
        assert not {group.color for group in scene.groups} & set(PLACES[scene.place].avoided)


def test_all_there_is_occurs() -> None:
    groups = [group for scene in SCENES for group in scene.groups]
    assert {scene.place for scene in SCENES} == set(PLACES)
    assert {group.count for group in groups} == {1, 2, 3, 4}
    alone = ("row", "column", "on_left", "in_middle", "on_right")
    assert {scene.relation for scene in SCENES} == {*DIRECTIONS, *DEPTHS, "between", *alone}
    kinds = Counter(group.kind for group in groups)
    assert set(kinds) == set(KINDS)
    assert max(kinds.values()) < 2 * min(kinds.values())


def test_streams_depend_on_seed_number_and_purpose_only() -> None:
    draws = {(s, i, p): stream(s, i, p).random() for s in (0, 1) for i in (0, 1) for p in (0, 1)}
    assert len(set(draws.values())) == len(draws)


def wrong_claims(of: Scene, about: Scene) -> list[str]:
    """What the captions of one scene claim wrongly about the other."""
    claimed, true = (read_caption(english(scene, stream(0, 0, 0))[0]) for scene in (of, about))
    return [claim.kind for claim in checked_claims(claimed, true) if not claim.right]


def test_the_captions_of_the_two_differ_in_one_claim() -> None:
    changed: Counter[str] = Counter()
    for scene, other in PAIRS:
        (wrong,) = {*wrong_claims(other, scene), *wrong_claims(scene, other)}
        changed[wrong] += 1
    assert set(changed) == {"colors", "textures", "places", "relations"}
    assert min(changed.values()) > 20


def test_the_other_side_is_the_mirror_image() -> None:
    mirrored = [(scene, other) for scene, other in PAIRS if scene.relation != other.relation]
    for scene, other in mirrored:
        assert other.relation == OPPOSITES[scene.relation]
        for before, after in zip(scene.groups, other.groups, strict=True):
            for one, moved in zip(before.things, after.things, strict=True):
                assert (moved.x, moved.y) in ((pytest.approx(1 - one.x), one.y), (one.x, pytest.approx(1 - one.y)))
    assert mirrored
