"""Checks the listed images and captions of a data set and writes the manifest. All readers share this module."""

import difflib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from vitcapr.data.images import BadImage, ImageFacts, ImageSource, inspect_all
from vitcapr.errors import UserError
from vitcapr.formats.manifest import SPLITS, is_relative, is_text, write_manifest
from vitcapr.progress import Reporter

OnBadImage = Literal["reject", "fail"]
Rejected = list[tuple[str, str]]
"""(item, reason) of everything that is left out."""
KARPATHY_SPLITS = {"train": "train", "val": "validation", "test": "test"}
"""The splits of Karpathy's files, by their names there. COCO adds ``restval``."""
_SPELLINGS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing"),
    "none": ("none",),
}
SPLIT_NAMES = {spelling: split for split, spellings in _SPELLINGS.items() for spelling in spellings}
"""The spellings of a split in tables and names of folders."""


@dataclass(frozen=True, slots=True)
class ListedImage:
    """An image that the data set names; ``path`` is relative to the image root with ``/``, None if it is not there."""

    image_id: str
    path: str | None
    split: str


@dataclass(frozen=True, slots=True)
class ListedCaption:
    """A caption that the data set names, in the language of the data set unless it has its own."""

    caption_id: str
    image_id: str
    text: str
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """The listed images and captions of a data set, before any check.

    Attributes:
        images: in the data set's own order, each id once.
        captions: in the data set's own order; ids may repeat, texts be empty, images unknown.
        rejected: (item, reason) of what the reader could not even list.
    """

    images: Sequence[ListedImage]
    captions: Sequence[ListedCaption]
    rejected: Sequence[tuple[str, str]] = field(default=())


@contextmanager
def listed_photographs(
    key: str, images: str, expected: str, list_images: Callable[[ImageSource, list[str]], Listing]
) -> Iterator[tuple[ImageSource, Listing]]:
    """Open the photographs of a data set and list them, before any image is read.

    Args:
        key: of the configuration; it names ``images``.
        images: a folder or a zip, or one tar or Parquet file, which is read as a folder that holds nothing else.
        expected: the remedy of the errors.
        list_images: from the source and its files to the listing.
    """
    path = Path(images)
    if not images:
        raise UserError(f"{key} is not set", remedy=expected)
    if not path.exists():
        raise UserError(f"{key}: no such folder or file", where=path, remedy=expected)
    alone = path.suffix.lower() in (".tar", ".parquet")
    with ImageSource(path.parent if alone else path) as source:
        listing = list_images(source, [path.name] if alone else source.files())
        if all(image.path is None for image in listing.images):
            what = f"{key}: none of the {len(listing.images)} listed photographs was found"
            raise UserError(what, where=path, remedy=expected)
        yield source, listing


