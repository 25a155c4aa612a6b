"""Five English and five Chinese captions of a scene: the same facts in five sentences, the wording chosen at random."""

import random

from vitcapr.extensions.demo.lexicon import COLORS, KINDS, LEXICON, PLACES
from vitcapr.extensions.demo.scene import Group, Scene

ENGLISH, CHINESE = LEXICON.english, LEXICON.chinese


def english(scene: Scene, rng: random.Random) -> list[str]:
    """Return five differing sentences in random order.

    Each names every group with its count, size, colour and texture, the relation and the place.
    """
    sentences = [_plain, _there_is, _place_first, _picture_of, _posture]
    rng.shuffle(sentences)
    texts = [sentence(scene, rng) for sentence in sentences]
    return [f"{text[0].upper()}{text[1:]}." for text in texts]


def noun_phrase(group: Group, rng: random.Random) -> str:
    """Return a phrase such as "a large red ball with dots" or "two little striped boats"."""
    noun = rng.choice(KINDS[group.kind].nouns)[group.count > 1]
    words = [ENGLISH.numbers[group.count] if group.count > 1 else "a", rng.choice(LEXICON.sizes[group.size].english)]
    texture, after = LEXICON.textures[group.texture], []
    if texture.before:
        if rng.random() < 0.3:
            after = [texture.after]
        else:
            words.append(rng.choice(texture.before))
    return " ".join([*words, group.color, noun, *after])


def _subject(scene: Scene, rng: random.Random) -> str:
    return noun_phrase(scene.groups[0], rng)


def _be(scene: Scene) -> str:
    return "are" if scene.groups[0].count > 1 else "is"


def _where(scene: Scene, rng: random.Random) -> str:
    """Return the position of the subject: relative to the others, or within the picture if it is alone."""
    if scene.relation in ENGLISH.whereabouts:
        return rng.choice(ENGLISH.whereabouts[scene.relation])
    if scene.relation in ENGLISH.arrangements:
        return rng.choice(ENGLISH.arrangements[scene.relation][scene.groups[0].count])
    others = " and ".join([noun_phrase(group, rng) for group in scene.groups[1:]])
    return f"{'between' if scene.relation == 'between' else rng.choice(ENGLISH.relations[scene.relation])} {others}"


def _place(scene: Scene, rng: random.Random) -> str:
    return rng.choice(PLACES[scene.place].phrases)


def _tail(scene: Scene, rng: random.Random) -> str:
    """Relation and place; "on the grass on the left" reads better than the other way round."""
    where, place = _where(scene, rng), _place(scene, rng)
    return f"{place} {where}" if scene.relation in ENGLISH.whereabouts else f"{where} {place}"


def _plain(scene: Scene, rng: random.Random) -> str:
    return f"{_subject(scene, rng)} {_be(scene)} {_tail(scene, rng)}"


def _there_is(scene: Scene, rng: random.Random) -> str:
    subject, there = _subject(scene, rng), f"there {_be(scene)}"
    return f"{rng.choice((there, there, 'we can see', 'here we see'))} {subject} {_tail(scene, rng)}"


def _place_first(scene: Scene, rng: random.Random) -> str:
    subject = _subject(scene, rng)
    return f"{_place(scene, rng)}, {subject} {_be(scene)} {_where(scene, rng)}"


def _picture_of(scene: Scene, rng: random.Random) -> str:
    opening, subject = rng.choice(("a picture of", "an image of", "a drawing of")), _subject(scene, rng)
    if len(scene.groups) == 1:
        return f"{opening} {subject} {_tail(scene, rng)}"
    others = " and ".join([noun_phrase(group, rng) for group in scene.groups[1:]])
    where = "between them" if scene.relation == "between" else rng.choice(ENGLISH.held[scene.relation])
    if scene.groups[1].count > 1:
        where = in_plural(where)
    return f"{opening} {others} {_place(scene, rng)} with {subject} {where}"


def in_plural(phrase: str) -> str:
    """Return a phrase in the plural: "in front of it" -> "in front of them"."""
    return " ".join(ENGLISH.plural.get(word, word) for word in phrase.split())


def _posture(scene: Scene, rng: random.Random) -> str:
    subject = _subject(scene, rng)
    verb = posture(scene.groups[0].kind, scene.place)[scene.groups[0].count > 1]
    return f"{subject} {verb} {_tail(scene, rng)}"


def posture(kind: str, place: str) -> tuple[str, str]:
    """(singular, plural) of the verb for a kind in a place: fish swim in water and lie on the sand."""
    of_place = PLACES[place].postures
    return of_place.get(kind) or of_place.get("other") or KINDS[kind].posture


def chinese(scene: Scene, rng: random.Random) -> list[str]:
    """Five differing sentences in random order, each with every fact that the English captions tell."""
    arranged = scene.relation in CHINESE.arrangements
    sentences = [
        ("{place}，{subject}{where}。", "在"),
        ("{place}有{subject}，{where}。", "在"),
        ("{subject}{where}，背景是{background}。", "位于"),
        ("{opening}，{place}的{subject}{where}。", "在"),
        ("{place}可以看到{where}的{subject}。" if arranged else "{place}，{where}有{subject}。", ""),
    ]
    rng.shuffle(sentences)
    texts = []
    for sentence, verb in sentences:
        opening = rng.choice(("这张图里", "图片中")) if "{opening}" in sentence else ""
        subject = chinese_noun_phrase(scene.groups[0], rng)
        where = rng.choice(CHINESE.arrangements[scene.relation]) if arranged else f"{verb}{_landmark(scene, rng)}"
        place, background = PLACES[scene.place].chinese
        texts.append(sentence.format(opening=opening, subject=subject, where=where, place=place, background=background))
    return texts


def chinese_noun_phrase(group: Group, rng: random.Random) -> str:
    """Return a phrase such as "一个带条纹的红色大球" or "一个红色条纹大球"."""
    kind, color = KINDS[group.kind], COLORS[group.color].chinese
    with_particle, compounded = LEXICON.textures[group.texture].chinese
    amount, name = CHINESE.numbers[group.count] + kind.measure, LEXICON.sizes[group.size].chinese + kind.chinese
    if rng.random() < 0.5:
        return f"{amount}{color}{compounded}{name}"
    return f"{amount}{with_particle}{color}{name}" if with_particle else f"{amount}{color}的{name}"


def _landmark(scene: Scene, rng: random.Random) -> str:
    """Relation and what it refers to: "一棵大树的左边", "画面中间"."""
    where = rng.choice(CHINESE.relations[scene.relation])
    others = "和".join([chinese_noun_phrase(group, rng) for group in scene.groups[1:]])
    if not others:
        return f"画面{where}"
    return f"{others}{where}" if scene.relation == "between" else f"{others}的{where}"
