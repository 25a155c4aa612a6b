"""The list "what to look at" of the first page: signs that scores mislead or that a training went wrong."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vitcapr.formats.captions import read_captions
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.tables import PageSection
from vitcapr.formats.training_files import read_history
from vitcapr.metrics.bootstrap import few_images
from vitcapr.metrics.captions.diversity import loops

_SHARED = 0.02
"""Share of the images with one caption from which the caption is listed."""
_RISE = 1.05
"""Ratio of the last validation loss to the lowest from which a training counts as overfitted."""


def what_to_look_at(
    data: Manifest,
    split: str,
    captions: Mapping[str, Path],
    histories: Mapping[str, Path],
    sections: Sequence[PageSection],
) -> list[str]:
    """Return sentences on loops, shared captions, overfitting, too few images and images of several splits.

    Args:
        captions: by system.
        histories: ``history.csv`` by model.
        sections: of extensions, which add sentences of their own.
    """
    images = int((data.images["split"] == split).sum())
    few = few_images(images)
    return [
        *([few] if few else []),
        *_repeated_images(data, split),
        *(sentence for system, path in captions.items() for sentence in _captions(system, path)),
        *(sentence for model, path in histories.items() for sentence in _training(model, path)),
        *(sentence for section in sections for sentence in section.look),
    ]


def _repeated_images(data: Manifest, split: str) -> Iterator[str]:
    splits = data.images.groupby("sha256")["split"].agg(set)
    for other in sorted({each for some in splits for each in some} - {split, "none"}):
        if shared := int(splits.map(lambda some, other=other: {split, other} <= some).sum()):
            yield f"{shared:,} {split} pictures are also in {other}, byte for byte."


def _captions(system: str, path: Path) -> Iterator[str]:
    written = read_captions(path).values()
    if any(each.oracle for each in written):
        return
    if looping := sum(loops(each.tokens) for each in written):
        yield f"{system}: {looping:,} of {len(written):,} captions loop (a word or phrase twice in a row)."
    (text, count), *_ = Counter(each.caption for each in written).most_common(1)
    if count > max(2, _SHARED * len(written)):
        yield f"{system}: {count:,} of {len(written):,} pictures share the caption “{text}”."


def _training(model: str, path: Path) -> Iterator[str]:
    epochs = read_history(path).to_dict("records")
    known = [one for one in epochs if not math.isnan(one.get("validation_loss", math.nan))]
    if not known:
        return
    best, last = min(known, key=lambda one: one["validation_loss"]), known[-1]
    if last["validation_loss"] > _RISE * best["validation_loss"] and last["train_loss"] < best["train_loss"]:
        yield (
            f"{model}: overfits after epoch {best['epoch']:.0f}: the validation loss rises from "
            f"{best['validation_loss']:.2f} to {last['validation_loss']:.2f} while the training loss falls."
        )
