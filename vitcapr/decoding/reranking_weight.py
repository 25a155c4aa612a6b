"""The weight that a tuning found, and what it was found with: ``weight.json``."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Self

from vitcapr.errors import UserError
from vitcapr.files import read_json, write_json

FORMAT = "vitcapr-reranking-weight-1"


@dataclass(frozen=True)
class RerankingWeight:
    """A weight and the conditions under which it means something."""

    weight: float
    length_penalty: float
    select_by: str
    """The score that decided."""
    decoded: float
    """That score of the captions as they were decoded, before any reranking."""
    curve: list[dict[str, float]]
    """Of every weight tried: ``weight``, the score by its name, and ``changed``, the share of images whose caption is
    another."""
    retriever: str
    """sha256 of the weights of the retriever."""
    protocol: str

    def write(self, path: Path) -> None:
        write_json(path, {"format": FORMAT, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises:
        UserError: the file is missing or is not such a file.
        """
        content = read_json(path)
        names = {"format", *(field.name for field in fields(cls))}
        if not isinstance(content, dict) or content.get("format") != FORMAT or content.keys() != names:
            raise UserError(f"not a weight of format {FORMAT}", where=path, remedy="run tune_reranking again")
        return cls(**{name: value for name, value in content.items() if name != "format"})
