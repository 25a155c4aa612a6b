"""Captions of scenes, in grammatical English and in Chinese, and the facts that are read back from the English ones."""

import random
import re

import pytest

from vitcapr.extensions.demo import sentences as captions
from vitcapr.extensions.demo.lexicon import COLORS, KINDS, PLACES
from vitcapr.extensions.demo.scene import Group, Scene, Thing, sample_scene, stream
from vitcapr.extensions.demo.statements import ClaimedGroup, read_caption

THING = Thing(0.5, 0.5, 0.2, False, 0.0)
SCENES = [sample_scene(stream(3, index, 0)) for index in range(300)]


def group(kind: str, color: str = "red", size: str = "small", texture: str = "plain", count: int = 1) -> Group:
    return Group(kind, color, size, texture, (THING,) * count)


def test_five_distinct_sentences() -> None:
    for index, scene in enumerate(SCENES):
        for write, purpose in ((captions.english, 2), (captions.chinese, 3)):
            texts = write(scene, stream(3, index, purpose))
            assert len(texts) == len(set(texts)) == 5


def test_english_sentences_are_sentences() -> None:
    for index, scene in enumerate(SCENES):
        other_number = r"\bis\b" if scene.groups[0].count > 1 else r"\bare\b"
        for text in captions.english(scene, stream(3, index, 2)):
            assert re.fullmatch(r"[A-Z][a-z ,]+\.", text), text
            assert not re.search(rf"  |{other_number}|\ba [aeiou]|\ban [^aeiou]|\b(\w+) \1\b", text.lower()), text


def test_chinese_captions_make_the_same_claims() -> None:
    for index, scene in enumerate(SCENES):
        for text in captions.chinese(scene, stream(3, index, 3)):
            assert re.fullmatch(r"[\u4e00-\u9fff，]+。", text), text
            assert any(name in text for name in PLACES[scene.place].chinese)
            for member in scene.groups:
                kind = KINDS[member.kind]
                amount = captions.CHINESE.numbers[member.count] + kind.measure
                size = {"small": "小", "large": "大"}[member.size]
                pattern = f"{amount}[^，和]*{COLORS[member.color].chinese}[^，和]*{size}{kind.chinese}"
                assert re.search(pattern, text), text
            words = {"left": "左", "on_left": "左", "right": "右", "on_right": "右", "behind": "后", "in_front": "前"}
            assert words.get(scene.relation, "") in text


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        (group("ball"), {"a small red ball", "a little red ball"}),
        (group("fish", count=3), {"three small red fish", "three little red fish"}),
        (
            group("box", "orange", "large", count=2),
            {"two large orange boxes", "two big orange boxes"} | {"two large orange crates", "two big orange crates"},
        ),
    ],
)
def test_noun_phrases_by_hand(member: Group, expected: set[str]) -> None:
    rng = random.Random(0)
    assert {captions.noun_phrase(member, rng) for _ in range(60)} == expected


@pytest.mark.parametrize(
    ("kind", "place", "verb"),
    [("fish", "water", "swims"), ("fish", "sand", "lies"), ("bird", "sky", "flies"), ("ball", "sky", "floats")],
)
def test_the_verb_suits_kind_and_place(kind: str, place: str, verb: str) -> None:
    assert captions.posture(kind, place)[0] == verb


def facts(scene: Scene) -> tuple[str, set[ClaimedGroup], tuple[str, ...]]:
    kinds = [group.kind for group in scene.groups]
    looks = ((group, None if group.texture == "plain" else group.texture) for group in scene.groups)
    groups = {ClaimedGroup(group.kind, group.count, group.size, texture, group.color) for group, texture in looks}
    others = sorted(kinds[1:]) if scene.relation == "between" else kinds[1:]
    return scene.place, groups, (scene.relation, kinds[0], *others)


def test_every_caption_describes_the_scene() -> None:
    for index in range(300):
        scene = sample_scene(stream(7, index, 0))
        for caption in captions.english(scene, stream(7, index, 2)):
            claims = read_caption(caption)
            assert (claims.place, set(claims.groups), claims.relation) == facts(scene), caption


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
    claims = read_caption("Under a night sky, a big red car is on the right.")
    assert (claims.place, claims.relation) == ("night", ("on_right", "car"))
