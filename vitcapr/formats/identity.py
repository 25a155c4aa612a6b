"""The image that a name means: by its id, path, file name, stem or number of COCO. Every reader asks here."""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from vitcapr.errors import UserError

_SUFFIX = re.compile(r"\.[A-Za-z]\w{1,4}$")
_COCO_NUMBER = re.compile(r"^(?:COCO_\w+_)?(?=\d{12}$)0*(?=\d)")
_WHOLE, _FILE, _STEM, _NUMBER, _OTHER_FOLDER = 4, 3, 2, 1, 0
"""Ways in which two names may agree, the surest first. A bare word that is a whole name is no surer than a stem, for it
may be an id or a file without its suffix."""
_REMEDY = "name every image once, by its path below the root"


class _Reading(NamedTuple):
    """The images that may be meant by each name of one list, among the names of another, and how names agree."""

    fits: list[list[int]]
    strength: list[int]

    @property
    def complete(self) -> bool:
        """Return whether each name means one image, and no two the same."""
        return all(len(rows) == 1 for rows in self.fits) and len({rows[0] for rows in self.fits}) == len(self.fits)


def match_images(
    names: Sequence[Sequence[str]], known: Sequence[Sequence[str]], where: object = None
) -> list[int | None]:
    """Find the row among ``known`` of each image of ``names``, None for an image that is not there.

    Both are lists of names, such as the ids and the paths of the same images, and any of them may agree. Equal paths
    are one image, and so are two paths of which one ends the other with a folder and a file. Otherwise the file name
    counts, at last without its suffix, where it is unique on both sides. ``COCO_val2014_000000000139.jpg`` is the image
    139. A file name with its suffix is compared with the file name of an image that has one, and not with its id. Other
    names that are ids of some images and files of others are read all as ids or all as files, whichever alone fits
    every one of them.

    >>> match_images([["val/1.jpg", "/data/train/1.jpg", "2"]], [["train/1.jpg", "val/1.jpg", "val/2.png"]])
    [1, 0, 2]
    >>> match_images([["0", "1"]], [["0", "1"], ["1.jpg", "2.jpg"]])
    [0, 1]

    Args:
        where: the file of the names, for errors.

    Raises:
        UserError: a name may mean two images, or two names mean one image; the message has both.
    """
    files = [[any(map(_is_file, called)) for called in zip(*lists, strict=True)] for lists in (names, known)]
    readings: list[_Reading] = []
    for one, other in product(_different(names), _different(known)):
        readings.append(_read(one, other, *files))
        if all(strength == _WHOLE for strength in readings[-1].strength) and readings[-1].complete:
            return [rows[0] for rows in readings[-1].fits]
    chosen = [_surest(readings, place) for place in range(len(names[0]))]
    if any(len(rows) > 1 for rows, _ in chosen):
        whole = {tuple(rows[0] for rows in reading.fits): reading for reading in readings if reading.complete}
        if len(whole) == 1:
            (reading,) = whole.values()
            chosen = list(zip(reading.fits, reading.strength, strict=True))
    matches: list[int | None] = [None] * len(chosen)
    owner: dict[int, int] = {}
    for place in sorted(range(len(chosen)), key=lambda place: -chosen[place][1]):
        rows, strength = chosen[place]
        if len(rows) > 1:
            raise UserError(_ambiguous(names, known, place, rows), where=where, remedy=_REMEDY)
        for row in rows:
            if row not in owner:
                matches[place], owner[row] = row, place
            elif strength != _OTHER_FOLDER or chosen[owner[row]][1] == _OTHER_FOLDER:
                first, second = sorted((owner[row], place))
                what = f"'{names[0][first]}' and '{names[0][second]}' are both the image '{known[-1][row]}'"
                raise UserError(what, where=where, remedy=_REMEDY)
    return matches


def names_one_photograph(one: str, other: str) -> bool:
    """Return whether two file names have the same number in COCO's form, as in the files of 2014 and of 2017."""
    numbers = [_COCO_NUMBER.sub("", stem) for stem in map(_stem, (one, other)) if _COCO_NUMBER.match(stem)]
    return len(numbers) == 2 and numbers[0] == numbers[1]


