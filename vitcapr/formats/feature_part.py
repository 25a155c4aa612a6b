"""``part.json``: the chunks that one extraction task has finished."""

from dataclasses import dataclass
from typing import ClassVar

from vitcapr.formats.records import JsonRecord


@dataclass(frozen=True)
class FeaturePart(JsonRecord):
    """What one task did."""

    FORMAT: ClassVar[str] = "vitcapr-features-part-1"
    KIND: ClassVar[str] = "a part"
    REMEDY: ClassVar[str] = "run the stage extract"

    fingerprint: str
    """Of the store."""
    chunks: tuple[int, int]
    """The first chunk, and the one after the last."""
    checksums: dict[str, list[str]]
    """By array, the sha256 of each of these chunks."""
