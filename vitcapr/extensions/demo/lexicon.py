"""The possible content of scenes, with its English and Chinese names: what ``lexicon.yaml`` says."""

from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pydantic import TypeAdapter

Rgb = tuple[int, int, int]
Forms = tuple[str, str]
"""Singular and plural."""


@dataclass(frozen=True)
class Size:
    english: list[str]
    chinese: str


@dataclass(frozen=True)
class Texture:
    """A texture in English, before or after the noun, and in Chinese, with the particle or compounded."""

    before: list[str]
    after: str
    chinese: tuple[str, str]


@dataclass(frozen=True)
class Color:
    chinese: str
    rgb: Rgb


@dataclass(frozen=True)
class Kind:
    """A kind of thing.

    Attributes:
        nouns: that English captions choose from.
        chinese: its noun in Chinese, and ``measure`` the measure word that goes with it.
        posture: the verb for being somewhere.
    """

    nouns: list[Forms]
    chinese: str
    measure: str
    posture: Forms

    def words(self) -> list[str]:
        """Return every noun by which a caption may name it."""
        return list(dict.fromkeys([*(word for pair in self.nouns for word in pair), self.chinese]))


@dataclass(frozen=True)
class Place:
    """The background of a picture.

    Attributes:
        phrases: how English captions say that something is there.
        chinese: the same in Chinese, and the place by itself.
        kinds: the names of the kinds that may be seen there.
        avoided: colours that would not stand out from it.
        gradient: its colours at the top and at the bottom.
        outline: the colour of the outlines of things.
        postures: the verb for being there of some kinds, and of all ``other``, where the place decides it.
    """

    phrases: list[str]
    chinese: tuple[str, str]
    kinds: list[str]
    avoided: list[str]
    gradient: tuple[Rgb, Rgb]
    outline: Rgb = (30, 30, 36)
    casts_shadow: bool = False
    postures: dict[str, Forms] = field(default_factory=dict)


@dataclass(frozen=True)
class English:
    """Phrases for numbers of things and for relations; see ``lexicon.yaml``."""

    numbers: dict[int, str]
    relations: dict[str, list[str]]
    held: dict[str, list[str]]
    plural: dict[str, str]
    whereabouts: dict[str, list[str]]
    arrangements: dict[str, dict[int, list[str]]]


@dataclass(frozen=True)
class Chinese:
    """The same in Chinese."""

    numbers: dict[int, str]
    relations: dict[str, list[str]]
    arrangements: dict[str, list[str]]


@dataclass(frozen=True)
class Lexicon:
    sizes: dict[str, Size]
    textures: dict[str, Texture]
    colors: dict[str, Color]
    kinds: dict[str, Kind]
    places: dict[str, Place]
    english: English
    chinese: Chinese


LEXICON = TypeAdapter(Lexicon).validate_python(
    yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
)
COLORS, KINDS, PLACES = LEXICON.colors, LEXICON.kinds, LEXICON.places
