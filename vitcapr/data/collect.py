"""Checks the listed images and captions of a data set and writes the manifest. All readers share this module.

Images and captions are rows of data frames, whose texts lie in Arrow's buffers: millions of Python's objects would not
fit in memory.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from vitcapr.data.images import BadImage, ImageSource, decoders_of, inspect_all
from vitcapr.data.marks import marks_remark
from vitcapr.data.photographs import MAX_PIXELS
from vitcapr.data.splits import share_limit
from vitcapr.data.tars import OddRow, Rejected
from vitcapr.errors import UserError
from vitcapr.formats.containers import find_texts, repeated, text_columns
from vitcapr.formats.manifest import SPLITS, leads_outside, write_manifest
from vitcapr.progress import Reporter


class ListedImage(NamedTuple):
    """An image that the data set names; ``path`` is relative to the image root with ``/``, None if it is not there.

    Attributes:
        tried: the path that is not there, if it is not the id.
    """

    image_id: str
    path: str | None
    split: str
    tried: str | None = None


class ListedCaption(NamedTuple):
    """A caption that the data set names, in the language of the data set unless it has its own.

    Attributes:
        category: as a table of pairs gives it.
    """

    caption_id: str
    image_id: str
    text: str
    language: str | None = None
    category: str | None = None


@dataclass(frozen=True)
class Listing:
    """The listed images and captions of a data set, before any check.

    Attributes:
        images: the columns of :class:`ListedImage`, in the data set's own order, each id once.
        captions: those of :class:`ListedCaption`, with ``image_row`` in place of ``image_id``, -1 for an unknown image;
            in the data set's own order, each text in one line. Ids may repeat and texts be empty.
        rejected: (item, reason) of what the reader could not even list.
        note: a line for the user about the splits, or nothing.
    """

    images: pd.DataFrame
    captions: pd.DataFrame
    rejected: Sequence[tuple[str, str]] = field(default=())
    note: str = ""

    @classmethod
    def from_records(
        cls,
        images: Iterable[ListedImage],
        captions: Iterable[ListedCaption],
        rejected: Sequence[tuple[str, str]] = (),
    ) -> Self:
        frame = text_columns(images, ListedImage._fields)
        return cls(frame, caption_columns(captions, frame), rejected)


def caption_columns(captions: Iterable[ListedCaption], images: pd.DataFrame) -> pd.DataFrame:
    """``captions`` of a :class:`Listing` of ``images``."""
    lines = (caption._replace(text=one_line(caption.text)) for caption in captions)
    frame = text_columns(lines, ListedCaption._fields)
    return frame.assign(image_row=find_texts(frame.pop("image_id"), images["image_id"]))


@dataclass(frozen=True)
class Checks:
    """What becomes of images that are missing, damaged or too large.

    Attributes:
        max_pixels: see :func:`vitcapr.data.images.decode`.
        max_rejected: the share that may be left out of the captioned images, and of the rows of captions, because they
            cannot be read.
    """

    max_pixels: int = MAX_PIXELS
    max_rejected: float = 0.1


@dataclass(frozen=True)
class Checked:
    """The images and captions that can be used, in the order of the listing.

    Attributes:
        images: the columns of ``images.parquet``.
        captions: those of :class:`Listing`, by ``image_row``, the row in ``images``; every image has one.
        rejected: (item, reason) of everything else.
        decoders: see :func:`vitcapr.data.images.decoders_of`.
    """

    images: pd.DataFrame
    captions: pd.DataFrame
    rejected: Rejected
    decoders: dict[str, str]


def tried_paths(images: pd.DataFrame, rows: np.ndarray) -> "pd.Series[str]":
    """The paths of these images that were looked for."""
    texts = images.reindex(columns=["path", "tried", "image_id"]).iloc[rows].astype("str")
    return texts["path"].fillna(texts["tried"]).fillna(texts["image_id"])


def check(
    listing: Listing,
    source: ImageSource,
    checks: Checks,
    reporter: Reporter,
    *,
    join_copies: bool = False,
    limit: int | None = None,
) -> Checked:
    """Check every image and caption of ``listing``.

    Everything listed is afterwards among the images and captions or, with its reason, in ``rejected``, but for good
    images beyond ``limit`` and their captions, which are in neither. What is left out moves nothing else: the order is
    the listing's, so the same files give the same rows whatever the number of threads, and whether they lie in a folder
    or in a zip.

    Args:
        join_copies: an image whose file has the same bytes as an earlier one is left out and gives its captions to the
            earlier one, which is in the test split if one of them is.
        limit: number of images to keep, the first of each split in proportion to its size, of those that are there and
            have a caption; None keeps all.

    Raises:
        UserError: more than ``max_rejected`` of the captioned images are left out, or of the rows of captions.
    """
    rejected = list(listing.rejected)
    images, captions = listing.images, _usable_captions(listing, rejected)
    if remark := marks_remark(captions["text"]):
        reporter.line(remark)
    path, split = images["path"], pd.Categorical(images["split"], SPLITS)
    candidates, reason = _choose_images(listing, captions, checks, source.root, limit)
    size = np.zeros((len(images), 2), np.int32)
    digest = np.zeros((len(images), 32), np.uint8)
    heif = False
    with closing(inspect_all(source, path.iloc[candidates].array, checks.max_pixels, reporter)) as inspected:
        for row, facts in zip(candidates, inspected, strict=True):
            if isinstance(facts, BadImage):
                reason[row] = facts.reason
            else:
                size[row] = facts.width, facts.height
                digest[row] = np.frombuffer(facts.digest, np.uint8)
                heif |= facts.heif
    _check_loss(images, reason, candidates, checks, source.root)
    good = candidates[reason[candidates] == ""]
    number = pd.DataFrame(digest[good].view(np.uint64)).groupby([0, 1, 2, 3], sort=False).ngroup().to_numpy(np.int64)
    first = good[np.unique(number, return_index=True)[1][number]]
    duplicates, first = good[first != good], first[first != good]
    if len(apart := np.flatnonzero(split[duplicates] != split[first])):
        names = " and ".join(f"{path.iloc[rows[apart[0]]]} ({split[rows[apart[0]]]})" for rows in (first, duplicates))
        reporter.line(f"{len(apart)} images are in two splits under two names; the first are {names}")
    kept = np.zeros(len(images), bool)
    kept[good] = True
    image_row = captions["image_row"].to_numpy()
    if join_copies and len(duplicates):
        reporter.line(f"{len(duplicates)} files hold the picture of another file; their captions are given to that")
        rejected += zip(images["image_id"].iloc[duplicates], "the same image as " + path.iloc[first], strict=True)
        kept[duplicates] = False
        split[first[split[duplicates] == "test"]] = "test"
        target = np.arange(len(images))
        target[duplicates] = first
        moved = target[image_row] != image_row
        image_row = target[image_row]
        again = _repeated_captions(captions["text"], image_row, moved, first)
        rejected += [(each, "the same caption of the same image") for each in captions["caption_id"].iloc[again]]
        image_row[again] = duplicates[0]  # An image that is not kept.
    _reject(images["image_id"], reason, rejected)
    rejected += [(each, "caption of an image left out") for each in captions["caption_id"][(reason != "")[image_row]]]
    order = np.argsort(image_row, kind="stable")
    order = order[kept[image_row[order]]]
    rows = np.flatnonzero(kept)
    return Checked(
        take_rows(images.drop(columns="tried", errors="ignore"), rows).assign(
            split=split[rows],
            width=size[rows, 0],
            height=size[rows, 1],
            sha256=text_columns(((each.tobytes().hex(),) for each in digest[rows]), ["sha256"])["sha256"],
        ),
        take_rows(captions, order).assign(image_row=np.searchsorted(rows, image_row[order])),
        rejected,
        decoders_of(heif),
    )


def _choose_images(
    listing: Listing, captions: pd.DataFrame, checks: Checks, root: Path, limit: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the images to read, and why each of the others is left out before that; else empty texts."""
    odd = [row for row in listing.rejected if isinstance(row[1], OddRow)]
    _raise_loss(odd, len(odd) + len(listing.captions), "rows of captions", checks, None)
    images = listing.images
    captioned = np.bincount(captions["image_row"], minlength=len(images)) > 0
    reason = _reasons_without_reading(images["path"], captioned)
    _check_loss(images, reason, np.flatnonzero(captioned), checks, root)
    return _first_of_each_split(images["split"], np.flatnonzero(reason == ""), limit), reason


