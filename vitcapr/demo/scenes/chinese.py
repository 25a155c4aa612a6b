"""Five Chinese captions of a scene, after the same plan as the English ones."""

import random

from vitcapr.demo.scenes.lexicon import COLORS, KINDS, LEXICON, PLACES
from vitcapr.demo.scenes.scene import Group, Scene

WORDS = LEXICON.chinese


def captions(scene: Scene, rng: random.Random) -> list[str]:
    """Five differing sentences in random order, each with every fact that the English captions tell."""
    structures = [_plain, _there_is, _located, _in_this_picture, _existential]
    rng.shuffle(structures)
    return [f"{structure(scene, rng)}。" for structure in structures]


def noun_phrase(group: Group, rng: random.Random) -> str:
    """ "一个带条纹的红色大球" or "一个红色条纹大球"."""
    kind = KINDS[group.kind]
    color = COLORS[group.color].chinese
    with_particle, compounded = LEXICON.textures[group.texture].chinese
    amount = WORDS.numbers[group.count] + kind.measure
    name = LEXICON.sizes[group.size].chinese + kind.chinese
    if rng.random() < 0.5:
        return f"{amount}{color}{compounded}{name}"
    return f"{amount}{with_particle}{color}{name}" if with_particle else f"{amount}{color}的{name}"


def _landmark(scene: Scene, rng: random.Random) -> str:
    """Relation and what it refers to: "一棵大树的左边", "画面中间"."""
    where = rng.choice(WORDS.relations[scene.relation])
    others = [noun_phrase(group, rng) for group in scene.groups[1:]]
    if not others:
        return f"画面{where}"
    return f"{others[0]}和{others[1]}{where}" if scene.relation == "between" else f"{others[0]}的{where}"


def _predicate(scene: Scene, rng: random.Random, verb: str) -> str:
    if scene.relation in WORDS.arrangements:
        return rng.choice(WORDS.arrangements[scene.relation])
    return f"{verb}{_landmark(scene, rng)}"


def _plain(scene: Scene, rng: random.Random) -> str:
    return f"{PLACES[scene.place].chinese[0]}，{noun_phrase(scene.groups[0], rng)}{_predicate(scene, rng, '在')}"


def _there_is(scene: Scene, rng: random.Random) -> str:
    return f"{PLACES[scene.place].chinese[0]}有{noun_phrase(scene.groups[0], rng)}，{_predicate(scene, rng, '在')}"


def _located(scene: Scene, rng: random.Random) -> str:
    return (
        f"{noun_phrase(scene.groups[0], rng)}{_predicate(scene, rng, '位于')}，背景是{PLACES[scene.place].chinese[1]}"
    )


def _in_this_picture(scene: Scene, rng: random.Random) -> str:
    opening = rng.choice(("这张图里", "图片中"))
    place, subject = PLACES[scene.place].chinese[0], noun_phrase(scene.groups[0], rng)
    return f"{opening}，{place}的{subject}{_predicate(scene, rng, '在')}"


def _existential(scene: Scene, rng: random.Random) -> str:
    place, subject = PLACES[scene.place].chinese[0], noun_phrase(scene.groups[0], rng)
    if scene.relation in WORDS.arrangements:
        return f"{place}可以看到{rng.choice(WORDS.arrangements[scene.relation])}的{subject}"
    return f"{place}，{_landmark(scene, rng)}有{subject}"
