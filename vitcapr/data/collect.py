"""Checks the listed images and captions of a data set and writes the manifest. All readers share this module.

Images and captions are rows of data frames, whose texts lie in Arrow's buffers: millions of Python's objects would not
fit in memory.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from vitcapr.data.archive import OddRow, Rejected
from vitcapr.data.images import ImageSource, inspect_all
from vitcapr.data.photographs import MAX_PIXELS
from vitcapr.data.remarks import EMPTY_SPLIT, FILE, count_reasons, marks_remark
from vitcapr.data.splits import share_limit
from vitcapr.data.withdrawn import read_withdrawn, without_images
from vitcapr.errors import UserError
from vitcapr.formats.containers import find_texts, repeated, take_rows, text_columns
from vitcapr.formats.manifest import SPLITS, leads_outside, write_manifest
from vitcapr.progress import Reporter


class ListedImage(NamedTuple):
    """An image that the data set names.

    ``path`` is relative to the image root with ``/``, None if it is not there; ``tried`` is then the path that was
    looked up and not found, None if it equals the id.
    """

    image_id: str
    path: str | None
    split: str
    tried: str | None = None


class ListedCaption(NamedTuple):
    """A caption that the data set names.

    ``language`` is None for the language of the data set; ``category`` is copied from a table of pairs.
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
        notes: lines for the user, about the splits and the ids.
    """

    images: pd.DataFrame
    captions: pd.DataFrame
    rejected: Sequence[tuple[str, str]] = field(default=())
    notes: Sequence[str] = ()

    @classmethod
    def from_records(
        cls,
        images: Iterable[ListedImage],
        captions: Iterable[ListedCaption],
        rejected: Sequence[tuple[str, str]] = (),
    ) -> Self:
        """List records. If ids of captions repeat, all captions are numbered by their images instead."""
        frame = text_columns(images, ListedImage._fields)
        captions = list(captions)
        again = Counter(caption.caption_id for caption in captions)
        notes = []
        if twice := len(captions) - len(again):
            notes = [f"{twice} ids of captions repeat, so captions are numbered by their images"]
            numbers: Counter[str] = Counter()
            for place, caption in enumerate(captions):
                captions[place] = caption._replace(caption_id=f"{caption.image_id}#{numbers[caption.image_id]}")
                numbers[caption.image_id] += 1
        return cls(frame, caption_columns(captions, frame), rejected, notes)


def caption_columns(captions: Iterable[ListedCaption], images: pd.DataFrame) -> pd.DataFrame:
    """``captions`` of a :class:`Listing` of ``images``."""
    lines = (caption._replace(text=one_line(caption.text)) for caption in captions)
    frame = text_columns(lines, ListedCaption._fields)
    return frame.assign(image_row=find_texts(frame.pop("image_id"), images["image_id"]))


@dataclass(frozen=True)
class Checks:
    """Treatment of images that are missing, damaged or too large.

    Attributes:
        max_pixels: see :func:`vitcapr.data.images.decode`.
        max_rejected: the share that may be left out of the captioned images, and of the rows of captions, because they
            cannot be read or, for captions, have no image or the id of an earlier one.
        withdrawn: ``data.withdrawn``: images that are left out under every name and never mentioned.
    """

    max_pixels: int = MAX_PIXELS
    max_rejected: float = 0.1
    withdrawn: str | None = None


_LOST_CAPTIONS = ("caption without an image", "duplicate caption id")


@dataclass(frozen=True)
class Checked:
    """The images and captions that can be used, in the order of the listing.

    Attributes:
        images: the columns of ``images.parquet``.
        captions: those of :class:`Listing`, by ``image_row``, the row in ``images``; every image has one.
        rejected: (item, reason) of everything else.
        decoders: see :class:`vitcapr.data.images.Inspected`.
    """

    images: pd.DataFrame
    captions: pd.DataFrame
    rejected: Rejected
    decoders: dict[str, str]


def tried_paths(images: pd.DataFrame, rows: np.ndarray) -> "pd.Series[str]":
    """Return the paths of these images that were looked for."""
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
    if withdrawn := read_withdrawn(checks.withdrawn):
        reporter.line(f"{len(withdrawn)} withdrawn images are left out (data.withdrawn)")
        listing = without_images(listing, withdrawn)
    rejected = list(listing.rejected)
    images, path, split = listing.images, listing.images["path"], pd.Categorical(listing.images["split"], SPLITS)
    captions, candidates, reason = _choose(listing, checks, source.root, limit, rejected)
    if remark := marks_remark(captions["text"]):
        reporter.line(remark)
    inspected = inspect_all(source, path.iloc[candidates].array, checks.max_pixels, reporter)
    reason[candidates] = inspected.reason
    _check_loss(images, reason, candidates, checks, source.root)
    gone = set(withdrawn.values())
    copies = np.array([digest.tobytes().hex() in gone for digest in inspected.digest], bool)
    sound = np.flatnonzero((inspected.reason == "") & ~copies)
    good, size, digest = candidates[sound], inspected.size[sound], inspected.digest[sound]
    number = pd.DataFrame(digest.view(np.uint64)).groupby([0, 1, 2, 3], sort=False).ngroup().to_numpy(np.int64)
    first = good[np.unique(number, return_index=True)[1][number]]
    duplicates, first = good[first != good], first[first != good]
    if len(apart := np.flatnonzero(split[duplicates] != split[first])):
        names = " and ".join(f"{path.iloc[rows[apart[0]]]} ({split[rows[apart[0]]]})" for rows in (first, duplicates))
        reporter.line(f"{len(apart)} images are in two splits under two names; the first are {names}")
    image_row = captions["image_row"].to_numpy()
    if join_copies and len(duplicates):
        reporter.line(f"{len(duplicates)} files hold the picture of another file; their captions are given to that")
        rejected += zip(images["image_id"].iloc[duplicates], "copy of an image: " + path.iloc[first], strict=True)
        split[first[split[duplicates] == "test"]] = "test"
        single = ~np.isin(good, duplicates)
        good, size, digest = good[single], size[single], digest[single]
        image_row = _join(captions, image_row, duplicates, first, rejected)
    _reject(images["image_id"], reason, rejected)
    rejected += [(each, "caption of an image left out") for each in captions["caption_id"][(reason != "")[image_row]]]
    order = np.argsort(image_row, kind="stable")
    order = order[np.isin(image_row[order], good)]
    return Checked(
        take_rows(images.drop(columns="tried", errors="ignore"), good).assign(
            split=split[good],
            width=size[:, 0],
            height=size[:, 1],
            sha256=text_columns(((each.tobytes().hex(),) for each in digest), ["sha256"])["sha256"],
        ),
        take_rows(captions, order).assign(image_row=np.searchsorted(good, image_row[order])),
        rejected,
        inspected.decoders,
    )


def _choose(
    listing: Listing, checks: Checks, root: Path, limit: int | None, rejected: Rejected
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Select the captions with a listed image and the images to read.

    Returns these captions, the rows of these images, and the reason for each other image, else an empty text. The
    captions that are left out are added to ``rejected``.
    """
    captions, images, path = listing.captions, listing.images, listing.images["path"]
    reason = np.full(len(captions), "", object)
    reason[captions["text"] == ""] = "empty caption"
    reason[captions["image_row"] < 0], reason[repeated(captions["caption_id"])] = _LOST_CAPTIONS
    _reject(captions["caption_id"], reason, rejected)
    odd = [row for row in listing.rejected if isinstance(row[1], OddRow)]
    lost = [row for row in zip(captions["caption_id"], reason, strict=True) if row[1] in _LOST_CAPTIONS]
    _raise_loss([*odd, *lost], len(odd) + len(captions), "rows of captions", checks, None)
    captions = take_rows(captions, np.flatnonzero(reason == ""))
    captioned = np.bincount(captions["image_row"], minlength=len(images)) > 0
    reason = np.full(len(images), "", object)
    reason[~captioned] = "image without a caption"
    names = path.fillna("-")
    reason[leads_outside(names)] = "a name that is not below the folder"
    reason[names.str.contains("\\", regex=False)] = "a name with a backslash"
    reason[names.str.contains(r"\\udc[89a-f][0-9a-f]")] = "a name that is not UTF-8"
    reason[path.isna()] = "no such file"
    rows = np.flatnonzero(reason == "")
    reason[rows[repeated(path.iloc[rows])]] = "another image has this file"
    _check_loss(images, reason, np.flatnonzero(captioned), checks, root)
    rows = np.flatnonzero(reason == "")
    if limit is not None:
        splits = images["split"].iloc[rows]
        rows = rows[splits.groupby(splits).cumcount() < splits.map(share_limit(Counter(splits), limit))]
    return captions, rows, reason


