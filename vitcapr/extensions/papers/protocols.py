"""Protocols of scores in words for readers; their exact strings are for programs and for notes."""

import re
from collections.abc import Iterable

_WORDS = {
    r"tok:ptb": "tokens of the Penn Treebank",
    r"tok:(.+)": "tokens of {}",
    r"refs:(.+)": "{} references for each image",
    r"pool:(\d+)images,(\d+)captions": "{} images and {} captions search each other",
    r"i2t:(\d+)images of (\d+)captions.*": "{} images search {} captions",
    r"t2i:(\d+)captions of (\d+)images": "{} captions search {} images",
    r"images:(\d+)": "{} images",
    r"i2t:any-of-(.+)": "an image may find any of its {} captions",
    r"ties:pessimistic": "a tie counts against the match",
    r"1k:mean of (\d+) folds": "1k scores are means of {} folds",
    r"distractors:(\d+)captions and (\d+)images of (.+)": "{} captions and {} images of {} as distractors",
    r"split:(.+)": "{} split",
    r"bleu:corpus,closest": "BLEU over the corpus, against the closest reference length",
    r"meteor:(.+)": "METEOR {}",
    r"rouge_l:beta=(.+)": "ROUGE-L with beta {}",
    r"cider:d,idf=refs": "CIDEr-D with document frequencies from the references",
    r"spice:(.+)": "SPICE {}",
    r"vocab:(.+),>=(\d+),(\d+)": "a vocabulary of {2} words, each at least {1} times in the {0} captions",
    r"(mean of \d+ seeds, .+)": "{}",
}


def in_words(protocols: Iterable[str]) -> str:
    """Return the parts of protocols that a reader compares, each once; parts without a wording are left out.

    >>> in_words(["pool:9images,45captions|ties:pessimistic|split:test|scores:float32"])
    '9 images and 45 captions search each other; a tie counts against the match; test split'
    """
    parts = dict.fromkeys(part for protocol in protocols for part in protocol.split("|"))
    return "; ".join(words for part in parts if (words := _words(part)))


def _words(part: str) -> str:
    for pattern, words in _WORDS.items():
        if match := re.fullmatch(pattern, part):
            return words.format(*(f"{int(one):,}" if one.isdigit() else one for one in match.groups()))
    return ""
