"""From caption strings to word numbers."""

from typing import Literal

from pydantic import Field

from vitcapr.config.base import Section, StageSettings
from vitcapr.config.names import Name


class NormaliseConfig(Section):
    """How a caption is cleaned before it is cut into words; cleaning always lower-cases."""

    non_letters: Literal["space", "remove", "keep"] = "remove"
    """What becomes of punctuation and numerals: a space, nothing, or themselves."""
    drop_one_letter: bool = False
    """Leave out words of one letter, 'a' among them."""


class VocabularyConfig(Section):
    """Which words the captioner knows."""

    min_count: int = Field(5, ge=1)
    threshold: Literal["inclusive", "exclusive"] = "inclusive"
    """inclusive: a word seen min_count times is kept; exclusive: it must be seen more often."""
    splits: list[Literal["train", "validation", "test", "none"]] = ["train"]
    """Where words are counted. Anything but [train] leaks, and the protocol of every score says so."""
    unknown: bool = True
    """Map rare words to <unk>; false leaves them out of the caption."""


class WordVectorsConfig(Section):
    """A word-vector text file in GloVe's format."""

    path: str
    dimension: int = Field(50, ge=1)
    seed: int = Field(0, ge=0)
    """Seed of the normal draw for words that the file lacks."""


class TextConfig(Section):
    language: Name = "en"
    """The language of the captions that are learnt and scored."""
    normalise: NormaliseConfig = NormaliseConfig()
    vocabulary: VocabularyConfig = VocabularyConfig()


class VocabularySettings(StageSettings):
    """What the stage ``vocabulary`` reads."""

    text: TextConfig = TextConfig()