def in_one_folder(one: str, other: str) -> bool:
    """Return whether the folders of one path end those of the other: ``dogs/1.jpg`` is no image of ``cats``."""
    folders = [path[:-1] for path in map(_parts, (one, other))]
    return all(first == second for first, second in zip(*map(reversed, folders), strict=False))


def _different(lists: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    return [one for place, one in enumerate(lists) if one not in lists[:place]]


def _surest(readings: Sequence[_Reading], place: int) -> tuple[list[int], int]:
    """Return the images that fit a name in the surest way of all readings."""
    strength = max(reading.strength[place] for reading in readings)
    rows = [row for reading in readings if reading.strength[place] == strength for row in reading.fits[place]]
    return list(dict.fromkeys(rows)), strength


def _ambiguous(names: Sequence[Sequence[str]], known: Sequence[Sequence[str]], place: int, rows: Sequence[int]) -> str:
    called = " and ".join(dict.fromkeys(f"'{one[place]}'" for one in names))
    images = [" called ".join(dict.fromkeys(f"'{one[row]}'" for one in known)) for row in rows[:2]]
    return f"{called} may be the image {images[0]} or {images[1]}"


def _read(
    names: Sequence[str], known: Sequence[str], name_has_file: Sequence[bool], has_file: Sequence[bool]
) -> _Reading:
    """Compare two lists of names, of images with or without a file name there or in another list."""
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, path in enumerate(known):
        rows_of[path].append(row)
    paths = {name: _parts(name) for name in dict.fromkeys(names) if name not in rows_of}
    alike: dict[str, list[int]] = defaultdict(list)
    numbers = {_number(path[-1]) for path in paths.values()}
    for row, path in enumerate(known if paths else ()):
        if (number := _number(_stem(path))) in numbers:
            alike[number].append(row)
    reading = _Reading([], [])
    for name, with_file in zip(names, name_has_file, strict=True):
        fits = rows_of[name] if name in rows_of else _best(name, paths[name], known, alike)
        if _is_file(name):
            fits = [row for row in fits if _is_file(known[row]) or not has_file[row]]
        elif with_file:
            fits = [row for row in fits if not _is_file(known[row])]
        reading.fits.append(fits)
        reading.strength.append(max((_strength(name, known[row]) for row in fits), default=_OTHER_FOLDER))
    return reading


def _strength(name: str, known: str) -> int:
    if name == known:
        return _WHOLE if _is_file(name) or _file(name) != name else _STEM
    if not in_one_folder(name, known):
        return _OTHER_FOLDER
    if _is_file(name) and _file(name) == _file(known):
        return _FILE
    return _STEM if _stem(name) == _stem(known) else _NUMBER


def _best(name: str, path: list[str], known: Sequence[str], alike: dict[str, list[int]]) -> list[int]:
    """Return the rows that fit a name, of those with its stem: by the path, or else by the file name."""
    fits = alike.get(_number(path[-1]), [])
    if len(fits) > 1:
        fits = [row for row in fits if _is_end(path, _parts(known[row]))] or fits
    return [row for row in fits if _file(known[row]) == _file(name)] or fits


def _is_end(one: list[str], other: list[str]) -> bool:
    """Return whether one of the paths ends with the other, which has a folder."""
    one, other = ([*path[:-1], _number(path[-1])] for path in (one, other))
    length = min(len(one), len(other))
    return one == other or (length > 1 and one[-length:] == other[-length:])


def _is_file(name: str) -> bool:
    return _SUFFIX.search(name) is not None


def _file(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _stem(path: str) -> str:
    return _SUFFIX.sub("", _file(path))


def _number(stem: str) -> str:
    return _COCO_NUMBER.sub("", stem)


def _parts(path: str) -> list[str]:
    """Return the folders and the file without its suffix."""
    folders = path.replace("\\", "/").rpartition("/")[0].split("/")
    return [*(folder for folder in folders if folder not in ("", ".")), _stem(path)]
