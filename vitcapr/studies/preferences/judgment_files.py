"""What people said about captions of Flickr8k: ExpertAnnotations.txt and CrowdFlowerAnnotations.txt.

Source: Hodosh et al., Framing Image Description as a Ranking Task (2013).
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from vitcapr.errors import UserError
from vitcapr.files import read_text
from vitcapr.formats.records import reading


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
    """Lines ``image<tab>caption id<tab>rating<tab>rating<tab>rating``, three ratings from 1 to 4."""
    form = "image, caption id and three ratings from 1 to 4"
    return _judgments(path, form, lambda numbers: all(1 <= number <= 4 for number in numbers), 3)


def read_crowdflower(path: Path) -> list[Judgment]:
    """Lines ``image<tab>caption id<tab>share<tab>yes<tab>no``; the rating is the share of people that said yes."""
    form = "image, caption id, share from 0 to 1, number of yes and number of no"
    return _judgments(path, form, lambda numbers: 0 <= numbers[0] <= 1, 1)


def _judgments(path: Path, form: str, fits: Callable[[list[float]], bool], ratings: int) -> list[Judgment]:
    judgments = []
    with reading(path, "a file of judgments", "give the file"):
        for number, line in enumerate(read_text(path).splitlines(), start=1):
            if not line.strip():
                continue
            try:
                image, caption, *words = line.split("\t")
                numbers = [float(word) for word in words]
            except ValueError:
                numbers = []
            if len(numbers) != 3 or not fits(numbers):
                remedy = f"a line has {form}, by tabs"
                raise UserError("not a line of judgments", where=f"{path}:{number}", remedy=remedy)
            judgments.append(Judgment(image, caption, tuple(numbers[:ratings])))
    if not judgments:
        raise UserError("there is no judgment", where=path, remedy=f"a line has {form}, by tabs")
    return judgments
