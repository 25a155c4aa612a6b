"""The reference captions of a split, and their tokens together with those of the candidates."""

from collections.abc import Mapping, Sequence

import numpy as np

from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest
from vitcapr.metrics import java
from vitcapr.metrics.inputs import Caption, check_text, check_tokens


def references_of(data: Manifest, split: str, language: str) -> dict[str, list[str]]:
    """The raw captions of each image of the split, in the manifest's order.

    Raises:
        UserError: the split has no image, or an image of it has no caption in ``language``, or that is not English.
    """
    if language != "en":
        raise UserError(
            f"captions in the language '{language}' cannot be scored",
            where="text.language",
            remedy="the tokenizer, METEOR and the list of function words are for English, 'en'",
        )
    table = data.captions_of(split, language)
    references = {image: group["text"].tolist() for image, group in table.groupby("image_id", sort=False)}
    images = data.images["image_id"].iloc[data.rows(split)].tolist()
    if not images:
        raise UserError(f"the data set {data.dataset} has no image in the split '{split}'")
    for image in images:
        if image not in references:
            raise UserError(f"an image has no reference in the language '{language}'", where=f"image {image}")
    return {image: references[image] for image in images}


def sample_references(
    references: Mapping[str, list[str]], count: int | None, seed: int
) -> tuple[dict[str, list[str]], list[str]]:
    """The references of ``count`` images drawn with ``seed``, in the manifest's order, and the part of the protocol.

    All images, and no part of the protocol, if ``count`` is None or not less than their number.
    """
    images = list(references)
    if count is None or count >= len(images):
        return dict(references), []
    drawn = sorted(np.random.default_rng(seed).permutation(len(images))[:count].tolist())
    sampled = {images[place]: references[images[place]] for place in drawn}
    return sampled, [f"sample:{count}/{len(images)},seed={seed}"]


def tokenize_all(
    candidates: Sequence[Caption], references: Mapping[str, Sequence[str]], timeout: float
) -> tuple[list[str], dict[str, list[str]]]:
    """The words of each candidate, and those of each image's references, in one call of the PTB tokenizer.

    Args:
        candidates: any number an image.
        timeout: seconds that the tokenizer may take.

    Raises:
        UserError: a caption is empty, breaks the line, or has no word in it; or the tokenizer failed.
    """
    flat = [Caption(image, text) for image, texts in references.items() for text in texts]
    for caption in (*candidates, *flat):
        check_text(caption)
    tokens = iter(java.tokenize([*candidates, *flat], timeout))
    words = [next(tokens) for _ in candidates]
    reference_words = {image: [next(tokens) for _ in texts] for image, texts in references.items()}
    check_tokens(candidates, [reference_words[candidate.image_id] for candidate in candidates], words)
    return words, reference_words