def parse_text(value: Any) -> str:
    """``value`` of a JSON file, where a text should be; anything else is a TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"a text is {value!r:.40}")
    return value


def parse_split(name: str, where: object) -> str:
    """The split of a spelling."""
    spelling = name.strip().lower()
    if spelling not in SPLIT_NAMES:
        close = difflib.get_close_matches(spelling, SPLIT_NAMES, n=1)
        remedy = f"did you mean '{close[0]}'?" if close else "a split is train, validation, test or none"
        raise UserError(f"unknown split '{name}'", where=where, remedy=remedy)
    return SPLIT_NAMES[spelling]


def put_in_split(split_of: dict[str, str], image: str, split: str, where: object) -> None:
    """Note the split of an image; an image in two splits would leak into training."""
    if split_of.setdefault(image, split) != split:
        raise UserError(
            f"image '{image}' is in the {split_of[image]} split and in the {split} split",
            where=where,
            remedy="an image may be in one split only",
        )


def collect(
    listing: Listing,
    source: ImageSource,
    directory: Path,
    *,
    dataset: str,
    language: str,
    max_pixels: int,
    on_bad_image: OnBadImage,
    limit: int | None,
    reporter: Reporter,
    reject_duplicates: bool = False,
) -> Path:
    """Check every image and caption of ``listing`` and write the manifest of those that hold; its path.

    Everything listed is afterwards in the manifest or, with its reason, in ``rejected.csv``, but for good images beyond
    ``limit`` and their captions, which are in neither. What is left out leaves no gap and moves nothing else: the order
    is the listing's, so the same files give the same rows whatever the number of threads, and whether they lie in a
    folder or in a zip.

    Args:
        language: of the captions that state none.
        max_pixels: see :func:`vitcapr.data.images.decode`.
        on_bad_image: ``reject`` leaves a missing or damaged image out, ``fail`` stops at the first of them.
        limit: number of images to keep, the first of each split in proportion to its size, of those that are there and
            have a caption; None keeps all.
        reject_duplicates: leave out an image whose file has the same bytes as an earlier one.
    """
    rejected = list(listing.rejected)
    captions = _captions_by_image(listing, rejected)

    def refuse(image: ListedImage, reason: str, policy: OnBadImage = on_bad_image) -> None:
        if policy == "fail":
            remedy = "repair it, or leave such images out with data.on_bad_image: reject"
            raise UserError(
                f"image '{image.image_id}': {reason}", where=source.root / (image.path or ""), remedy=remedy
            )
        rejected.append((image.image_id, reason))
        rejected.extend((caption.caption_id, "caption of an image left out") for caption in captions[image.image_id])

    candidates: list[tuple[ListedImage, str]] = []
    taken: set[str] = set()
    for image in listing.images:
        if image.path is None:
            refuse(image, "no such file")
        elif not is_relative(image.path) or not is_text(image.image_id):
            refuse(image, "a name that is not relative, or not UTF-8")
        elif image.path in taken:
            refuse(image, "another image has this file")
        elif not captions[image.image_id]:
            rejected.append((image.image_id, "image without a caption"))
        else:
            taken.add(image.path)
            candidates.append((image, image.path))
    candidates = _first_of_each_split(candidates, limit)

    kept: list[tuple[ListedImage, str, ImageFacts]] = []
    first_with: dict[str, str] = {}
    with closing(inspect_all(source, [path for _, path in candidates], max_pixels, reporter)) as inspected:
        for (image, path), facts in zip(candidates, inspected, strict=True):
            if isinstance(facts, BadImage):
                refuse(image, facts.reason)
            elif reject_duplicates and (first := first_with.setdefault(facts.sha256, path)) != path:
                refuse(image, f"the same image as {first}", "reject")
            else:
                kept.append((image, path, facts))

    manifest = write_manifest(
        directory,
        dataset=dataset,
        image_root=source.root,
        images=pd.DataFrame(
            [(i.image_id, path, i.split, facts.width, facts.height, facts.sha256) for i, path, facts in kept],
            columns=["image_id", "path", "split", "width", "height", "sha256"],
        ),
        captions=pd.DataFrame(
            [
                (caption.caption_id, image.image_id, caption.language or language, caption.text, image.split)
                for image, _, _ in kept
                for caption in captions[image.image_id]
            ],
            columns=["caption_id", "image_id", "language", "text", "split"],
        ),
        rejected=rejected,
    )
    splits = Counter(image.split for image, _, _ in kept)
    reporter.line(f"{len(kept)} images: " + ", ".join(f"{splits[s]} {s}" for s in SPLITS if splits[s]))
    _report(rejected, directory, reporter)
    return manifest


def listed_sizes(listing: Listing, limit: int | None) -> Counter[str]:
    """The number of images of each split that are there and have a caption, before any image is read."""
    captioned = {caption.image_id for caption in listing.captions if caption.text.strip()}
    images = [(image, image.path) for image in listing.images if image.path and image.image_id in captioned]
    return Counter(image.split for image, _ in _first_of_each_split(images, limit))


def one_line(text: str) -> str:
    """A text that can be written: a line break would be read as two captions by every scorer that works line by line;
    half a surrogate pair, which JSON can spell, is not text."""
    return " ".join(text.encode("utf-8", "ignore").decode("utf-8").split())


def _captions_by_image(listing: Listing, rejected: Rejected) -> dict[str, list[ListedCaption]]:
    """The usable captions of each listed image; the rest is added to ``rejected``."""
    known = {image.image_id for image in listing.images}
    seen: set[str] = set()
    usable: dict[str, list[ListedCaption]] = defaultdict(list)
    for caption in listing.captions:
        text = one_line(caption.text)
        if caption.caption_id in seen:
            rejected.append((caption.caption_id, "duplicate caption id"))
        elif caption.image_id not in known:
            rejected.append((caption.caption_id, "caption without an image"))
        elif not text:
            rejected.append((caption.caption_id, "empty caption"))
        else:
            usable[caption.image_id].append(replace(caption, text=text))
        seen.add(caption.caption_id)
    return usable


def _first_of_each_split(candidates: list[tuple[ListedImage, str]], limit: int | None) -> list[tuple[ListedImage, str]]:
    """The first images of each split, ``limit`` in all, by largest remainder; at least one of each split."""
    if limit is None or limit >= len(candidates):
        return candidates
    sizes = Counter(image.split for image, _ in candidates)
    shares = {split: max(1, limit * size // len(candidates)) for split, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda split: (-(limit * sizes[split] % len(candidates)), split))
    for split in by_remainder[: max(0, limit - sum(shares.values()))]:
        shares[split] += 1
    first = []
    for image, path in candidates:
        if shares[image.split]:
            shares[image.split] -= 1
            first.append((image, path))
    return first


def _report(rejected: Iterable[tuple[str, str]], directory: Path, reporter: Reporter) -> None:
    if reasons := Counter(reason for _, reason in rejected):
        summary = ", ".join(f"{number} x {reason}" for reason, number in reasons.most_common(5))
        more = f" and {len(reasons) - 5} more reasons" if len(reasons) > 5 else ""
        reporter.line(f"{reasons.total()} items left out, listed in {directory / 'rejected.csv'}: {summary}{more}")
