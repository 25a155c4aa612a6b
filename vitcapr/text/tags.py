"""Parts of speech of captions in two languages, by whichever tagger there is, and how they are kept.

The tags are the twelve that are the same for all languages: S. Petrov, D. Das, R. McDonald: A Universal Part-of-Speech
Tagset. LREC 2012. HanLP tags both languages where it is installed (the paper's choice; it fetches a model); otherwise
jieba tags Chinese and rules tag English.
"""

import importlib.util
import logging
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal, Protocol, Self

import numpy as np

from vitcapr.artefacts.arrays import read_arrays, write_arrays
from vitcapr.errors import UserError
from vitcapr.text.english_tags import tag_english

TAGS = ("NOUN", "VERB", "ADJ", "ADV", "PRON", "DET", "ADP", "NUM", "CONJ", "PRT", ".", "X")
NONE = 0
"""Where there is no word; tag t of ``TAGS`` is number t + 1."""

Tagged = tuple[int, int, str]
"""First character, end, tag."""

_JIEBA = {"n": "NOUN", "t": "NOUN", "s": "NOUN", "f": "NOUN", "v": "VERB", "a": "ADJ", "b": "ADJ", "z": "ADJ"}
_JIEBA |= {"d": "ADV", "r": "PRON", "m": "NUM", "q": "NUM", "p": "ADP", "c": "CONJ", "u": "PRT", "y": "PRT", "e": "PRT"}
_JIEBA |= {"o": "PRT", "k": "PRT", "h": "PRT", "x": "."}
"""First letter of an ICTCLAS tag; classifiers count as numerals, as in Petrov's map of the Chinese treebank."""
_UD = {"PROPN": "NOUN", "AUX": "VERB", "CCONJ": "CONJ", "SCONJ": "CONJ", "PART": "PRT", "INTJ": "PRT"}
_UD |= {"PUNCT": ".", "SYM": "."}
"""Universal Dependencies has seventeen tags, of which these are joined."""


class Tagger(Protocol):
    """Tags captions of one language."""

    @property
    def name(self) -> str:
        """What it is and of which version, for the card."""
        ...

    def tag(self, text: str) -> list[Tagged]:
        """The words of a caption in order, as characters of it; symbols may be left out."""
        ...


class RuleTagger:
    """English by the rules of ``english_tags``."""

    name = "rules (vitcapr.text.english_tags)"

    def tag(self, text: str) -> list[Tagged]:
        return tag_english(text)


class JiebaTagger:
    """Chinese by jieba's dictionary and hidden Markov model."""

    def __init__(self) -> None:
        import jieba
        from jieba.posseg import POSTokenizer

        jieba.setLogLevel(logging.WARNING)
        self.name = f"jieba {version('jieba')}"
        with tempfile.TemporaryDirectory() as folder:
            words = jieba.Tokenizer()
            # Its cache of the dictionary would lie in the shared temporary folder, for anyone to replace.
            words.tmp_dir = folder
            words.initialize()
        self._tagger = POSTokenizer(words)

    def tag(self, text: str) -> list[Tagged]:
        found, at = [], 0
        for word in self._tagger.cut(text):
            end = at + len(word.word)
            if not word.word.isspace():
                found.append((at, end, "X" if word.flag == "eng" else _JIEBA.get(word.flag[0], "X")))
            at = end
        return found


class HanlpTagger:
    """Both languages by HanLP's multilingual model (XLM-RoBERTa, Universal Dependencies), which it downloads."""

    def __init__(self) -> None:
        import hanlp

        self.name = f"HanLP {version('hanlp')}"
        self._model = hanlp.load(hanlp.pretrained.mtl.UD_ONTONOTES_TOK_POS_LEM_FEA_NER_SRL_DEP_SDP_CON_XLMR_BASE)

    def tag(self, text: str) -> list[Tagged]:
        document = self._model(text, tasks=["tok", "pos"])
        found, at = [], 0
        for word, tag in zip(document["tok"], document["pos"], strict=True):
            start = text.find(word, at)
            if start >= 0:
                at = start + len(word)
                found.append((start, at, _UD.get(tag, tag if tag in TAGS else "X")))
        return found


def taggers(choice: Literal["auto", "hanlp", "jieba"]) -> dict[str, Tagger]:
    """The tagger of each language, ``en`` and ``zh``. ``auto``: HanLP where it is installed.

    Raises:
        UserError: HanLP is asked for and is not installed.
    """
    there = importlib.util.find_spec("hanlp") is not None
    if choice == "hanlp" and not there:
        raise UserError("HanLP is not installed", remedy="pip install hanlp, or set tags.tagger: jieba")
    if there and choice != "jieba":
        both = HanlpTagger()
        return {"en": both, "zh": both}
    return {"en": RuleTagger(), "zh": JiebaTagger()}


@dataclass(frozen=True)
class TagTable:
    """The tagged words of M captions, in the order of ``captions.parquet``.

    Attributes:
        offsets: (M+1,) int64; the words of caption m are ``offsets[m]`` to ``offsets[m+1]``.
        start, end: (W,) int32, characters of the caption.
        tag: (W,) int8, places in ``TAGS`` plus 1.
    """

    offsets: np.ndarray
    start: np.ndarray
    end: np.ndarray
    tag: np.ndarray

    @classmethod
    def of(cls, captions: Sequence[Sequence[Tagged]]) -> Self:
        words = [word for caption in captions for word in caption]
        return cls(
            np.cumsum([0, *map(len, captions)], dtype=np.int64),
            np.array([start for start, _, _ in words], np.int32),
            np.array([end for _, end, _ in words], np.int32),
            np.array([TAGS.index(tag) + 1 for _, _, tag in words], np.int8),
        )

    def at(self, caption: int, characters: Sequence[int]) -> list[int]:
        """The tag at each of some characters of a caption, ``NONE`` between words: what joins the tags to the pieces
        of any tokenizer, which says at which character each piece begins."""
        words = slice(int(self.offsets[caption]), int(self.offsets[caption + 1]))
        start, end, tag = self.start[words], self.end[words], self.tag[words]
        if not len(start):
            return [NONE] * len(characters)
        places = np.searchsorted(start, characters, side="right") - 1
        inside = (places >= 0) & (np.asarray(characters) < end[places])
        return [int(number) for number in np.where(inside, tag[places], NONE)]

    def counts(self) -> dict[str, int]:
        """How many words have each tag."""
        return {tag: int((self.tag == number).sum()) for number, tag in enumerate(TAGS, start=1)}

    def write(self, path: Path) -> None:
        write_arrays(path, vars(self))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises:
        UserError: the file is missing, or is not such a table.
        """
        kinds = dict.fromkeys(("offsets", "start", "end", "tag"), np.integer)
        return cls(**read_arrays(path, kinds, "a table of tagged words", "run the stage tag_words"))
