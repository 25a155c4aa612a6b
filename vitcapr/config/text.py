"""Configuration of the text: cleaning, vocabulary, word vectors and parts of speech."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from vitcapr.config.base import Section, StageSettings
from vitcapr.config.dataset import find_data
from vitcapr.config.names import Name, UserPath


class NormaliseConfig(Section):
    """Cleaning of a caption before it is split into words. Cleaning always lower-cases."""

    non_letters: Literal["space", "remove", "keep"] = "remove"
    """Replace punctuation and numerals by a space, remove them, or keep them."""
    drop_one_letter: bool = False
    """Remove words of one letter, such as 'a'."""


class VocabularyConfig(Section):
    """Selection of the captioner's words."""

    min_count: int = Field(5, ge=1)
    threshold: Literal["inclusive", "exclusive"] = "inclusive"
    """inclusive: keep words that occur at least min_count times; exclusive: keep words that occur more often."""
    splits: list[Literal["train", "validation", "test", "none"]] = ["train"]
    """Splits whose words are counted. Other values than [train] leak test data; the protocol of every score then says
    so."""
    unknown: bool = True
    """Replace rare words by <unk>; false: remove them from the caption."""


class WordVectorsConfig(Section):
    """A word-vector text file in GloVe's format."""

    path: UserPath
    dimension: int = Field(50, ge=1)
    seed: int = Field(0, ge=0)
    """Seed of the normal distribution that gives vectors to words missing from the file."""

    def user_files(self) -> Iterator[tuple[str, Path]]:
        yield "path", find_data(self.path)


class TextConfig(Section):
    language: Name = "en"
    """Language of the captions to train on and to score."""
    normalise: NormaliseConfig = NormaliseConfig()
    vocabulary: VocabularyConfig = VocabularyConfig()


class VocabularySettings(StageSettings):
    """The settings of the stage ``vocabulary``."""

    text: TextConfig = TextConfig()


class TagsConfig(Section):
    """Part-of-speech tags of the captions, for models that read them in addition to the words."""

    tagger: Literal["auto", "hanlp", "jieba"] = "auto"
    """hanlp: a downloaded model for both languages; jieba: jieba for Chinese and rules for English; auto: HanLP if it
    is installed."""
