"""A near duplicate differs from its scene in one fact, and is as possible as any scene."""

from collections import Counter

import pytest

from vitcapr.demo.claim_accuracy import checked_claims
from vitcapr.demo.scenes.english import captions
from vitcapr.demo.scenes.lexicon import PLACES
from vitcapr.demo.scenes.near_duplicate import OPPOSITES, near_duplicate
from vitcapr.demo.scenes.reading import read_caption
from vitcapr.demo.scenes.scene import Scene, sample_scene, stream

PAIRS = [(scene := sample_scene(stream(2, n, 0)), near_duplicate(scene, stream(2, n, 9))) for n in range(400)]


def wrong_claims(of: Scene, about: Scene) -> list[str]:
    """What the captions of one scene claim wrongly about the other."""
    said, true = (read_caption(captions(scene, stream(0, 0, 0))[0]) for scene in (of, about))
    return [claim.kind for claim in checked_claims(said, true) if not claim.right]


def test_the_captions_of_the_two_differ_in_one_claim() -> None:
    changed: Counter[str] = Counter()
    for scene, other in PAIRS:
        (wrong,) = {*wrong_claims(other, scene), *wrong_claims(scene, other)}
        changed[wrong] += 1
    assert set(changed) == {"colors", "textures", "places", "relations"}
    assert min(changed.values()) > 20


def test_colours_and_kinds_suit_the_place() -> None:
    for _, other in PAIRS:
        place = PLACES[other.place]
        assert {group.kind for group in other.groups} <= set(place.kinds)
        assert not {group.color for group in other.groups} & set(place.avoided)


def test_the_other_side_is_the_mirror_image() -> None:
    mirrored = [(scene, other) for scene, other in PAIRS if scene.relation != other.relation]
    for scene, other in mirrored:
        assert other.relation == OPPOSITES[scene.relation]
        for before, after in zip(scene.groups, other.groups, strict=True):
            for one, moved in zip(before.things, after.things, strict=True):
                assert (moved.x, moved.y) in ((pytest.approx(1 - one.x), one.y), (one.x, pytest.approx(1 - one.y)))
    assert mirrored
