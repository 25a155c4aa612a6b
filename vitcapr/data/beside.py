"""Captions beside the images: metadata files, WebDataset tars, text files with the names of the images, Parquet."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import NamedTuple

from vitcapr.data.archive import TAR, OddRow, Rejected
from vitcapr.data.collect import one_line
from vitcapr.data.images import SUFFIXES, BadImage, ImageSource
from vitcapr.data.parquet_pictures import SUFFIX as PARQUET
from vitcapr.data.rows import Columns, Row, captions_of, read_rows
from vitcapr.errors import UserError
from vitcapr.files import decode_text, parse_json

KEY = "data.table.images"
METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")


class CaptionTable(NamedTuple):
    """A table of captions, whose rows are read once.

    Attributes:
        name: its path, if it may tell a split or repeat the captions of another table; else None.
        folder: that the paths of its images are relative to, below the image root; it is empty or ends with ``/``.
    """

    name: str | None
    rows: Iterable[Row]
    folder: str = ""


def holds_rows(path: str) -> bool:
    return path.endswith((TAR, PARQUET)) or PurePosixPath(path).name in METADATA


def find_tables(
    source: ImageSource, files: Sequence[str], columns: Columns, rejected: Rejected, used: set[str], notes: list[str]
) -> list[CaptionTable]:
    """Return the tables in the folder of the images, all of one kind.

    Args:
        used: receives the files that they consist of.
        notes: receives lines for the user, when the rows are read.
    """
    packed = source.root.is_file()
    if metadata := [path for path in files if PurePosixPath(path).name in METADATA]:
        used.update(metadata)
        return [
            CaptionTable(path, _read_metadata(source, path, columns, rejected), path[: path.rfind("/") + 1])
            for path in metadata
        ]
    if shards := [path for path in files if path.endswith(TAR) and not packed]:
        used.update(shards)
        members = ([f"{tar}/{path}" for path in source.tars.members(tar, rejected)] for tar in shards)
        samples = (sample for paths in members for sample in _samples(paths, str.partition).items())
        return [CaptionTable(None, _read_samples(samples, source, columns, rejected, notes))]
    texts = {"txt", "json", *(name for names in columns.names.values() for name in names)}
    if beside := {
        key: fields for key, fields in _samples(files, str.rpartition).items() if _is_captioned(fields, texts)
    }:
        used.update(path for fields in beside.values() for path in fields.values())
        return [CaptionTable(None, _read_samples(beside.items(), source, columns, rejected, notes))]
    if parquet := [path for path in files if path.endswith(PARQUET) and not packed]:
        used.update(parquet)
        return [
            CaptionTable(None, read_rows(source.root / path, columns, rejected, key=KEY, name=path)) for path in parquet
        ]
    other = next((path for path in files if not path.lower().endswith(SUFFIXES)), None)
    unpack = "; unpack tars and Parquet files" if packed else ""
    raise UserError(
        f"{KEY}: no captions beside the images" + (f", but '{other}'" if other else ""),
        where=source.root,
        remedy=f"set data.table.captions, or add {METADATA[0]}, {METADATA[1]} or a .txt file for each image{unpack}",
    )


def _read_metadata(source: ImageSource, path: str, columns: Columns, rejected: Rejected) -> Iterator[Row]:
    """Yield the rows of a table in the folder; of one in a zip, it is unpacked for the time."""
    if source.root.is_dir():
        yield from read_rows(source.root / path, columns, rejected, key=KEY, name=path)
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / PurePosixPath(path).name
        try:
            file.write_bytes(source.read(path))
            yield from read_rows(file, columns, rejected, key=KEY, name=path)
        except BadImage as bad:
            raise UserError(f"{KEY}: {bad}", where=source.root / path, remedy="write the zip again") from bad
        except UserError as error:
            raise UserError(error.what, where=source.root / path, remedy=error.remedy) from error


_Fields = dict[str, str]
"""The paths of the files of a sample, by their fields: the ends of their names."""


def _samples(paths: Iterable[str], cut: Callable[[str, str], tuple[str, str, str]]) -> dict[str, _Fields]:
    """Group files into samples by their names up to the dot at which ``cut`` cuts: the first dot in WebDataset."""
    samples: dict[str, _Fields] = {}
    for path in paths:
        folder, slash, name = path.rpartition("/")
        stem, _, field = cut(name, ".")
        fields = samples.setdefault(f"{folder}{slash}{stem}", {})
        fields[field if field.lower() in fields else field.lower()] = path
    return samples


def _is_picture(field: str) -> bool:
    return f".{field}".lower().endswith(SUFFIXES)


def _is_captioned(fields: _Fields, texts: set[str]) -> bool:
    return not texts.isdisjoint(fields) and any(map(_is_picture, fields))


def _read_samples(
    samples: Iterable[tuple[str, _Fields]], source: ImageSource, columns: Columns, rejected: Rejected, notes: list[str]
) -> Iterator[Row]:
    """Yield a row for every sample: an image, and cells from ``.json`` or from files named like columns.

    Without the name of a column, the image is the picture whose field is an ending alone, or the only picture; the
    caption is in ``.txt``, or else under a usual name. Each line of a text file is a caption. Pictures and texts that
    are not used are rejected.

    Raises:
        UserError: several pictures may be the image, or no sample has a column that is needed.
    """
    names = dict(columns.names)
    picture = names.pop("image")[0].lower() if len(names["image"]) == 1 else None
    usual = names.get("caption", ())
    if len(usual) > 1:
        names["caption"] = ("txt", *usual)
    asked = replace(columns, names={"image": (picture or "image",), **names})
    seen = {} if picture else {"image": None}
    number = several = 0
    for key, fields in samples:
        pictures = [field for field in fields if _is_picture(field)]
        if not pictures:
            rejected.append((key, "sample without an image"))
            continue
        image = _choose_image(key, pictures, picture)
        try:
            content = parse_json(decode_text(source.read(fields["json"]))) if "json" in fields else {}
            content = content if isinstance(content, dict) else {"caption": content}
            there = {*content, *fields} - {"json", *pictures}
            chosen = {column: name for column, each in names.items() for name in each[::-1] if name in there}
            texts = {name: decode_text(source.read(fields[name])) for name in chosen.values() if name in fields}
            cells = {column: texts[name] if name in texts else content[name] for column, name in chosen.items()}
            for column in [column for column in chosen if column.startswith("caption") and chosen[column] in texts]:
                cells[column] = _lines(cells[column])
                several += isinstance(cells[column], list)
            other = next((content[name] for name in usual if name in content), None) if "txt" in texts else None
            written = {one_line(each) for each in texts.get("txt", "").splitlines() if each.strip()}
            if other is not None and not written <= {one_line(each) for each in captions_of(other, key, [])}:
                rejected.append((fields["json"], "not used: its caption is not that of the .txt file"))
        except (ValueError, TypeError, RecursionError, BadImage) as error:
            rejected.append((key, OddRow(f"captions cannot be read: {error}")))
            continue
        seen |= dict.fromkeys((*fields, *content))
        unused = [
            field
            for field in fields
            if field not in (image, "json", *texts) and (_is_picture(field) or field.endswith(("txt", "json")))
        ]
        rejected += [(fields[field], f"not used: the image of this sample is '{image}'") for field in unused]
        if image is None:
            rejected.append((key, f"sample without the picture '{picture}'"))
            continue
        number += 1
        yield Row(number, key, {**cells, "image": fields[image]})
    if several:
        notes.append(f"{several} text files have several lines: each line is a caption")
    if number or picture:
        asked.find(list(seen), source.root)


def _lines(text: str) -> str | list[str]:
    """Return the lines of a text file if there are several, and it holds no list."""
    lines = [line for line in text.splitlines() if line.strip()]
    return text if len(lines) < 2 or text.lstrip().startswith(("[", "{")) else lines


def _choose_image(key: str, pictures: Sequence[str], name: str | None) -> str | None:
    """Return the field of the image among those of pictures."""
    if name:
        return name if name in pictures else None
    candidates = [field for field in pictures if "." not in field] or pictures
    if len(candidates) > 1:
        some = ", ".join(pictures[:24]) + (", ..." if len(pictures) > 24 else "")
        raise UserError(
            f"{KEY}: the sample '{key}' has {len(pictures)} pictures, {some}",
            remedy=f"name one with data.table.columns.image, such as {pictures[0]}, or give each a sample of its own",
        )
    return candidates[0]
