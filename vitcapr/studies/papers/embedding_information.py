"""Entropy of embeddings, and what images and captions share in them, in bits."""

import numpy as np

from vitcapr.formats.embeddings import Embeddings
from vitcapr.studies.papers import information

PROTOCOL = (
    f"entropy:{information.BINS} equal bins a feature, mean over features|spectral:of the covariance"
    f"|match information:similarity against true or wrong, one of each a query, {information.BINS} quantile bins, "
    f"Miller-Madow|shared information:KSG, k={information.NEIGHBOURS}, {information.COMPONENTS} principal components a "
    f"side, at most {information.POINTS} pairs"
)
_SEED = 0


def embedding_information(found: Embeddings) -> dict[str, float]:
    """Entropies and mutual information of more than :data:`~vitcapr.studies.papers.information.NEIGHBOURS` images.

    Of each caption one wrong image, and of each image one of its captions and a wrong one, are drawn.
    """
    generator = np.random.default_rng(_SEED)
    images, captions, owner = found.images, found.captions, found.caption_image.astype(np.int64)
    strangers = (owner + generator.integers(1, len(images), len(owner))) % len(images)
    own = np.array([generator.choice(np.flatnonzero(owner == image)) for image in np.unique(owner)])
    asked = owner[own]
    foreign = generator.integers(0, len(owner), len(own))
    foreign = np.where(owner[foreign] == asked, (foreign + 1) % len(owner), foreign)
    foreign, kept = foreign[owner[foreign] != asked], owner[foreign] != asked
    true = np.einsum("ne,ne->n", images[asked], captions[own])
    return {
        "image_entropy": information.histogram_entropy(images),
        "caption_entropy": information.histogram_entropy(captions),
        "image_spectral_entropy": information.spectral_entropy(images),
        "caption_spectral_entropy": information.spectral_entropy(captions),
        "image_match_information": information.match_information(
            true, np.einsum("ne,ne->n", images[asked[kept]], captions[foreign])
        ),
        "caption_match_information": information.match_information(
            np.einsum("ne,ne->n", captions, images[owner]), np.einsum("ne,ne->n", captions, images[strangers])
        ),
        "shared_information": information.shared_information(images[asked], captions[own]),
    }
