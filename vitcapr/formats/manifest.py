"""The common format of all data sets: images, captions, rejected items, and a manifest with their digests.

The row number in ``images.parquet`` is the identity of an image in everything downstream, so the files are checked when
written, written in a fixed order with fixed bytes, and checked again when read.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from json.encoder import encode_basestring
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from vitcapr.errors import UserError
from vitcapr.files import sha256_file, write_json, write_text
from vitcapr.formats.containers import (
    TableFile,
    check_columns,
    find_texts,
    frame_to_csv,
    repeated,
    slices,
    write_frame,
)
from vitcapr.formats.image_root import inside, read_image_root, write_location
from vitcapr.formats.records import read_format, reading

FORMAT = "vitcapr-manifest-1"
OBJECTS_FILE = "objects.parquet"
_REMEDY = "run the data stage"
_FORMULA = r"^[=+\-@\t\r]"
"""Begins a cell that a spreadsheet would compute."""
_ODD = r"^$|^/|\\|\x00|(?:^|/)\.\.(?:/|$)"
SPLITS = ("train", "validation", "test", "none")


_TEXT, _NUMBER = pa.string(), pa.int32()
IMAGES = pa.schema(
    {"image_id": _TEXT, "path": _TEXT, "split": _TEXT, "width": _NUMBER, "height": _NUMBER, "sha256": _TEXT}
)
CAPTIONS = pa.schema(
    {**dict.fromkeys(("caption_id", "image_id", "language", "text", "split"), _TEXT), "image_row": _NUMBER}
)
OBJECTS = pa.schema(
    {"image_id": _TEXT, "object_id": _NUMBER, "words": pa.list_(_TEXT), "mask": _TEXT, "label": _NUMBER}
    | dict.fromkeys(("kind", "color", "texture"), _TEXT)
)
SCHEMAS = {"images.parquet": IMAGES, "captions.parquet": CAPTIONS, OBJECTS_FILE: OBJECTS}


@dataclass(frozen=True)
class Manifest:
    """A data set, whose columns docs/artefacts.md lists; a table is verified when it is first read.

    Attributes:
        image_root: the folder or zip that ``images.path`` is relative to, absolute.
        image_table, caption_table: for all sizes; ``images`` and ``captions`` read a table whole.
        image_contents, caption_contents: sha256 of the id and the content of every row.
    """

    dataset: str
    image_root: Path
    image_table: TableFile
    caption_table: TableFile
    image_contents: str
    caption_contents: str
    _object_table: TableFile | None = None

    @cached_property
    def images(self) -> pd.DataFrame:
        """A row an image; the index is the row number, 0 to N-1."""
        return self.image_table.read()

    @cached_property
    def captions(self) -> pd.DataFrame:
        """A row a caption, grouped by image in image order; the index is the row number."""
        return self.caption_table.read()

    @cached_property
    def objects(self) -> pd.DataFrame | None:
        """A row an object where masks exist, else None."""
        if self._object_table is None:
            return None
        table = self._object_table.read()
        return table.assign(words=table["words"].map(list))

    def rows(self, split: str) -> np.ndarray:
        """Return the image rows of ``split``, increasing: (n,) int64."""
        check_split(split)
        parts = [part.index[part["split"] == split] for part in self.image_table.batches("split")]
        return np.concatenate(parts).astype(np.int64)

    def rows_of(self, image_ids: Sequence[str]) -> np.ndarray:
        """Return the row of each image id: (n,) int64."""
        rows = find_texts(pd.Series(image_ids, dtype="str"), self.image_table.column("image_id"))
        if (rows < 0).any():
            unknown = image_ids[int(np.flatnonzero(rows < 0)[0])]
            raise UserError(f"image '{unknown}' is not in the data set {self.dataset}")
        return rows

    def captions_of(self, split: str | None = None, language: str | None = None) -> pd.DataFrame:
        """Return the captions of a split and a language (None: all), in order, with their ``caption_row``."""
        parts = [part.assign(caption_row=part.index) for part in self.caption_parts(split, language)]
        return pd.concat(parts, ignore_index=True).astype({"image_row": np.int64})

    def caption_parts(self, split: str | None = None, language: str | None = None) -> Iterator[pd.DataFrame]:
        """Yield the captions of a split and a language a row group at a time; the index is the row number."""
        if split is not None:
            check_split(split)
        for part in self.caption_table.batches():
            here = part if split is None else part[part["split"] == split]
            yield here if language is None else here[here["language"] == language]


def write_manifest(
    directory: Path,
    *,
    dataset: str,
    image_root: Path,
    images: pd.DataFrame,
    captions: pd.DataFrame,
    rejected: Iterable[tuple[str, str]],
    objects: pd.DataFrame | None = None,
    decoders: Mapping[str, str] | None = None,
) -> Path:
    """Write a data set's files to ``directory``.

    ``manifest.json`` is written last: if it exists, the other files are complete.

    Args:
        image_root: the folder or zip that the paths are relative to; in the manifest if it lies in ``directory``, else
            in a file of its own (:mod:`vitcapr.formats.image_root`).
        images: rows in the data set's own order, which becomes the identity of each image.
        captions: rows grouped by image, in the order of ``images``: ``image_row`` stands for the id and the split.
        rejected: (item, reason) of everything that was left out; written sorted.
        objects: a row an object, where masks exist.
        decoders: the versions of the optional libraries that read an image.

    Raises:
        UserError: nothing is left to write.
        ValueError: the tables break the contract: a mistake of the reader that made them.
    """
    removed = sorted(rejected)
    _check_not_empty(images, captions, removed, directory)
    check_columns(images, IMAGES)
    _check_images(images)
    check_columns(captions.assign(image_id="", split=""), CAPTIONS)
    _check_captions(captions, len(images))
    tables = {"images.parquet": slices(images), "captions.parquet": _with_images(captions, images)}
    if objects is not None:
        tables[OBJECTS_FILE] = slices(objects)
        check_columns(objects, OBJECTS)
        _check_objects(images, objects)

    directory.mkdir(parents=True, exist_ok=True)
    manifest, place = directory / "manifest.json", inside(directory, image_root)
    if place is None:
        write_location(directory, image_root)
    for stale in ("manifest.json", OBJECTS_FILE):
        (directory / stale).unlink(missing_ok=True)
    for name, parts in tables.items():
        write_frame(directory / name, parts, SCHEMAS[name])
    left_out = pd.DataFrame(removed, columns=["item", "reason"], dtype=object)
    left_out = left_out.replace(_FORMULA, r"'\g<0>", regex=True)
    write_text(directory / "rejected.csv", frame_to_csv(left_out))

    counts = {
        "images": len(images),
        "captions": len(captions),
        "rejected": len(removed),
        "splits": images["split"].value_counts().reindex(SPLITS, fill_value=0).to_dict(),
        "languages": captions["language"].value_counts().to_dict(),
    }
    if objects is not None:
        counts["objects"] = len(objects)
    write_json(
        manifest,
        {
            "format": FORMAT,
            "dataset": dataset,
            **({} if place is None else {"image_root": place}),
            "files": {name: sha256_file(directory / name) for name in [*tables, "rejected.csv"]},
            "contents": {
                "images": _digest(images[["image_id", "sha256"]]),
                "captions": _digest(captions[["caption_id", "text"]]),
            },
            "counts": counts,
            **({"decoders": dict(decoders)} if decoders else {}),
        },
    )
    return manifest


def read_manifest(path: str | Path) -> Manifest:
    """Return the data set of an experiment: its images and captions as data frames.

    Examples:
        >>> data = vitcapr.read_manifest("results/demo/data")  # doctest: +SKIP
        >>> data.captions_of("test", "en")["text"]  # doctest: +SKIP

    Args:
        path: ``manifest.json``, or the folder that holds it.
    """
    path = Path(path)
    path = path / "manifest.json" if path.is_dir() else path
    content = read_format(path, FORMAT, "a data manifest", _REMEDY)
    directory = path.parent.resolve()
    with reading(path, "a data manifest", _REMEDY):
        tables = {
            name: TableFile(directory / name, schema, content["files"][name], "a data manifest", _REMEDY)
            for name, schema in SCHEMAS.items()
            if name != OBJECTS_FILE or name in content["files"]
        }
        return Manifest(
            dataset=content["dataset"],
            image_root=read_image_root(directory, content),
            image_table=tables["images.parquet"],
            caption_table=tables["captions.parquet"],
            image_contents=content["contents"]["images"],
            caption_contents=content["contents"]["captions"],
            _object_table=tables.get(OBJECTS_FILE),
        )


def check_split(split: str) -> None:
    """Check the name of a split; a UserError lists the splits if none has this name."""
    if split not in SPLITS:
        raise UserError(f"there is no split '{split}'", remedy=f"the splits are {', '.join(SPLITS)}")


def _check_not_empty(
    images: pd.DataFrame, captions: pd.DataFrame, rejected: Sequence[tuple[str, str]], directory: Path
) -> None:
    if len(images) and len(captions):
        return
    first = f"; the first of {len(rejected)} left out is '{rejected[0][0]}': {rejected[0][1]}" if rejected else ""
    what = "no image is left" if not len(images) else "no caption is left"
    raise UserError(f"{what} in the data set", where=directory, remedy=f"check that images and captions match{first}")


def _check_images(images: pd.DataFrame) -> None:
    for column in ("image_id", "path"):
        _check_unique(images, column)
    for split in images["split"].unique():
        check_split(split)
    _check_relative(images["path"])
    if (images["width"] < 1).any() or (images["height"] < 1).any():
        raise ValueError("an image has no pixels")
    if odd := images["sha256"][~images["sha256"].str.fullmatch(r"[0-9a-f]{64}")].tolist():
        raise ValueError(f"'{odd[0]}' is not a sha256 digest")


def _check_unique(table: pd.DataFrame, column: str) -> None:
    if len(twice := table[column][repeated(table[column])]):
        raise ValueError(f"{column} '{twice.iloc[0]}' occurs twice")


def _check_captions(captions: pd.DataFrame, images: int) -> None:
    _check_unique(captions, "caption_id")
    if (np.diff(captions["image_row"], prepend=0, append=images - 1) < 0).any():
        raise ValueError("captions are not in the order of the images, or of an image that is not there")
    if any(part["text"].str.strip().eq("").any() for part in slices(captions)):
        raise ValueError("a caption is empty")


def _with_images(captions: pd.DataFrame, images: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """``captions`` with the id and the split of the image, in parts."""
    for part in slices(captions):
        owners = images[["image_id", "split"]].iloc[part["image_row"]]
        yield part.assign(image_id=owners["image_id"].array, split=owners["split"].array)


def _check_objects(images: pd.DataFrame, objects: pd.DataFrame) -> None:
    rows = find_texts(objects["image_id"], images["image_id"])
    if (rows < 0).any():
        raise ValueError(f"object '{objects['object_id'].iloc[int(np.argmin(rows))]}' has no image")
    if (np.diff(rows) < 0).any():
        raise ValueError("objects are not in the order of the images")
    if objects.duplicated(["image_id", "object_id"]).any():
        raise ValueError("an object occurs twice")
    _check_relative(objects["mask"].drop_duplicates())


def leads_outside(paths: "pd.Series[str]") -> "pd.Series[bool]":
    """Return whether each path is empty, leaves the image root on some system, or has a backslash.

    The escape of a name that is not UTF-8 has a backslash.
    """
    return paths.str.contains(_ODD)


def _check_relative(paths: "pd.Series[str]") -> None:
    if len(odd := paths[leads_outside(paths)]):
        raise ValueError(f"path '{odd.iloc[0]}' is not relative to the image root")


def _digest(table: pd.DataFrame) -> str:
    """sha256 of the rows of two columns of texts, as one list of lists in canonical JSON."""
    digest = hashlib.sha256(b"[")
    for number, part in enumerate(slices(table)):
        # Millions of lists would keep the garbage collector busy.
        columns = (map(encode_basestring, part[name].tolist()) for name in table)
        digest.update(("," * (number > 0) + ",".join(map("[{},{}]".format, *columns))).encode())
    digest.update(b"]")
    return digest.hexdigest()