def _reasons_without_reading(path: "pd.Series[str]", captioned: np.ndarray) -> np.ndarray:
    """Why each image is left out before it is read; empty texts for the others."""
    reason = np.full(len(path), "", object)
    reason[~captioned] = "image without a caption"
    reason[leads_outside(path.fillna("-"))] = "a name that is not relative, or not UTF-8"
    reason[path.isna()] = "no such file"
    rest = np.flatnonzero(reason == "")
    reason[rest[repeated(path.iloc[rest])]] = "another image has this file"
    return reason


def _check_loss(images: pd.DataFrame, reason: np.ndarray, captioned: np.ndarray, checks: Checks, root: Path) -> None:
    """Not too many of these rows may have a reason."""
    rows = captioned[reason[captioned] != ""]
    lost = list(zip(tried_paths(images, rows), reason[rows], strict=True))
    _raise_loss(lost, len(captioned), "captioned images", checks, root)


def _raise_loss(lost: Rejected, number: int, what: str, checks: Checks, where: Path | None) -> None:
    if len(lost) > checks.max_rejected * number:
        counts = Counter(reason for _, reason in lost).most_common(3)
        reasons = ", ".join(f"{count} x {reason}" for reason, count in counts)
        raise UserError(
            f"{len(lost)} of {number} {what} cannot be used, '{lost[0][0]}' first: {reasons}",
            where=where,
            remedy=f"repair them, or raise data.max_rejected, which is {checks.max_rejected:g}",
        )


