"""CHAIR: how often captions name objects of MS COCO that are not in the image.

The 80 categories of the instance annotations, and the words that count as each, are in ``chair.yaml``.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path

import yaml

from vitcapr.errors import UserError
from vitcapr.metrics.bootstrap import Measure, mean_measure, ratio, ratio_measure
from vitcapr.metrics.caption_metric import CaptionMetric, TokenisedCaptions

_WORDS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
CATEGORIES = frozenset([*_WORDS["categories"], *_WORDS["others"]])
"""The names of the categories in COCO's instance annotations."""
_WORD = re.compile("[a-z]+")


def mentioned(caption: str) -> list[str]:
    """Return the category of each mention of an object, in the order of the caption; a category may be named again.

    A term of two words, such as "hot dog", is taken before its words. Singular and plural count.
    """
    words, terms = _WORD.findall(caption.lower()), _terms()
    mentions: list[tuple[str, str]] = []
    place = 0
    while place < len(words):
        pair, word = " ".join(words[place : place + 2]), words[place]
        term = pair if pair in terms else word
        mentions.append((term, terms.get(term, "")))
        place += len(term.split())
    toilet = any(category == "toilet" for _, category in mentions)
    return [category for term, category in mentions if category and not (toilet and term in ("seat", "seats"))]


@cache
def _terms() -> dict[str, str]:
    """Return every term in singular and plural -> its category; empty for none."""
    categories = {category: category for category in sorted(CATEGORIES)}
    categories |= {word: category for category, words in _WORDS["categories"].items() for word in words}
    pairs = {f"{one} {word}": word for each in _WORDS["pairs"] for one in each["before"] for word in each["words"]}
    pairs |= dict.fromkeys(_WORDS["nothing"], "")
    terms = categories | {pair: categories.get(word, "") for pair, word in pairs.items()}
    return {form: category for term, category in terms.items() for form in (term, *_plurals(term))} | terms


def _plurals(term: str) -> Iterator[str]:
    yield term + ("es" if term.endswith(("s", "x", "z", "ch", "sh")) else "s")
    if term.endswith("o"):
        yield term + "es"
    irregular = (("y", "ies"), ("man", "men"), ("child", "children"), ("mouse", "mice"), ("goose", "geese"))
    for ending, plural in (*irregular, ("fe", "ves"), ("calf", "calves"), ("thief", "thieves")):
        if term.endswith(ending):
            yield term.removesuffix(ending) + plural


def chair(captions: Sequence[str], objects: Sequence[Collection[str]]) -> dict[str, Measure]:
    """CHAIRi and CHAIRs (Rohrbach et al. 2018, "Object Hallucination in Image Captioning", section 2).

    CHAIRi is the share of the mentions of objects that name an object which is not in the image; CHAIRs is the share of
    captions with such a mention.

    Args:
        captions: (N,).
        objects: (N,) the categories in the image of each caption.
    """
    named = [mentioned(caption) for caption in captions]
    wrong = [sum(category not in there for category in each) for each, there in zip(named, objects, strict=True)]
    return {
        "chair_i": ratio_measure(wrong, [len(each) for each in named]),
        "chair_s": mean_measure([count > 0 for count in wrong]),
    }


def _chair(captions: TokenisedCaptions) -> dict[str, Measure]:
    if not captions.instances:
        raise UserError("CHAIR needs the instance annotations of COCO", remedy="name them, or leave out chair")
    objects = []
    for image, references in captions.references.items():
        if image not in captions.instances:
            what = "an image is not in the instance annotations"
            raise UserError(what, where=f"image {image}", remedy="name the instances_*.json of these images")
        objects.append(captions.instances[image].union(*map(mentioned, references)))
    return chair(captions.tokenised, objects)


METRIC = CaptionMetric(
    measure=_chair,
    protocol="chair:instances+references",
    corpus={"chair_i": ("chair_statistics", ratio)},
)
