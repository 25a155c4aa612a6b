"""CIDEr of every image for several systems that captioned the same images."""

from collections.abc import Mapping, Sequence

from vitcapr.formats.manifest import Manifest
from vitcapr.metrics.bootstrap import Array
from vitcapr.metrics.captions.cider import cider
from vitcapr.metrics.inputs import Caption
from vitcapr.metrics.references import references_of, tokenize_all


def system_ciders(
    data: Manifest,
    split: str,
    language: str,
    images: Sequence[str],
    systems: Sequence[Mapping[str, str]],
    timeout: float,
) -> list[Array]:
    """CIDEr of each image for each system, (B,) each, as the stage ``score`` gives it for the same images.

    Args:
        images: the ids of B images of the split.
        systems: each one's caption by image id.
        timeout: seconds that the tokenizer may take.
    """
    references = references_of(data, split, language)
    flat = [Caption(image, system[image]) for system in systems for image in images]
    words, reference_words = tokenize_all(flat, {image: references[image] for image in images}, timeout)
    others = list(reference_words.values())
    parts = [words[start : start + len(images)] for start in range(0, len(words), len(images))]
    return [cider(part, others).per_image for part in parts]
