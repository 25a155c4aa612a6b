"""Grounding: whether a captioner attends to an object when it generates the object's word.

The attention of a word that names an object in the image is compared with the mask of all objects of that word.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitcapr.data.archive import Archive, DamagedMember
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest
from vitcapr.metrics.bootstrap import Array, Measure, ratio_measure
from vitcapr.progress import Reporter

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class MaskedPicture:
    """The objects of one picture.

    Attributes:
        labels: (H, W) integers, the label of the object at each pixel.
        words: the labels that each word names; a word in singular and plural names the same.
    """

    labels: npt.NDArray[np.integer]
    words: Mapping[str, frozenset[int]]

    def mask(self, word: str) -> Mask:
        """(H, W), true on every object that ``word`` names."""
        return np.isin(self.labels, list(self.words[word]))


def measures(
    captions: Sequence[Sequence[str]],
    attention: Sequence[Array],
    pictures: Sequence[MaskedPicture],
    object_words: frozenset[str],
    grid: tuple[int, int],
) -> dict[str, Measure]:
    """Grounding of N captions, averaged over the object words they hold.

    Args:
        captions: the words of each caption.
        attention: for each caption (words, P), over the patches of the grid in row order.
        pictures: what each caption is of.
        object_words: all words that name an object in any picture.
        grid: patches in a column and in a row of the picture, which they cover evenly.

    Returns:
        ``grounding``: the share of a word's attention that falls on its objects; ``grounding_chance``: their share
        of the area, which is what even attention scores. ``pointing_game``: how often the attention is greatest on
        them, ``pointing_game_chance``: how often a random patch is (Zhang et al., Top-down Neural Attention by
        Excitation Backprop, 2016). ``object_hallucination``: of the object words, the share that names nothing in
        the picture (as CHAIR-i of Rohrbach et al., Object Hallucination in Image Captioning, 2018).
        ``object_words_mean``: object words in a caption.
    """
    rows = np.zeros((len(captions), 6))
    for row, caption, weights, picture in zip(rows, captions, attention, pictures, strict=True):
        masks: dict[str, Mask] = {}
        for word, of_word in zip(caption, weights, strict=True):
            if word not in object_words:
                continue
            row[5] += 1
            if word not in picture.words:
                continue
            mask = masks.setdefault(word, picture.mask(word))
            heat = of_word.reshape(grid)
            shares = attention_share(heat, mask), mask.mean(), pointing_hit(heat, mask), pointing_chance(mask, grid)
            row[:5] += (*shares, 1)
    share, area, hits, chance, present, named = rows.T
    return {
        "grounding": ratio_measure(share, present),
        "grounding_chance": ratio_measure(area, present),
        "pointing_game": ratio_measure(hits, present),
        "pointing_game_chance": ratio_measure(chance, present),
        "object_hallucination": ratio_measure(named - present, named),
        "object_words_mean": ratio_measure(named, np.ones(len(captions))),
    }


def attention_share(heat: Array, mask: Mask) -> float:
    """Return the share of ``heat (h, w)`` on ``mask (H, W)``, the weight of a patch spread evenly over its area."""
    across, down = overlap(heat.shape[0], mask.shape[0]), overlap(heat.shape[1], mask.shape[1])
    covered = across @ mask @ down.T
    total = float(heat.sum())
    return float((heat * covered).sum()) / total if total > 0 else 0.0


def overlap(patches: int, pixels: int) -> Array:
    """Return the share of each patch that each pixel covers, along one axis: (patches, pixels), rows sum to one."""
    edges = np.arange(patches + 1) * (pixels / patches)
    start, end = edges[:-1, None], edges[1:, None]
    pixel = np.arange(pixels)
    common = np.clip(np.minimum(end, pixel + 1) - np.maximum(start, pixel), 0, None)
    return np.asarray(common * (patches / pixels))


def interpolation(patches: int, pixels: int) -> Array:
    """Bilinear upsampling along one axis, corners not aligned, edges repeated: (pixels, patches)."""
    place = (np.arange(pixels) + 0.5) * (patches / pixels) - 0.5
    return np.stack([np.interp(place, np.arange(patches), one) for one in np.eye(patches)], axis=1)


def pointing_hit(heat: Array, mask: Mask) -> float:
    """1 where the greatest value of ``heat (h, w)``, upsampled to ``mask (H, W)``, lies on the mask, else 0.

    Where several pixels share the greatest value, the share of them on the mask: a map that is the same
    everywhere points at random.
    """
    upsampled = interpolation(heat.shape[0], mask.shape[0]) @ heat @ interpolation(heat.shape[1], mask.shape[1]).T
    greatest = np.isclose(upsampled, upsampled.max(), rtol=1e-9, atol=0)
    return float(mask[greatest].mean())


def pointing_chance(mask: Mask, grid: tuple[int, int]) -> float:
    """Return the mean of :func:`pointing_hit` over maps that are nothing but one patch."""
    peaks = []
    for patches, pixels in zip(grid, mask.shape, strict=True):
        upsampled = interpolation(patches, pixels)
        at_peak = np.isclose(upsampled, upsampled.max(axis=0), rtol=1e-9, atol=0)
        peaks.append((at_peak / at_peak.sum(axis=0)).mean(axis=1))
    return float(peaks[0] @ mask @ peaks[1])


def object_words(data: Manifest, where: Path) -> frozenset[str]:
    """Return all words that name an object in any picture.

    Raises:
        UserError: the data set has no masks of objects.
    """
    if data.objects is None:
        raise UserError(f"the data set {data.dataset} has no masks of objects", where=where)
    return frozenset(word for listed in data.objects["words"] for word in listed)


def read_pictures(data: Manifest, images: Sequence[str], report: Reporter) -> list[MaskedPicture]:
    """Return the label picture of each image, and the labels that each word names; no label where no object is known.

    Raises:
        UserError: a mask is missing or damaged.
    """
    assert data.objects is not None
    objects = dict(iter(data.objects.groupby("image_id", sort=False)))
    pictures = []
    with Archive(data.image_root) as archive, report.track("masks", len(images), "images") as tracker:
        for image in images:
            tracker.advance()
            if image not in objects:
                pictures.append(MaskedPicture(np.zeros((1, 1), np.uint8), {}))
                continue
            path = objects[image]["mask"].iloc[0]
            try:
                with Image.open(io.BytesIO(archive.read(path))) as picture:
                    labels = np.asarray(picture)
            except (OSError, DamagedMember) as error:
                remedy = "run the data stage again"
                raise UserError("a mask cannot be read", where=archive.root / path, remedy=remedy) from error
            words: dict[str, frozenset[int]] = {}
            for names, label in zip(objects[image]["words"], objects[image]["label"], strict=True):
                for word in names:
                    words[word] = words.get(word, frozenset()) | {int(label)}
            pictures.append(MaskedPicture(labels, words))
    return pictures
