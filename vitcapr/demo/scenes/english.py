"""Five English captions of a scene: the same facts in five sentence structures, the wording chosen at random."""

import random
from dataclasses import dataclass

from vitcapr.demo.scenes.lexicon import KINDS, LEXICON, PLACES
from vitcapr.demo.scenes.scene import Group, Scene

WORDS = LEXICON.english


@dataclass(frozen=True)
class Phrase:
    """A noun phrase and its number."""

    text: str
    plural: bool

    def be(self) -> str:
        return "are" if self.plural else "is"


def captions(scene: Scene, rng: random.Random) -> list[str]:
    """Five differing sentences in random order; each names every group with its count, size, colour and texture,
    the relation and the place."""
    structures = [_plain, _there_is, _place_first, _picture_of, _posture]
    rng.shuffle(structures)
    texts = [structure(scene, rng) for structure in structures]
    return [f"{text[0].upper()}{text[1:]}." for text in texts]


def noun_phrase(group: Group, rng: random.Random) -> Phrase:
    """ "a large red ball with dots", "two little striped boats"."""
    singular, plural = rng.choice(KINDS[group.kind].nouns)
    words = [rng.choice(LEXICON.sizes[group.size].english)]
    after, texture = "", LEXICON.textures[group.texture]
    if texture.before:
        if rng.random() < 0.3:
            after = f" {texture.after}"
        else:
            words.append(rng.choice(texture.before))
    words.append(group.color)
    if group.count == 1:
        text = f"{article(words[0])} {' '.join(words)} {singular}{after}"
    else:
        text = f"{WORDS.numbers[group.count]} {' '.join(words)} {plural}{after}"
    return Phrase(text, group.count > 1)


def article(word: str) -> str:
    """The indefinite article before ``word``."""
    return "an" if word[0] in "aeiou" else "a"


def _subject(scene: Scene, rng: random.Random) -> Phrase:
    return noun_phrase(scene.groups[0], rng)


def _where(scene: Scene, rng: random.Random) -> str:
    """How the subject lies to the others, or where it is when alone."""
    if scene.relation in WORDS.whereabouts:
        return rng.choice(WORDS.whereabouts[scene.relation])
    if scene.relation in WORDS.arrangements:
        return rng.choice(WORDS.arrangements[scene.relation][scene.groups[0].count])
    others = [noun_phrase(group, rng).text for group in scene.groups[1:]]
    if scene.relation == "between":
        return f"between {others[0]} and {others[1]}"
    return f"{rng.choice(WORDS.relations[scene.relation])} {others[0]}"


def _place(scene: Scene, rng: random.Random) -> str:
    return rng.choice(PLACES[scene.place].phrases)


def _tail(scene: Scene, rng: random.Random) -> str:
    """Relation and place; "on the grass on the left" reads better than the other way round."""
    where, place = _where(scene, rng), _place(scene, rng)
    return f"{place} {where}" if scene.relation in WORDS.whereabouts else f"{where} {place}"


def _plain(scene: Scene, rng: random.Random) -> str:
    subject = _subject(scene, rng)
    return f"{subject.text} {subject.be()} {_tail(scene, rng)}"


def _there_is(scene: Scene, rng: random.Random) -> str:
    subject = _subject(scene, rng)
    opening = rng.choice((f"there {subject.be()}", f"there {subject.be()}", "we can see", "here we see"))
    return f"{opening} {subject.text} {_tail(scene, rng)}"


def _place_first(scene: Scene, rng: random.Random) -> str:
    subject = _subject(scene, rng)
    return f"{_place(scene, rng)}, {subject.text} {subject.be()} {_where(scene, rng)}"


def _picture_of(scene: Scene, rng: random.Random) -> str:
    opening = rng.choice(("a picture of", "an image of", "a drawing of"))
    if len(scene.groups) == 1:
        return f"{opening} {_subject(scene, rng).text} {_tail(scene, rng)}"
    subject = _subject(scene, rng).text
    others = [noun_phrase(group, rng) for group in scene.groups[1:]]
    if scene.relation == "between":
        where, held = "between them", f"{others[0].text} and {others[1].text}"
    else:
        where, held = rng.choice(WORDS.held[scene.relation]), others[0].text
        if others[0].plural:
            where = " ".join(WORDS.plural.get(word, word) for word in where.split())
    return f"{opening} {held} {_place(scene, rng)} with {subject} {where}"


def _posture(scene: Scene, rng: random.Random) -> str:
    subject = _subject(scene, rng)
    verb = posture(scene.groups[0].kind, scene.place)
    return f"{subject.text} {verb[subject.plural]} {_tail(scene, rng)}"


def posture(kind: str, place: str) -> tuple[str, str]:
    """(singular, plural) of the verb for a kind in a place: fish swim in water and lie on the sand."""
    of_place = PLACES[place].postures
    return of_place.get(kind) or of_place.get("other") or KINDS[kind].posture
