"""``readers.json`` of a fine-tuned dual encoder: the tokenizer of each of its text towers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter
from tokenizers import Tokenizer

from vitcapr.files import write_json
from vitcapr.formats.records import read_record

READERS = "readers.json"


def write_tower_readers(path: Path, readers: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the description of each reader, :meth:`vitcapr.batches.tokenised.TowerReader.describe`."""
    write_json(path, readers)


def read_tower_readers(path: Path) -> dict[str, dict[str, Any]]:
    """The description of the reader of each tower: ``tokenizer``, ``languages``, ``pad``, ``max_length``, ``segments``.

    Raises:
        UserError: the file is missing, is not such a file, or a tokenizer in it is none.
    """
    content = read_record(path, _CONTENT, "a file of tokenizers", "train the fine-tuned dual encoder")
    return {name: reader.model_dump() for name, reader in content.items()}


def _is_tokenizer(text: str) -> str:
    try:
        Tokenizer.from_str(text)
    except Exception as error:  # The library raises nothing more specific.
        raise ValueError(str(error)) from error
    return text


class _Reader(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    tokenizer: Annotated[str, AfterValidator(_is_tokenizer)]
    languages: Annotated[list[str], Field(min_length=1)]
    pad: Annotated[int, Field(ge=0)]
    max_length: Annotated[int, Field(ge=1)]
    segments: bool


_CONTENT = TypeAdapter(Annotated[dict[str, _Reader], Field(min_length=1)])
