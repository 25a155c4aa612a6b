"""The sealed ``manifest.json`` of a store, checked: it may come from a server or a person who is not trusted."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Required

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from vitcapr.errors import UserError
from vitcapr.files import read_json
from vitcapr.formats.records import JsonRecord

FORMAT = "vitcapr-features-1"
SCALE = "_scale"
"""Ends the name of the array that holds the scales of an int8 array."""
LAYERS = "layers"
"""The attribute with the numbers of the hidden layers that a store holds beside the last layer."""
IDENTITIES = ("image_id", "caption_id")
"""The array that says what a row is: a store has one of them."""

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 in hexadecimal digits."""
ArrayName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
"""It becomes a folder."""
StoreName = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Count = Annotated[int, Field(ge=1, lt=2**40)]


class SealedArray(TypedDict):
    shape: Annotated[list[Count], Field(min_length=1, max_length=8)]
    dtype: Literal["float16", "float32", "int8", "uint8"]
    checksums: list[Digest]


class SealedIds(TypedDict):
    """The ids of the rows, a table of bytes."""

    shape: tuple[Count, Count]
    checksum: Digest


@with_config(ConfigDict(extra="allow"))
class Sealed(TypedDict, total=False):
    """What the manifest says that decides which files are read and written."""

    fingerprint: Required[Digest]
    store: Required[str]
    chunk: Required[Count]
    arrays: Required[dict[ArrayName, SealedArray]]
    attributes: Required[dict[str, Any]]
    grid: tuple[int, int]
    partial: bool
    copied: dict[StoreName, list[tuple[int, int]]]
    image_id: SealedIds
    caption_id: SealedIds


_SEALED = TypeAdapter(Sealed)


def arrays_of_layer(layer: int) -> tuple[str, str]:
    """The arrays of hidden layer ``layer``, counted from 1: of CLS and of the patches."""
    return f"cls_{layer}", f"patches_{layer}"


def read_sealed(path: Path) -> dict[str, Any]:
    """The content of a sealed ``manifest.json``."""
    return check_sealed(read_json(path), path)


def check_sealed(content: Any, where: object) -> dict[str, Any]:
    """``content`` of a manifest, if it is a sealed one."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise UserError(
            "not a sealed feature manifest", where=where, remedy=f"expected format {FORMAT}, found {found or 'none'}"
        )
    problem = _problem(content)
    if problem is not None:
        remedy = "seal the store again, or pull it again"
        raise UserError(f"not a sealed feature manifest: {problem}", where=where, remedy=remedy)
    return content


def _problem(content: dict[str, Any]) -> str | None:
    """The first thing that is wrong in a manifest."""
    try:
        _SEALED.validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    identities = [name for name in IDENTITIES if name in content]
    if len(identities) != 1:
        return f"it has {len(identities)} of {' and '.join(IDENTITIES)}"
    rows = content[identities[0]]["shape"][0]
    for name, array in content["arrays"].items():
        if name in IDENTITIES or array["shape"][0] != rows:
            return f"arrays.{name} has not one row for each of the {rows} ids"
        if len(array["checksums"]) != -(-rows // content["chunk"]):
            return f"arrays.{name} has {len(array['checksums'])} checksums for {rows} rows"
        scale = content["arrays"].get(f"{name}{SCALE}", {"shape": None})["shape"]
        if array["dtype"] == "int8" and (len(array["shape"]) != 3 or scale != [rows, array["shape"][2]]):
            return f"arrays.{name} is int8 and has no scale for each channel of each row"
    return None


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
