"""Captions against the scene they describe: every fact, in grammatical English and in Chinese."""

import random
import re

import pytest

from vitcapr.demo.scenes import chinese, english
from vitcapr.demo.scenes.lexicon import COLORS, KINDS, PLACES
from vitcapr.demo.scenes.scene import Group, Scene, Thing, sample_scene, stream

THING = Thing(0.5, 0.5, 0.2, False, 0.0)
SCENES = [sample_scene(stream(3, index, 0)) for index in range(300)]
PLURALS = {plural for kind in KINDS.values() for singular, plural in kind.nouns if plural != singular}
SINGULARS = {singular for kind in KINDS.values() for singular, plural in kind.nouns if plural != singular}
COUNT_WORDS = {"a": 1, "an": 1, "two": 2, "three": 3, "four": 4}


def group(kind: str, color: str = "red", size: str = "small", texture: str = "plain", count: int = 1) -> Group:
    return Group(kind, color, size, texture, (THING,) * count)


def every_caption() -> list[tuple[Scene, str]]:
    return [
        (scene, text) for index, scene in enumerate(SCENES) for text in english.captions(scene, stream(3, index, 2))
    ]


def described(text: str) -> list[tuple[int, str, str, str, str]]:
    """An independent reading of a caption: (count, size, texture, colour, noun) of every noun phrase, in order."""
    phrase = re.compile(
        r"\b(?P<count>an?|two|three|four) (?P<size>small|little|large|big)"
        r"(?: (?P<texture>striped|dotted|spotted))? (?P<color>\w+) (?P<noun>\w+)(?: with (?P<after>stripes|dots))?"
    )
    found = []
    for match in phrase.finditer(text.lower()):
        size = {"little": "small", "big": "large"}.get(match["size"], match["size"])
        texture = match["texture"] or match["after"] or "plain"
        texture = {"spotted": "dotted", "dots": "dotted", "stripes": "striped"}.get(texture, texture)
        found.append((COUNT_WORDS[match["count"]], size, texture, match["color"], match["noun"]))
    return found


def facts(scene: Scene) -> set[tuple[int, str, str, str, str]]:
    kinds = {noun: name for name, kind in KINDS.items() for pair in kind.nouns for noun in pair}
    assert set(kinds.values()) == set(KINDS)
    return {(g.count, g.size, g.texture, g.color, g.kind) for g in scene.groups}


def kind_of(noun: str) -> str:
    return next(name for name, kind in KINDS.items() if any(noun in pair for pair in kind.nouns))


def test_every_caption_names_each_group_with_its_count_size_texture_and_colour() -> None:
    for scene, text in every_caption():
        told = {(count, size, texture, color, kind_of(noun)) for count, size, texture, color, noun in described(text)}
        assert told == facts(scene), text


def test_number_agrees_in_nouns_and_verbs() -> None:
    for scene, text in every_caption():
        for count, _, _, _, noun in described(text):
            assert noun not in (SINGULARS if count > 1 else PLURALS), text
        plural = scene.groups[0].count > 1
        assert not re.search(r"\bis\b" if plural else r"\bare\b", text), text


def test_the_caption_states_the_direction_of_the_relation() -> None:
    """The subject is the first group, except where the caption holds it: "a house with a ball to its left"."""
    marks = {
        "left": r"\bleft\b",
        "right": r"(to|on) (the|its|their) right|right of",
        "above": r"\b(above|over)\b",
        "below": r"\b(below|under) (?!a night)",
        "in_front": r"in front of",
        "behind": r"\bbehind\b",
        "between": r"\bbetween\b",
    }
    for scene, text in every_caption():
        if scene.relation not in marks:
            continue
        assert re.search(marks[scene.relation], text), text
        opposite = {"left": "right", "right": "left", "above": "below", "below": "above"}.get(scene.relation)
        assert opposite is None or not re.search(marks[opposite], text), text
        order = [kind_of(noun) for *_, noun in described(text)]
        held = re.search(r" with (an?|two|three|four) ", text) is not None
        subject_first = order.index(scene.groups[0].kind) == 0
        assert subject_first is not held, text


def test_the_caption_states_the_place() -> None:
    for scene, text in every_caption():
        assert any(phrase in text.lower() for phrase in PLACES[scene.place].phrases), text


def test_five_distinct_sentences() -> None:
    for index, scene in enumerate(SCENES):
        for write, purpose in ((english.captions, 2), (chinese.captions, 3)):
            texts = write(scene, stream(3, index, purpose))
            assert len(texts) == len(set(texts)) == 5


def test_english_sentences_are_sentences() -> None:
    for _, text in every_caption():
        assert re.fullmatch(r"[A-Z][a-z ,]+\.", text), text
        assert "  " not in text
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]|\b(\w+) \1\b", text.lower()), text


def test_chinese_captions_make_the_same_claims() -> None:
    for index, scene in enumerate(SCENES):
        for text in chinese.captions(scene, stream(3, index, 3)):
            assert re.fullmatch(r"[\u4e00-\u9fff，]+。", text), text
            assert any(name in text for name in PLACES[scene.place].chinese)
            for member in scene.groups:
                kind = KINDS[member.kind]
                amount = chinese.WORDS.numbers[member.count] + kind.measure
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
    assert {english.noun_phrase(member, rng).text for _ in range(60)} == expected


def test_the_article_goes_by_the_next_word() -> None:
    assert [english.article(word) for word in ("orange", "small")] == ["an", "a"]


@pytest.mark.parametrize(
    ("kind", "place", "verb"),
    [("fish", "water", "swims"), ("fish", "sand", "lies"), ("bird", "sky", "flies"), ("ball", "sky", "floats")],
)
def test_the_verb_suits_kind_and_place(kind: str, place: str, verb: str) -> None:
    assert english.posture(kind, place)[0] == verb


def test_words_of_an_object_are_all_that_captions_call_it() -> None:
    assert KINDS["box"].words() == ["box", "boxes", "crate", "crates", "箱子"]
    assert KINDS["fish"].words() == ["fish", "鱼"]
