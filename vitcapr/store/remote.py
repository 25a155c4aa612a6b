"""A sealed store in some place: what its manifest says, and that it is what was sealed."""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from vitcapr.errors import UserError
from vitcapr.files import sha256_bytes
from vitcapr.formats.store_manifest import IDENTITIES, check_sealed
from vitcapr.store.layout import ArrayLayout, chunk_path, decode_ids
from vitcapr.store.remote_folder import RemoteFolder

MANIFEST = "manifest.json"
SPLITS = "splits.json"
MOST_OF_A_LIST = 64 * 2**20
"""Bytes of a manifest or of the rows of splits: a million checksums."""
MOST_OF_METADATA = 2**20
MOST_OF_A_CHUNK = 2**31
"""Bytes of a chunk's file, and of the table of ids; each is held in memory."""
_SPLITS = TypeAdapter(dict[str, list[tuple[int, int]]])


@dataclass(frozen=True)
class Remote:
    """A sealed store in a place.

    Attributes:
        manifest: the sealed one, checked.
        group: the Zarr group's name in the place.
    """

    place: RemoteFolder
    manifest: Mapping[str, Any]
    group: str

    @property
    def fingerprint(self) -> str:
        return str(self.manifest["fingerprint"])

    @property
    def identity(self) -> str:
        return identity_of(self.manifest)

    def layouts(self, names: Collection[str]) -> dict[str, ArrayLayout]:
        """Raises:
        UserError: an array is not in the store, or its metadata are not those that were sealed.
        """
        found = {}
        for name in names:
            if name not in self.manifest["arrays"]:
                have = ", ".join(self.manifest["arrays"])
                raise UserError(f"the store has no array '{name}'", where=self.place.url, remedy=f"it has {have}")
            sealed = self.manifest["arrays"][name]
            try:
                layout = ArrayLayout.from_metadata(
                    json.loads(self._read(f"{self.group}/{name}/zarr.json", MOST_OF_METADATA))
                )
            except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
                raise UserError(f"the metadata of '{name}' are not those of an array", where=self.place.url) from error
            if (list(layout.shape), layout.chunk, layout.dtype) != (
                sealed["shape"],
                self.manifest["chunk"],
                sealed["dtype"],
            ):
                raise UserError(f"the metadata of '{name}' are not those that were sealed", where=self.place.url)
            self._check_size(layout.chunk_bytes, f"a chunk of '{name}'")
            found[name] = layout
        return found

    def ids(self) -> list[str]:
        """The id of each row.

        Raises:
            UserError: they are not those that were sealed.
        """
        sealed = self.manifest[self.identity]
        size = math.prod(sealed["shape"])
        self._check_size(size, "the table of ids")
        content = self._read(name_in(self.group, chunk_path(Path(self.identity), 0, 2)), size)
        if sha256_bytes(content) != sealed["checksum"]:
            raise UserError("the ids of the store's rows are not those that were sealed", where=self.place.url)
        try:
            return decode_ids(np.frombuffer(content, np.uint8).reshape(sealed["shape"]))
        except ValueError as error:
            raise UserError("the ids of the store's rows are not text", where=self.place.url) from error

    def split_rows(self, split: str) -> np.ndarray:
        """The rows of ``split``, from the ``splits.json`` that was pushed with the store.

        Raises:
            UserError: there is none, or it has no such split.
        """
        remedy = "give the data set with --data results/EXPERIMENT/data/manifest.json"
        try:
            splits = _SPLITS.validate_json(self.place.read(SPLITS, MOST_OF_A_LIST))
        except FileNotFoundError as error:
            raise UserError("the store came without its splits", where=self.place.url, remedy=remedy) from error
        except ValidationError as error:
            raise UserError("the store's splits.json is damaged", where=self.place.url, remedy=remedy) from error
        if split not in splits:
            raise UserError(f"the store knows no split '{split}'", where=self.place.url, remedy=remedy)
        rows = self.manifest[self.identity]["shape"][0]
        if not all(0 <= first < last <= rows for first, last in splits[split]):
            raise UserError(f"the split '{split}' has rows that the store has not", where=self.place.url, remedy=remedy)
        return np.concatenate([np.arange(0), *(np.arange(first, last) for first, last in splits[split])])

    def _check_size(self, size: int, what: str) -> None:
        if size > MOST_OF_A_CHUNK:
            raise UserError(f"{what} would have {size} bytes, more than {MOST_OF_A_CHUNK}", where=self.place.url)

    def _read(self, name: str, limit: int) -> bytes:
        try:
            return self.place.read(name, limit)
        except FileNotFoundError as error:
            raise UserError(f"'{name}' is missing from the store", where=self.place.url) from error


def find_remote(place: RemoteFolder) -> Remote:
    """The sealed store in ``place``, wherever its manifest says that the group is.

    Raises:
        UserError: there is no sealed manifest.
    """
    try:
        content = json.loads(place.read(MANIFEST, MOST_OF_A_LIST))
    except FileNotFoundError as error:
        what, remedy = "no manifest.json there", "check the address, or wait until the store is pushed whole"
        raise UserError(what, where=place.url, remedy=remedy) from error
    except (ValueError, RecursionError) as error:
        raise UserError("its manifest.json is not JSON", where=place.url) from error
    manifest = check_sealed(content, place.url)
    return Remote(place, manifest, manifest["store"])


def identity_of(manifest: Mapping[str, Any]) -> str:
    return next(name for name in IDENTITIES if name in manifest)


def name_in(group: str, path: Path) -> str:
    return f"{group}/{path.as_posix()}"
