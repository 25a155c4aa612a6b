"""``part.json``: the chunks that one extraction task has finished."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, TypeAdapter

from vitcapr.artefacts.records import read_record
from vitcapr.files import write_json

FORMAT = "vitcapr-features-part-1"


@dataclass(frozen=True)
class FeaturePart:
    """What one task did.

    Attributes:
        fingerprint: of the store.
        chunks: the first chunk, and the one after the last.
        checksums: by array, the sha256 of each of these chunks.
    """

    fingerprint: str
    chunks: tuple[int, int]
    checksums: dict[str, list[str]]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises:
        UserError: the file is missing or is no such part.
        """
        content = read_record(path, _CONTENT, f"a part of format {FORMAT}", "run the stage extract")
        return cls(content.fingerprint, content.chunks, content.checksums)

    def write(self, path: Path) -> None:
        write_json(path, {"format": FORMAT, **asdict(self)})


class _Content(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    format: Literal["vitcapr-features-part-1"]
    fingerprint: str
    chunks: tuple[int, int]
    checksums: dict[str, list[str]]


_CONTENT = TypeAdapter(_Content)
