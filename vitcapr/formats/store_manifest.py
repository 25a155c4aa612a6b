"""The sealed ``manifest.json`` of a store, checked: it may come from a server or a person who is not trusted."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Required

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, with_config
from typing_extensions import TypedDict

from vitcapr.files import read_json
from vitcapr.formats.records import JsonRecord, reading

FORMAT = "vitcapr-features-1"
SCALE = "_scale"
"""Ends the name of the array that holds the scales of an int8 array."""
IDENTITIES = ("image_id", "caption_id")
"""The array that says what a row is: a store has one of them."""

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 in hexadecimal digits."""
ArrayName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
"""It becomes a folder."""
StoreName = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Count = Annotated[int, Field(ge=1, lt=2**40)]
Pair = Annotated[list[Count], Field(min_length=2, max_length=2)]
_STRICT = ConfigDict(strict=True, extra="forbid")
_DIMENSIONS = {"cls": 2, "text": 2, "patches": 3, "pixels": 4}
"""Those of our arrays, the rows among them."""


@with_config(ConfigDict(strict=True, extra="allow"))
class Attributes(TypedDict, total=False):
    """Attributes of a store that every reader needs."""

    fingerprint: Required[Digest]
    grid: Pair
    backbone: str
    revision: str | None
    weights_sha256: str | None
    layers: list[Count]
    """The hidden layers that a store holds beside the last layer."""
    images_sha256: str
    captions_sha256: str


@with_config(_STRICT)
class SealedArray(TypedDict):
    shape: Annotated[list[Count], Field(min_length=1, max_length=8)]
    dtype: Literal["float16", "float32", "int8", "uint8"]
    checksums: list[Digest]


@with_config(_STRICT)
class SealedIds(TypedDict):
    """The ids of the rows, a table of bytes."""

    shape: Pair
    checksum: Digest


@with_config(_STRICT)
class Sealed(TypedDict, total=False):
    """The manifest."""

    format: Required[Annotated[str, StringConstraints(pattern=f"^{FORMAT}$")]]
    fingerprint: Required[Digest]
    store: Required[Annotated[str, StringConstraints(pattern=r"^[^/]")]]
    """The path of the group from the folder of the manifest; never an absolute one."""
    chunk: Required[Count]
    arrays: Required[Annotated[dict[ArrayName, SealedArray], Field(min_length=1)]]
    attributes: Required[Attributes]
    grid: Pair
    partial: bool
    copied: dict[StoreName, list[Annotated[list[int], Field(min_length=2, max_length=2)]]]
    image_id: SealedIds
    caption_id: SealedIds


_SEALED, _ATTRIBUTES = TypeAdapter(Sealed), TypeAdapter(Attributes)


def arrays_of_layer(layer: int) -> tuple[str, str]:
    """Return the arrays of hidden layer ``layer``, counted from 1: of CLS and of the patches."""
    return f"cls_{layer}", f"patches_{layer}"


def read_sealed(path: Path) -> dict[str, Any]:
    """Return the content of a sealed ``manifest.json``."""
    return check_sealed(read_json(path), path)


def check_sealed(content: Any, where: Path | str) -> dict[str, Any]:
    """``content`` of a manifest, if it is a sealed one that agrees with itself."""
    with reading(where, "a sealed feature manifest", "seal the store again, or pull it"):
        sealed: dict[str, Any] = dict(_SEALED.validate_python(content))
        # As the store will hold them: without NaN, and without half a surrogate pair, which UTF-8 cannot hold.
        json.dumps(sealed["attributes"], allow_nan=False, ensure_ascii=False).encode()
        identities = [name for name in IDENTITIES if name in sealed]
        if len(identities) != 1:
            raise ValueError(f"it has {len(identities)} of {' and '.join(IDENTITIES)}")
        for key in ("fingerprint", "grid"):
            if sealed["attributes"].get(key) != sealed.get(key):
                raise ValueError(f"its attributes have another {key}")
        for name in sealed["arrays"]:
            _check_array(name, sealed, rows=sealed[identities[0]]["shape"][0])
        return sealed


def store_group(path: Path, sealed: Mapping[str, Any]) -> Path:
    """Return the Zarr group of a sealed manifest: where it says, else in the folder of all stores under the same name.

    That folder is VITCAPR_STORES, or ``stores`` beside the experiment. What is found is compared with the manifest when
    it is opened.
    """
    group = (path.parent / str(sealed["store"])).resolve()
    shared = os.environ.get("VITCAPR_STORES")
    roots = [*([Path(shared).expanduser()] if shared else []), *(folder / "stores" for folder in path.parents[3:4])]
    moved = [root / group.parent.name / group.name for root in roots]
    return next((each.resolve() for each in moved if not group.is_dir() and each.is_dir()), group)


def check_attributes(attributes: Any) -> None:
    """Check the attributes of a store; a ValueError says what is wrong with them."""
    _ATTRIBUTES.validate_python(attributes)


def _check_array(name: str, sealed: Mapping[str, Any], rows: int) -> None:
    array = sealed["arrays"][name]
    shape, int8 = array["shape"], array["dtype"] == "int8"
    kind = name.removesuffix(SCALE).rstrip("0123456789").rstrip("_")
    if name in IDENTITIES or shape[0] != rows:
        raise ValueError(f"arrays.{name} has not one row for each of the {rows} ids")
    if len(array["checksums"]) != -(-rows // sealed["chunk"]):
        raise ValueError(f"arrays.{name} has {len(array['checksums'])} checksums for {rows} rows")
    if int8 and (len(shape) != 3 or sealed["arrays"].get(f"{name}{SCALE}", {}).get("shape") != [rows, shape[2]]):
        raise ValueError(f"arrays.{name} is int8 and has no scale for each channel of each row")
    if kind in _DIMENSIONS and len(shape) != _DIMENSIONS[kind] - name.endswith(SCALE):
        raise ValueError(f"arrays.{name} has {len(shape)} axes")
    if kind == "patches" and not name.endswith(SCALE) and math.prod(sealed.get("grid", shape[1:2])) != shape[1]:
        raise ValueError(f"arrays.{name} has {shape[1]} patches, and the grid is {sealed['grid']}")


@dataclass(frozen=True)
class FeaturePart(JsonRecord):
    """Work of one task."""

    FORMAT: ClassVar[str] = "vitcapr-features-part-1"
    KIND: ClassVar[str] = "a part"
    REMEDY: ClassVar[str] = "run the stage extract"

    fingerprint: str
    """Fingerprint of the store."""
    chunks: tuple[int, int]
    """The first chunk, and the one after the last."""
    checksums: dict[str, list[str]]
    """By array, the sha256 of each of these chunks."""
