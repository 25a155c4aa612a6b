"""A random image and a random caption of a split, and the first results of several models for them."""

from collections.abc import Callable, Mapping

import numpy as np
from PIL import Image

from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.report.figures.side_by_side import Found, Matches, first_captions, first_images
from vitcapr.report.figures.text import language_name

Show = Callable[[int], str | Image.Image]
"""What is shown of the image or caption at a position of the embeddings."""


def check_same_rows(systems: Mapping[str, Embeddings]) -> None:
    """Raises:
    UserError: two systems embed other images or captions.
    """
    first = next(iter(systems.values()))
    for name, other in systems.items():
        same = (np.array_equal(getattr(other, rows), getattr(first, rows)) for rows in ("image_row", "caption_row"))
        if not all(same):
            raise UserError(f"the embeddings of '{name}' are of other images or captions than the first")


def random_queries(embeddings: Embeddings, seed: int) -> tuple[int, int]:
    """The positions of an image and of a caption."""
    generator = np.random.default_rng(seed)
    return int(generator.integers(len(embeddings.images))), int(generator.integers(len(embeddings.captions)))


def notes_on_choice(data: Manifest, embeddings: Embeddings, split: str, seed: int) -> tuple[str, str]:
    """The notes on the pool and on the selection of the query, for the query image and the query caption."""
    languages = data.captions["language"].iloc[embeddings.caption_row].unique()
    named = f" in {' and '.join(map(language_name, languages))}" if data.captions["language"].nunique() > 1 else ""
    chosen = f"of the {split} split, with cosines; the query is drawn at random with seed {seed}"
    return (
        f"The first captions{named} among {len(embeddings.captions):,} {chosen}",
        f"The first images among {len(embeddings.images):,} {chosen}",
    )


def captions_found(systems: Mapping[str, Embeddings], image: int, show: Show) -> dict[str, list[Found]]:
    """The first captions of an image, by system."""
    return {name: _shown(first_captions(embeddings, image), show) for name, embeddings in systems.items()}


def images_found(systems: Mapping[str, Embeddings], caption: int, show: Show) -> dict[str, list[Found]]:
    """The first images of a caption, by system."""
    return {name: _shown(first_images(embeddings, caption), show) for name, embeddings in systems.items()}


def _shown(first: Matches, show: Show) -> list[Found]:
    places = zip(*first, strict=True)
    return [Found(show(int(place)), float(cosine), bool(right)) for place, cosine, right in places]