def _first_of_each_split(split: "pd.Series[str]", rows: np.ndarray, limit: int | None) -> np.ndarray:
    if limit is None:
        return rows
    splits = split.iloc[rows]
    return rows[splits.groupby(splits).cumcount() < splits.map(share_limit(Counter(splits), limit))]


def _usable_captions(listing: Listing, rejected: Rejected) -> pd.DataFrame:
    """The captions with an image of the listing; the others are added to ``rejected``."""
    captions = listing.captions
    reason = np.full(len(captions), "", object)
    reason[captions["text"] == ""] = "empty caption"
    reason[captions["image_row"] < 0] = "caption without an image"
    reason[repeated(captions["caption_id"])] = "duplicate caption id"
    _reject(captions["caption_id"], reason, rejected)
    return take_rows(captions, np.flatnonzero(reason == ""))


def _reject(ids: "pd.Series[str]", reason: np.ndarray, rejected: Rejected) -> None:
    rows = np.flatnonzero(reason != "")
    rejected += zip(ids.iloc[rows], reason[rows], strict=True)


def _repeated_captions(
    texts: "pd.Series[str]", image_row: np.ndarray, moved: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """The rows of captions ``moved`` to an image among ``targets`` that has the same caption."""
    rows = np.flatnonzero(np.isin(image_row, targets))
    rows = rows[np.argsort(moved[rows], kind="stable")]
    same: np.ndarray = pd.DataFrame({"image": image_row[rows], "text": texts.iloc[rows].array}).duplicated().to_numpy()
    return np.asarray(rows[same & moved[rows]])


def take_rows(frame: pd.DataFrame, rows: np.ndarray) -> pd.DataFrame:
    """These rows, numbered anew. Large tables are seldom copied: most data sets lose nothing."""
    same = len(rows) == len(frame) and (np.diff(rows) == 1).all()
    return frame if same else frame.iloc[rows].reset_index(drop=True)


def collect(
    listing: Listing,
    source: ImageSource,
    directory: Path,
    *,
    dataset: str,
    checks: Checks,
    limit: int | None,
    reporter: Reporter,
    join_copies: bool = False,
) -> Path:
    """Write the manifest of the images and captions that hold, and ``rejected.csv``; the path of the manifest.

    Captions that state no language are in English.

    Args:
        checks, limit, join_copies: see :func:`check`.
    """
    if listing.note:
        reporter.line(listing.note)
    checked = check(listing, source, checks, reporter, join_copies=join_copies, limit=limit)
    images, captions = checked.images, checked.captions
    manifest = write_manifest(
        directory,
        dataset=dataset,
        image_root=source.root,
        images=images,
        captions=captions[["caption_id", "image_row", "text"]].assign(language=captions["language"].fillna("en")),
        rejected=checked.rejected,
        decoders=checked.decoders,
    )
    splits = images["split"].value_counts()
    reporter.line(f"{len(images)} images: " + ", ".join(f"{splits[s]} {s}" for s in SPLITS if splits[s]))
    report_rejected(checked.rejected, directory, reporter)
    return manifest


def listed_sizes(listing: Listing, root: Path, checks: Checks, limit: int | None) -> Counter[str]:
    """The number of images of each split that :func:`check` would read; its errors as far as no image is read."""
    rows, _ = _choose_images(listing, _usable_captions(listing, []), checks, root, limit)
    return Counter(listing.images["split"].iloc[rows])


def one_line(text: str) -> str:
    """A text that can be written: a line break would be read as two captions by every scorer that works line by line;
    half a surrogate pair, which JSON can spell, is not text."""
    return " ".join(text.encode("utf-8", "ignore").decode("utf-8").split())


def report_rejected(rejected: Sequence[tuple[str, str]], directory: Path, reporter: Reporter) -> None:
    if reasons := Counter(reason for _, reason in rejected):
        summary = ", ".join(f"{number} x {reason}" for reason, number in reasons.most_common(5))
        more = f" and {len(reasons) - 5} more reasons" if len(reasons) > 5 else ""
        reporter.line(f"{reasons.total()} items left out, listed in {directory / 'rejected.csv'}: {summary}{more}")
