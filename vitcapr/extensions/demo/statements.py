"""Claims of English captions about a scene, and the share of them that agrees with the picture: claim accuracy.

A caption is parsed by the inverse of the module ``captions``: whatever that can say, and any mixture of it
that a captioner makes up, becomes the same few claims, so that a caption can be checked against another one of the same
picture. n-gram scores hardly move when "three" should be "four" or "left" should be "right"; a reader does.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from vitcapr.extensions.demo.lexicon import COLORS, KINDS, LEXICON, PLACES
from vitcapr.extensions.demo.scene import OPPOSITES
from vitcapr.extensions.demo.sentences import in_plural
from vitcapr.formats.claims import Claim
from vitcapr.metrics.bootstrap import Measure, ratio_measure
from vitcapr.metrics.system_comparison import claim_measures

WORDS = LEXICON.english
Words = Mapping[str, tuple[int, ...]]
"""The places of the words behind a claim among the words of the caption that spaces separate, by the claim's field."""


@dataclass(frozen=True)
class ClaimedGroup:
    """Things of one kind; None for every property that the caption does not name."""

    kind: str
    count: int | None
    size: str | None
    texture: str | None
    color: str | None
    words: Words = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Claims:
    """The claims of a caption.

    Attributes:
        relation: the name as in :class:`~vitcapr.extensions.demo.scene.Scene`, then its kinds in order:
            ``("left", "ball", "house")`` is a ball left of a house, and also a house right of a ball. The two things
            that another one is between have no order.
    """

    place: str | None
    groups: tuple[ClaimedGroup, ...]
    relation: tuple[str, ...] | None
    words: Words = field(default_factory=dict, compare=False)


def read_caption(text: str) -> Claims:
    """Return the claims of an English caption in any case, with or without punctuation.

    >>> read_caption("On the grass, a small red ball is left of two big dotted boats.").relation
    ('left', 'ball', 'boat')
    """
    text = text.lower()
    words = list(re.finditer(r"[a-z]+", text))
    places = [len(text[: word.end()].split()) - 1 for word in words]
    # What is read is replaced by as many characters, so that a span has the same words throughout.
    line = " ".join(word[0] for word in words)
    start_of = {at: number for number, at in enumerate([0, *(space.end() for space in re.finditer(" ", line))])}

    def words_in(span: tuple[int, int]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(places[start_of[at]] for at in range(*span) if at in start_of))

    place, groups = _PLACE.search(line), list[ClaimedGroup]()

    def take(match: re.Match[str]) -> str:
        groups.append(
            _group(match, {name: words_in(match.span(name)) for name, part in match.groupdict().items() if part})
        )
        return f"@{len(groups) - 1}".ljust(len(match[0]))

    rest = line if place is None else line[: place.start()] + "|".ljust(len(place[0])) + line[place.end() :]
    relation, span = _relation(_GROUP.sub(take, rest), [group.kind for group in groups])
    spans = {"place": place and place.span(), "relation": span}
    words_of_claims = {name: words_in(span) for name, span in spans.items() if span}
    return Claims(place and _PLACE_OF[place[0]], tuple(groups), relation, words_of_claims)


def _group(match: re.Match[str], words: Words) -> ClaimedGroup:
    parts = match.groupdict()
    texture = parts["before"] or parts["after"]
    return ClaimedGroup(
        kind=_KIND_OF[parts["kind"]],
        count=_COUNT_OF.get(parts["count"] or ""),
        size=_SIZE_OF.get(parts["size"] or ""),
        texture=None if texture is None else _TEXTURE_OF[texture],
        color=parts["color"],
        # If a texture stands before and after the noun, the one before counts.
        words={"texture" if part in ("before", "after") else part: words[part] for part in reversed([*words])},
    )


def _relation(words: str, kinds: list[str]) -> tuple[tuple[str, ...] | None, tuple[int, int] | None]:
    """Return the relation in a caption, with ``@0`` and so on for the groups, and its characters."""
    if match := re.search(r"@(\d) .*?\b(between) @(\d) +and @(\d)|@(\d) +and @(\d) .*?@(\d) +(between them)", words):
        # The subject is before the other two, or after them.
        subject, name, others = (1, 2, (3, 4)) if match[2] else (7, 8, (5, 6))
        landmarks = sorted(kinds[int(match[other])] for other in others)
        return ("between", kinds[int(match[subject])], *landmarks), match.span(name)
    if len(kinds) >= 2:
        if match := re.search(rf"@(\d)\b[^@]*?\b({_either(_RELATION_OF)}) @(\d)", words):
            return _ordered(_RELATION_OF[match[2]], kinds[int(match[1])], kinds[int(match[3])]), match.span(2)
        if match := re.search(rf"@(\d)\b.*? with @(\d) .*?({_either(_HELD_OF)})\b", words):
            return _ordered(_HELD_OF[match[3]], kinds[int(match[2])], kinds[int(match[1])]), match.span(3)
    elif kinds and (match := re.search(rf"\b({_either(_ALONE_OF)})\b", words)):
        return (_ALONE_OF[match[1]], kinds[0]), match.span(1)
    return None, None


