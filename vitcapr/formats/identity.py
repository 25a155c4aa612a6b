"""The image that a name of another program means."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from vitcapr.errors import UserError

_SUFFIX = re.compile(r"\.[A-Za-z]\w{1,4}$")
_COCO_NUMBER = re.compile(r"^(?:COCO_\w+_)?(?=\d{12}$)0*(?=\d)")


def match_images(names: Iterable[str], known: Sequence[str], where: object = None) -> dict[str, int]:
    """Name -> its place in ``known``, for every name that means an image there.

    An image is its path below the root. Equal paths are one image, and so are two paths of which one ends the other
    with a folder and a file. Otherwise the file name counts, at last without its suffix, where it is unique on both
    sides. ``COCO_val2014_000000000139.jpg`` is the image 139.

    >>> match_images(["val/1.jpg", "/data/train/1.jpg", "2"], ["train/1.jpg", "val/1.jpg", "val/2.png"])
    {'val/1.jpg': 1, '/data/train/1.jpg': 0, '2': 2}

    Args:
        where: the file of the names, for errors.

    Raises:
        UserError: a name may mean two images, or two names mean one image; the message has both.
    """
    names, place = list(dict.fromkeys(names)), {path: row for row, path in enumerate(known)}
    paths = {name: _parts(name) for name in names if name not in place}
    alike: dict[str, list[int]] = defaultdict(list)
    stems = {path[-1] for path in paths.values()}
    for row, path in enumerate(known if paths else ()):
        if (stem := _stem(path)) in stems:
            alike[stem].append(row)
    repeated = Counter(known) if len(place) < len(known) else Counter()
    matches: dict[str, int] = {}
    owner: dict[int, str] = {}
    remedy = "name every image once, by its path below the root"
    for name in names:
        fits = [place[name]] * max(1, repeated[name]) if name in place else _best(name, paths[name], known, alike)
        if len(fits) > 1:
            raise UserError(
                f"'{name}' may be the image '{known[fits[0]]}' or '{known[fits[1]]}'", where=where, remedy=remedy
            )
        for row in fits:
            if row in owner:
                raise UserError(
                    f"'{owner[row]}' and '{name}' are both the image '{known[row]}'", where=where, remedy=remedy
                )
            matches[name], owner[row] = row, name
    return matches


def _best(name: str, path: list[str], known: Sequence[str], alike: dict[str, list[int]]) -> list[int]:
    """Return the rows that fit a name, of those with its stem: by the path, or else by the file name."""
    fits = alike.get(path[-1], [])
    if len(fits) > 1:
        fits = [row for row in fits if _is_end(path, _parts(known[row]))] or fits
    return [row for row in fits if _file(known[row]) == _file(name)] or fits


def _is_end(one: list[str], other: list[str]) -> bool:
    """Return whether one of the paths ends with the other, which has a folder."""
    length = min(len(one), len(other))
    return one == other or (length > 1 and one[-length:] == other[-length:])


def _file(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _stem(path: str) -> str:
    return _COCO_NUMBER.sub("", _SUFFIX.sub("", _file(path)))


def _parts(path: str) -> list[str]:
    """Return the folders and the file without its suffix."""
    folders = path.replace("\\", "/").rpartition("/")[0].split("/")
    return [*(folder for folder in folders if folder not in ("", ".")), _stem(path)]
