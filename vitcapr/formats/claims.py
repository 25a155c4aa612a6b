"""The claims of captions, each checked against what is known of the image: ``claims.json``, beside the captions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from vitcapr.files import write_json
from vitcapr.formats.records import read_record


class Claim(NamedTuple):
    """A claim of a caption, and what is true of the image; ``true`` is None where the image has nothing of the kind.

    ``words``: the places of its words among the words of the caption that spaces separate.
    """

    kind: str
    claimed: str
    true: str | None
    right: bool
    words: tuple[int, ...]


def write_claims(path: Path, claims: Mapping[str, Sequence[Claim]]) -> None:
    """Write the claims of the caption of each image, by image id."""
    write_json(path, claims)


def read_claims(path: Path) -> dict[str, list[Claim]]:
    return read_record(
        path, TypeAdapter(dict[str, list[Claim]]), "the claims of captions", "run the stage check_claims"
    )
