"""Parts of speech of captions in two languages, by whichever tagger there is.

The tags are the twelve that are the same for all languages: S. Petrov, D. Das, R. McDonald: A Universal Part-of-Speech
Tagset. LREC 2012. HanLP tags both languages where it is installed (the paper's choice; it fetches a model); otherwise
jieba tags Chinese and rules tag English: the taggers of NLTK and spaCy need a model that has to be downloaded.
A caption is short, in the present tense, and its words are a noun unless something speaks against it.
"""

import importlib.util
import logging
import re
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from vitcapr.errors import UserError
from vitcapr.extensions.finetuning.text_files import TAGS, Tagged

_DATA: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
_JIEBA: dict[str, str] = {letter: tag for tag, letters in _DATA["jieba"].items() for letter in letters}
_WORD_CLASS: dict[str, str] = {word: tag for tag, words in _DATA["words"].items() for word in words.split()}
_FINITE = re.compile(f"(?:{'|'.join(_DATA['finite'].split())})s?")
_SUBJECT = ("NOUN", "PRON", "NUM")
_TOKEN = re.compile(r"[A-Za-z]+(?:['’\-][A-Za-z]+)*|\d+(?:[.,]\d+)*|[^\w\s]|\w")


class Tagger(NamedTuple):
    """Tags captions of one language.

    Attributes:
        name: what it is and of which version, for the card.
        tag: gives the words of a caption in order, as characters of it; symbols may be left out.
    """

    name: str
    tag: Callable[[str], list[Tagged]]


def jieba_tagger() -> Tagger:
    """Chinese by jieba's dictionary and hidden Markov model."""
    import jieba
    from jieba.posseg import POSTokenizer

    jieba.setLogLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        dictionary = jieba.Tokenizer()
        # Its cache of the dictionary would lie in the shared temporary folder, for anyone to replace.
        dictionary.tmp_dir = folder
        dictionary.initialize()
    tagger = POSTokenizer(dictionary)

    def tag(text: str) -> list[Tagged]:
        words, at = [], 0
        for word in tagger.cut(text):
            end = at + len(word.word)
            if not word.word.isspace():
                words.append((at, end, "X" if word.flag == "eng" else _JIEBA.get(word.flag[0], "X")))
            at = end
        return words

    return Tagger(f"jieba {version('jieba')}", tag)


def hanlp_tagger() -> Tagger:
    """Return the tagger of both languages by HanLP's multilingual model, which it downloads.

    The model is XLM-RoBERTa with Universal Dependencies.
    """
    import hanlp

    try:
        model = hanlp.load(hanlp.pretrained.mtl.UD_ONTONOTES_TOK_POS_LEM_FEA_NER_SRL_DEP_SDP_CON_XLMR_BASE)
    except OSError as error:
        what = f"HanLP's model can neither be found nor downloaded: {error}"
        raise UserError(what, remedy="run once where the network is, or set tags.tagger: jieba") from error

    def tag(text: str) -> list[Tagged]:
        document = model(text, tasks=["tok", "pos"])
        words, at = [], 0
        for word, tag in zip(document["tok"], document["pos"], strict=True):
            start = text.find(word, at)
            if start >= 0:
                at = start + len(word)
                words.append((start, at, _DATA["universal_dependencies"].get(tag, tag if tag in TAGS else "X")))
        return words

    return Tagger(f"HanLP {version('hanlp')}", tag)


def taggers(choice: Literal["auto", "hanlp", "jieba"]) -> dict[str, Tagger]:
    """Return the tagger of each language, ``en`` and ``zh``. ``auto``: HanLP where it is installed."""
    there = importlib.util.find_spec("hanlp") is not None
    if choice == "hanlp" and not there:
        raise UserError("HanLP is not installed", remedy="pip install 'vitcapr[hanlp]', or set tags.tagger: jieba")
    if there and choice != "jieba":
        both = hanlp_tagger()
        return {"en": both, "zh": both}
    return {"en": Tagger("rules (vitcapr.text.english_tags)", tag_english), "zh": jieba_tagger()}


def tag_english(text: str) -> list[tuple[int, int, str]]:
    """(start, end, tag) of each word and symbol, in characters of ``text``; tags of Petrov et al. (2012).

    >>> [tag for _, _, tag in tag_english("A young man rides two brown horses .")]
    ['DET', 'ADJ', 'NOUN', 'VERB', 'NUM', 'ADJ', 'NOUN', '.']
    """
    words: list[tuple[int, int, str]] = []
    for match in _TOKEN.finditer(text):
        before = words[-1][2] if words else ""
        words.append((match.start(), match.end(), _tag(match.group().lower(), before)))
    return words


def _tag(word: str, before: str) -> str:
    if word[0].isdigit():
        return "NUM"
    if not word[0].isalpha():
        return "."
    if word in _WORD_CLASS:
        return _WORD_CLASS[word]
    if before in _SUBJECT and _FINITE.fullmatch(word):
        return "VERB"
    for ending, tag in _DATA["endings"].items():
        if word.endswith(ending) and len(word) > len(ending) + 2:
            # "a running dog": what describes stands between its article and its noun.
            return "ADJ" if tag == "VERB" and before == "DET" else tag
    return "NOUN"
