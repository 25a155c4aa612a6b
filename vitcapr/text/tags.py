"""Parts of speech of captions in two languages, by whichever tagger there is.

The tags are the twelve that are the same for all languages: S. Petrov, D. Das, R. McDonald: A Universal Part-of-Speech
Tagset. LREC 2012. HanLP tags both languages where it is installed (the paper's choice; it fetches a model); otherwise
jieba tags Chinese and rules tag English.
"""

import importlib.util
import logging
import tempfile
from importlib.metadata import version
from typing import Literal, Protocol

from vitcapr.errors import UserError
from vitcapr.formats.tokens import TAGS, Tagged
from vitcapr.text.english_tags import tag_english

_JIEBA = {"n": "NOUN", "t": "NOUN", "s": "NOUN", "f": "NOUN", "v": "VERB", "a": "ADJ", "b": "ADJ", "z": "ADJ"}
_JIEBA |= {"d": "ADV", "r": "PRON", "m": "NUM", "q": "NUM", "p": "ADP", "c": "CONJ", "u": "PRT", "y": "PRT", "e": "PRT"}
_JIEBA |= {"o": "PRT", "k": "PRT", "h": "PRT", "x": "."}
"""First letter of an ICTCLAS tag; classifiers count as numerals, as in Petrov's map of the Chinese treebank."""
_UD = {"PROPN": "NOUN", "AUX": "VERB", "CCONJ": "CONJ", "SCONJ": "CONJ", "PART": "PRT", "INTJ": "PRT"}
_UD |= {"PUNCT": ".", "SYM": "."}
"""Universal Dependencies has seventeen tags. These are joined."""


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
        try:
            self._model = hanlp.load(hanlp.pretrained.mtl.UD_ONTONOTES_TOK_POS_LEM_FEA_NER_SRL_DEP_SDP_CON_XLMR_BASE)
        except OSError as error:
            what = f"HanLP's model can neither be found nor downloaded: {error}"
            raise UserError(what, remedy="run once where the network is, or set tags.tagger: jieba") from error

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
        raise UserError("HanLP is not installed", remedy="pip install 'vitcapr[hanlp]', or set tags.tagger: jieba")
    if there and choice != "jieba":
        both = HanlpTagger()
        return {"en": both, "zh": both}
    return {"en": RuleTagger(), "zh": JiebaTagger()}
