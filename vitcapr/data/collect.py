"""Checks the listed images and captions of a data set and writes the manifest. All readers share this module."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from vitcapr.data.images import BadImage, ImageFacts, ImageSource, decoders_of, inspect_all
from vitcapr.data.splits import share_limit
from vitcapr.data.tars import Rejected
from vitcapr.errors import UserError
from vitcapr.formats.manifest import SPLITS, is_relative, is_text, write_manifest
from vitcapr.progress import Reporter


@dataclass(frozen=True, slots=True)
class ListedImage:
    """An image that the data set names; ``path`` is relative to the image root with ``/``, None if it is not there."""

    image_id: str
    path: str | None
    split: str


@dataclass(frozen=True, slots=True)
class ListedCaption:
    """A caption that the data set names, in the language of the data set unless it has its own.

    Attributes:
        category: as a table of pairs gives it.
    """

    caption_id: str
    image_id: str
    text: str
    language: str | None = None
    category: str | None = None


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


@dataclass(frozen=True)
class Checks:
    """What becomes of images that are missing, damaged or too large.

    Attributes:
        max_pixels: see :func:`vitcapr.data.images.decode`.
        max_rejected: the share of the captioned images that may be left out.
    """

    max_pixels: int = 100_000_000
    max_rejected: float = 0.1


@dataclass(frozen=True)
class Checked:
    """The images and captions that can be used, in the order of the listing.

    Attributes:
        images: each with its path and facts.
        captions: by image id; every image has one.
        rejected: (item, reason) of everything else.
    """

    images: list[tuple[ListedImage, str, ImageFacts]]
    captions: dict[str, list[ListedCaption]]
    rejected: Rejected


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


def check(
    listing: Listing,
    source: ImageSource,
    checks: Checks,
    reporter: Reporter,
    *,
    twins: Literal["keep", "reject", "join"] = "keep",
    limit: int | None = None,
) -> Checked:
    """Check every image and caption of ``listing``.

    Everything listed is afterwards among the images and captions or, with its reason, in ``rejected``, but for good
    images beyond ``limit`` and their captions, which are in neither. What is left out moves nothing else: the order is
    the listing's, so the same files give the same rows whatever the number of threads, and whether they lie in a folder
    or in a zip.

    Args:
        twins: an image whose file has the same bytes as an earlier one is kept, is left out, or gives its captions to
            the earlier one. The latter is in the test split if one of them is.
        limit: number of images to keep, the first of each split in proportion to its size, of those that are there and
            have a caption; None keeps all.

    Raises:
        UserError: more than ``max_rejected`` of the captioned images are left out.
    """
    rejected = list(listing.rejected)
    captions = _captions_by_image(listing, rejected)
    bad: Rejected = []

    def refuse(image: ListedImage, reason: str) -> None:
        rejected.append((image.image_id, reason))
        rejected.extend((caption.caption_id, "caption of an image left out") for caption in captions[image.image_id])

    def refuse_bad(image: ListedImage, reason: str) -> None:
        if captions[image.image_id]:
            bad.append((image.image_id, reason))
        refuse(image, reason)

    candidates: list[tuple[ListedImage, str]] = []
    taken: set[str] = set()
    for image in listing.images:
        if image.path is None:
            refuse_bad(image, "no such file")
        elif not is_relative(image.path) or not is_text(image.image_id):
            refuse_bad(image, "a name that is not relative, or not UTF-8")
        elif image.path in taken:
            refuse_bad(image, "another image has this file")
        elif not captions[image.image_id]:
            rejected.append((image.image_id, "image without a caption"))
        else:
            taken.add(image.path)
            candidates.append((image, image.path))
    _check_loss(bad, len(bad) + len(candidates), checks, source)
    candidates = _first_of_each_split(candidates, limit)
    bad.clear()

    kept: dict[str, tuple[ListedImage, str, ImageFacts]] = {}
    first_with: dict[str, ListedImage] = {}
    apart, joined = [], 0
    with closing(inspect_all(source, [path for _, path in candidates], checks.max_pixels, reporter)) as inspected:
        for (image, path), facts in zip(candidates, inspected, strict=True):
            if isinstance(facts, BadImage):
                refuse_bad(image, facts.reason)
                continue
            first = first_with.setdefault(facts.sha256, image)
            if first is not image and first.split != image.split:
                apart.append(f"{first.path} ({first.split}) and {path} ({image.split})")
            if first is image or twins == "keep":
                kept[image.image_id] = (image, path, facts)
            elif twins == "reject":
                refuse(image, f"the same image as {first.path}")
            else:
                joined += 1
                captions[first.image_id] += captions.pop(image.image_id)
                if image.split == "test":
                    kept[first.image_id] = (replace(first, split="test"), *kept[first.image_id][1:])
    if joined:
        reporter.line(f"{joined} files hold the picture of another file; their captions are given to that")
    if apart:
        reporter.line(f"{len(apart)} images are in two splits under two names; the first are {apart[0]}")
    _check_loss(bad, len(candidates), checks, source)
    return Checked(list(kept.values()), captions, rejected)


def _check_loss(bad: Rejected, listed: int, checks: Checks, source: ImageSource) -> None:
    if len(bad) > checks.max_rejected * listed:
        counts = Counter(reason for _, reason in bad).most_common(3)
        reasons = ", ".join(f"{number} x {reason}" for reason, number in counts)
        raise UserError(
            f"{len(bad)} of {listed} captioned images cannot be used, '{bad[0][0]}' first: {reasons}",
            where=source.root,
            remedy=f"repair them, or raise data.max_rejected, which is {checks.max_rejected:g}",
        )


def collect(
    listing: Listing,
    source: ImageSource,
    directory: Path,
    *,
    dataset: str,
    language: str,
    checks: Checks,
    limit: int | None,
    reporter: Reporter,
    reject_duplicates: bool = False,
) -> Path:
    """Write the manifest of the images and captions that hold, and ``rejected.csv``; the path of the manifest.

    Args:
        language: of the captions that state none.
        checks, limit: see :func:`check`.
        reject_duplicates: leave out an image whose file has the same bytes as an earlier one.
    """
    checked = check(listing, source, checks, reporter, twins="reject" if reject_duplicates else "keep", limit=limit)
    kept, rejected = checked.images, checked.rejected
    manifest = write_manifest(
        directory,
        dataset=dataset,
        image_root=source.root,
        images=images_frame(kept),
        captions=pd.DataFrame(
            [
                (caption.caption_id, image.image_id, caption.language or language, caption.text, image.split)
                for image, _, _ in kept
                for caption in checked.captions[image.image_id]
            ],
            columns=["caption_id", "image_id", "language", "text", "split"],
        ),
        rejected=rejected,
        decoders=decoders_of(facts for _, _, facts in kept),
    )
    splits = Counter(image.split for image, _, _ in kept)
    reporter.line(f"{len(kept)} images: " + ", ".join(f"{splits[s]} {s}" for s in SPLITS if splits[s]))
    report_rejected(rejected, directory, reporter)
    return manifest


def images_frame(images: Iterable[tuple[ListedImage, str, ImageFacts]]) -> pd.DataFrame:
    """The rows of ``images.parquet``."""
    return pd.DataFrame(
        [(i.image_id, path, i.split, facts.width, facts.height, facts.sha256) for i, path, facts in images],
        columns=["image_id", "path", "split", "width", "height", "sha256"],
    )


def listed_sizes(listing: Listing, limit: int | None) -> Counter[str]:
    """The number of images of each split that are there and have a caption, before any image is read."""
    captioned = {caption.image_id for caption in listing.captions if caption.text.strip()}
    sizes = Counter(image.split for image in listing.images if image.path and image.image_id in captioned)
    return share_limit(sizes, limit)


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
            usable[caption.image_id].append(caption if text == caption.text else replace(caption, text=text))
        seen.add(caption.caption_id)
    return usable


def _first_of_each_split(candidates: list[tuple[ListedImage, str]], limit: int | None) -> list[tuple[ListedImage, str]]:
    shares = share_limit(Counter(image.split for image, _ in candidates), limit)
    first = []
    for image, path in candidates:
        if shares[image.split]:
            shares[image.split] -= 1
            first.append((image, path))
    return first


def report_rejected(rejected: Sequence[tuple[str, str]], directory: Path, reporter: Reporter) -> None:
    if reasons := Counter(reason for _, reason in rejected):
        summary = ", ".join(f"{number} x {reason}" for reason, number in reasons.most_common(5))
        more = f" and {len(reasons) - 5} more reasons" if len(reasons) > 5 else ""
        reporter.line(f"{reasons.total()} items left out, listed in {directory / 'rejected.csv'}: {summary}{more}")
