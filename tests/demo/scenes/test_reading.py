"""Captions read back: whatever the writer can say is understood, and so is what it would not say."""

import pytest

from vitcapr.demo.scenes import english
from vitcapr.demo.scenes.reading import ClaimedGroup, read_caption
from vitcapr.demo.scenes.scene import Scene, sample_scene, stream


def facts(scene: Scene) -> tuple[str, set[ClaimedGroup], tuple[str, ...]]:
    kinds = [group.kind for group in scene.groups]
    looks = ((group, None if group.texture == "plain" else group.texture) for group in scene.groups)
    groups = {ClaimedGroup(group.kind, group.count, group.size, texture, group.color) for group, texture in looks}
    others = sorted(kinds[1:]) if scene.relation == "between" else kinds[1:]
    return scene.place, groups, (scene.relation, kinds[0], *others)


def test_every_caption_describes_the_scene() -> None:
    for index in range(300):
        scene = sample_scene(stream(7, index, 0))
        for caption in english.captions(scene, stream(7, index, 2)):
            told = read_caption(caption)
            assert (told.place, set(told.groups), told.relation) == facts(scene), caption


@pytest.mark.parametrize(
    ("caption", "relation"),
    [
        # Said from the other side than the writer does.
        ("a small white house is to the right of a big red ball", ("left", "ball", "house")),
        ("a tree behind a red car", ("in_front", "car", "tree")),
        ("a big tree with a car to its left", ("left", "car", "tree")),
        ("a bird is between a house and a tree", ("between", "bird", "house", "tree")),
        ("a bird is between a tree and a house", ("between", "bird", "house", "tree")),
        ("two red balls in a row", ("row", "ball")),
        # "On the left" of what?
        ("a red ball to the left of something", None),
        ("a red ball", None),
        ("", None),
    ],
)
def test_relations(caption: str, relation: tuple[str, ...] | None) -> None:
    assert read_caption(caption).relation == relation


def test_unstated_claims_are_none() -> None:
    (group,) = read_caption("birds with dots").groups
    assert group == ClaimedGroup("bird", None, None, "dotted", None)


def test_a_place_is_not_a_relation() -> None:
    told = read_caption("Under a night sky, a big red car is on the right.")
    assert (told.place, told.relation) == ("night", ("on_right", "car"))
