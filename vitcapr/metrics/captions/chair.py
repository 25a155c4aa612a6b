"""CHAIR: how often captions name objects of MS COCO that are not in the image."""

from collections.abc import Collection, Sequence

from vitcapr.errors import UserError
from vitcapr.metrics.base import CaptionMetric, TokenisedCaptions
from vitcapr.metrics.bootstrap import Measure, mean_measure, ratio, ratio_measure
from vitcapr.metrics.coco_objects import mentioned


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
    return chair(captions.words, objects)


METRIC = CaptionMetric(
    measure=_chair,
    protocol="chair:instances+references",
    corpus={"chair_i": ("chair_statistics", ratio)},
)
