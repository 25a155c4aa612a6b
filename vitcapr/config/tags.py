"""Who says which part of speech a word is."""

from typing import Literal

from vitcapr.config.base import Section


class TagsConfig(Section):
    """Part-of-speech tags of the captions, for models that take them beside the words."""

    tagger: Literal["auto", "hanlp", "jieba"] = "auto"
    """hanlp: both languages, by a model that it fetches; jieba: Chinese, and English by rule; auto: HanLP where it is
    installed."""