def _ordered(name: str, subject: str, other: str) -> tuple[str, ...]:
    if list(KINDS).index(subject) > list(KINDS).index(other):
        return OPPOSITES[name], other, subject
    return name, subject, other


def _names(phrases: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Phrase -> what it says."""
    return {phrase: name for name, said in phrases.items() for phrase in said}


def _either(phrases: Iterable[str]) -> str:
    """Return a pattern of any of them, the longest that fits."""
    return "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))


_PLACE_OF = _names({name: place.phrases for name, place in PLACES.items()})
_KIND_OF = _names({name: [noun for pair in kind.nouns for noun in pair] for name, kind in KINDS.items()})
_COUNT_OF = {"a": 1, "an": 1} | {word: number for number, word in WORDS.numbers.items()}
_SIZE_OF = _names({name: size.english for name, size in LEXICON.sizes.items()})
_BEFORE_OF = _names({name: texture.before for name, texture in LEXICON.textures.items()})
_AFTER_OF = {texture.after: name for name, texture in LEXICON.textures.items() if texture.after}
_TEXTURE_OF = _BEFORE_OF | _AFTER_OF
_RELATION_OF = _names(WORDS.relations)
_HELD_OF = _names({name: [*said, *map(in_plural, said)] for name, said in WORDS.held.items()})
_ALONE_OF = _names(WORDS.whereabouts) | _names(
    {name: [phrase for said in by_count.values() for phrase in said] for name, by_count in WORDS.arrangements.items()}
)
_PLACE = re.compile(rf"\b(?:{_either(_PLACE_OF)})\b")
_GROUP = re.compile(
    rf"\b(?:(?P<count>{_either(_COUNT_OF)}) )?(?:(?P<size>{_either(_SIZE_OF)}) )?"
    rf"(?:(?P<before>{_either(_BEFORE_OF)}) )?(?:(?P<color>{_either(COLORS)}) )?"
    rf"(?P<kind>{_either(_KIND_OF)})\b(?: (?P<after>{_either(_AFTER_OF)}))?\b"
)


KINDS_OF_CLAIM = ("objects", "counts", "sizes", "textures", "colors", "relations", "places")


def claim_accuracy(claims: Sequence[Claims], truth: Sequence[Claims]) -> dict[str, Measure]:
    """Return the claim accuracy of N captions.

    Args:
        claims: the claims of each caption.
        truth: everything that is true of each picture.

    Returns:
        :func:`vitcapr.metrics.system_comparison.claim_measures`, and ``claim_recall``: of all claims that are possible,
        the share that the captions make correctly. An object that is not in the picture counts as one wrong claim,
        whatever else the caption says of it.
    """
    checked = [checked_claims(caption, picture) for caption, picture in zip(claims, truth, strict=True)]
    known = [len(checked_claims(picture, picture)) for picture in truth]
    recall = ratio_measure([sum(claim.right for claim in caption) for caption in checked], known)
    return {"claim_recall": recall, **claim_measures(checked, KINDS_OF_CLAIM)}


Claimed = str | int | tuple[str, ...]


def checked_claims(caption: Claims, picture: Claims) -> list[Claim]:
    """Return all claims of a caption, for people, each beside what is true of the picture."""

    def check(kind: str, claimed: Claimed, true: Claimed | None, words: tuple[int, ...]) -> Claim:
        return Claim(kind, _to_text(claimed), None if true is None else _to_text(true), claimed == true, words)

    there, claims = list(picture.groups), list[Claim]()
    for group in caption.groups:
        meant = next((other for other in there if other.kind == group.kind), None)
        claims.append(check("objects", group.kind, None if meant is None else meant.kind, group.words["kind"]))
        if meant is not None:
            there.remove(meant)
            for name in ("count", "size", "texture", "color"):
                if (claimed := getattr(group, name)) is not None:
                    claims.append(check(f"{name}s", claimed, getattr(meant, name), group.words[name]))
    for name in ("relation", "place"):
        if (claimed := getattr(caption, name)) is not None:
            claims.append(check(f"{name}s", claimed, getattr(picture, name), caption.words[name]))
    return claims


def _to_text(claim: Claimed) -> str:
    if not isinstance(claim, tuple):
        return "one" if claim == 1 else WORDS.numbers[claim] if isinstance(claim, int) else claim
    relation, subject, *others = claim  # As in Claims.
    return " ".join([subject, relation.replace("_", " "), " and ".join(others)]).strip()