def _check_loss(images: pd.DataFrame, reason: np.ndarray, captioned: np.ndarray, checks: Checks, root: Path) -> None:
    """Check that few enough of these rows have a reason."""
    rows = captioned[reason[captioned] != ""]
    lost = list(zip(tried_paths(images, rows), reason[rows], strict=True))
    _raise_loss(lost, len(captioned), "captioned images", checks, root)


def _raise_loss(lost: Rejected, number: int, what: str, checks: Checks, where: Path | None) -> None:
    if len(lost) > checks.max_rejected * number:
        reasons = count_reasons((reason for _, reason in lost), 3)
        what = f"{len(lost)} of {number} {what} cannot be used, '{lost[0][0]}' first: {reasons}"
        remedy = f"repair them, or raise data.max_rejected, which is {checks.max_rejected:g}"
        raise UserError(what, where=where, remedy=remedy)


def _join(
    captions: pd.DataFrame, image_row: np.ndarray, duplicates: np.ndarray, first: np.ndarray, rejected: Rejected
) -> np.ndarray:
    """``image_row`` with the captions of ``duplicates`` at the images ``first``, except those that repeat one there."""
    target = np.arange(image_row.max() + 1)  # An image that is read has a caption.
    target[duplicates] = first
    moved, image_row = target[image_row] != image_row, target[image_row]
    rows = np.flatnonzero(np.isin(image_row, first))
    rows = rows[np.argsort(moved[rows], kind="stable")]
    texts = pd.DataFrame({"image": image_row[rows], "text": captions["text"].iloc[rows].array})
    again = rows[texts.duplicated().to_numpy() & moved[rows]]
    rejected += [(each, "the same caption of the same image") for each in captions["caption_id"].iloc[again]]
    image_row[again] = duplicates[0]  # An image that is not kept.
    return image_row


