"""Configuration of the part-of-speech tagger."""

from typing import Literal

from vitcapr.config.base import Section


class TagsConfig(Section):
    """Part-of-speech tags of the captions, for models that read them in addition to the words."""

    tagger: Literal["auto", "hanlp", "jieba"] = "auto"
    """hanlp: a downloaded model for both languages; jieba: jieba for Chinese and rules for English; auto: HanLP if it
    is installed."""
