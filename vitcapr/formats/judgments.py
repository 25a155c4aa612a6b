"""Human judgments of captions in the two formats of Flickr8k: the experts' file and CrowdFlower's."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from vitcapr.errors import UserError
from vitcapr.files import read_file


class Judgment(NamedTuple):
    """What people said about a candidate caption of an image; the caption may be another image's.

    Attributes:
        image_id: the image that was shown.
        caption_id: the candidate.
        ratings: higher is better.
    """

    image_id: str
    caption_id: str
    ratings: tuple[float, ...]


def read_expert(path: Path) -> list[Judgment]:
    """Lines ``image<tab>caption id<tab>rating<tab>rating<tab>rating``, three ratings from 1 to 4.

    Source: Hodosh et al., Framing Image Description as a Ranking Task (2013); ExpertAnnotations.txt.

    Raises:
        UserError: the file is missing or a line is another.
    """
    form = "image, caption id and three ratings from 1 to 4"
    return [
        Judgment(*line[:2], tuple(line[2])) for line in _lines(path, form, lambda r: len(r) == 3 and _within(r, 1, 4))
    ]


def read_crowdflower(path: Path) -> list[Judgment]:
    """Lines ``image<tab>caption id<tab>share<tab>yes<tab>no``; the rating is the share of people that said yes.

    Source: Hodosh et al. (2013); CrowdFlowerAnnotations.txt.

    Raises:
        UserError: the file is missing or a line is another.
    """
    form = "image, caption id, share from 0 to 1, number of yes and number of no"
    found = _lines(path, form, lambda r: len(r) == 3 and _within(r[:1], 0, 1))
    return [Judgment(image, caption, (numbers[0],)) for image, caption, numbers in found]


def _within(numbers: list[float], low: float, high: float) -> bool:
    return all(low <= number <= high for number in numbers)


def _lines(path: Path, form: str, fits: Callable[[list[float]], bool]) -> list[tuple[str, str, list[float]]]:
    try:
        text = read_file(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the judgments cannot be read: {error}", where=path, remedy="give the file") from error
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        image, *rest = line.split("\t")
        try:
            numbers = [float(word) for word in rest[1:]]
        except ValueError:
            numbers = []
        if not fits(numbers):
            raise UserError("not a line of judgments", where=f"{path}:{number}", remedy=f"a line has {form}, by tabs")
        found.append((image, rest[0], numbers))
    if not found:
        raise UserError("there is no judgment", where=path, remedy=f"a line has {form}, by tabs")
    return found