def _reject(ids: "pd.Series[str]", reason: np.ndarray, rejected: Rejected) -> None:
    rows = np.flatnonzero(reason != "")
    rejected += zip(ids.iloc[rows], reason[rows], strict=True)


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
    needed_splits: Mapping[str, str] | None = None,
) -> Path:
    """Write the manifest of the images and captions that :func:`check` keeps, and ``rejected.csv``.

    Returns the path of the manifest. Captions without a language are English.

    Args:
        needed_splits: the splits that later stages read, and what needs them.

    Raises:
        UserError: too much is left out (:func:`check`), or a needed split has no image.
    """
    for note in listing.notes:
        reporter.line(note)
    checked = check(listing, source, checks, reporter, join_copies=join_copies, limit=limit)
    images, captions = checked.images, checked.captions
    splits = images["split"].value_counts()
    listed = ", ".join(f"{splits[split]:,} {split}" for split in SPLITS if splits[split])
    left_out = count_reasons(reason for _, reason in checked.rejected)
    for split, purpose in (needed_splits or {}).items():
        if len(images) and not splits[split]:
            raise UserError(
                f"no image is left in the split '{split}', which {purpose} needs",
                where=f"{listed}; left out: {left_out or 'nothing'}",
                remedy=EMPTY_SPLIT,
            )
    manifest = write_manifest(
        directory,
        dataset=dataset,
        image_root=source.root,
        images=images,
        captions=captions[["caption_id", "image_row", "text"]].assign(language=captions["language"].fillna("en")),
        rejected=checked.rejected,
        decoders=checked.decoders,
    )
    number = len(checked.rejected)
    without = f"; left out: {number:,} ({left_out}), listed in {directory / FILE}" if number else ""
    reporter.result(f"{len(images):,} images ({listed}){without}")
    return manifest


def listed_sizes(listing: Listing, root: Path, checks: Checks, limit: int | None) -> tuple[Counter[str], str]:
    """Return the number of images of each split that :func:`check` would read, and a line about what it leaves out.

    The line is empty if nothing is left out. It raises the errors that need no image.
    """
    listing = without_images(listing, read_withdrawn(checks.withdrawn))
    rejected = list(listing.rejected)
    _, rows, reason = _choose(listing, checks, root, limit, rejected)
    reasons = [*(each for _, each in rejected), *reason[reason != ""]]
    line = f"left out before any picture is opened: {len(reasons):,} ({count_reasons(reasons)})"
    allowed = f"at most {100 * checks.max_rejected:g} % may be missing or damaged (data.max_rejected)"
    return Counter(listing.images["split"].iloc[rows]), f"{line}; {allowed}" if reasons else ""


def one_line(text: str) -> str:
    """Return the text in one line and without half surrogate pairs.

    Scorers that work line by line would read a line break as two captions. JSON can spell half a surrogate pair, which
    is not text.
    """
    return " ".join(text.encode("utf-8", "ignore").decode("utf-8").split())
