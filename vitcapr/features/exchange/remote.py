"""A sealed store in some place: what its manifest says, and that it is what was sealed."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.features.store.layout import IDENTITIES, ArrayLayout, chunk_path, decode_ids
from vitcapr.features.store.reader import check_sealed
from vitcapr.features.store.remote_folder import RemoteFolder
from vitcapr.files import sha256_bytes

MANIFEST = "manifest.json"
SPLITS = "splits.json"


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
            layout = ArrayLayout.from_metadata(json.loads(self._read(f"{self.group}/{name}/zarr.json")))
            if (list(layout.shape), layout.chunk, layout.dtype) != (
                sealed["shape"],
                self.manifest["chunk"],
                sealed["dtype"],
            ):
                raise UserError(f"the metadata of '{name}' are not those that were sealed", where=self.place.url)
            found[name] = layout
        return found

    def ids(self) -> list[str]:
        """The id of each row.

        Raises:
            UserError: they are not those that were sealed.
        """
        sealed = self.manifest[self.identity]
        content = self._read(name_in(self.group, chunk_path(Path(self.identity), 0, 2)))
        if sha256_bytes(content) != sealed["checksum"]:
            raise UserError("the ids of the store's rows are not those that were sealed", where=self.place.url)
        return decode_ids(np.frombuffer(content, np.uint8).reshape(sealed["shape"]))

    def split_rows(self, split: str) -> np.ndarray:
        """The rows of ``split``, from the ``splits.json`` that was pushed with the store.

        Raises:
            UserError: there is none, or it has no such split.
        """
        remedy = "give the data set with --data results/EXPERIMENT/data/manifest.json"
        try:
            ranges = json.loads(self.place.read(SPLITS))[split]
        except FileNotFoundError as error:
            raise UserError("the store came without its splits", where=self.place.url, remedy=remedy) from error
        except KeyError as error:
            raise UserError(f"the store knows no split '{split}'", where=self.place.url, remedy=remedy) from error
        return np.concatenate([np.arange(first, last) for first, last in ranges])

    def _read(self, name: str) -> bytes:
        try:
            return self.place.read(name)
        except FileNotFoundError as error:
            raise UserError(f"'{name}' is missing from the store", where=self.place.url) from error


def find_remote(place: RemoteFolder) -> Remote:
    """The sealed store in ``place``, wherever its manifest says that the group is.

    Raises:
        UserError: there is no sealed manifest.
    """
    try:
        content = json.loads(place.read(MANIFEST))
    except FileNotFoundError as error:
        what, remedy = "no manifest.json there", "check the address, or wait until the store is pushed whole"
        raise UserError(what, where=place.url, remedy=remedy) from error
    except ValueError as error:
        raise UserError("its manifest.json is not JSON", where=place.url) from error
    manifest = check_sealed(content, place.url)
    if any(not name.isidentifier() for name in manifest["arrays"]):
        raise UserError("its arrays have names that no store of ours has", where=place.url)
    return Remote(place, manifest, manifest["store"])


def identity_of(manifest: Mapping[str, Any]) -> str:
    return next(name for name in IDENTITIES if name in manifest)


def name_in(group: str, path: Path) -> str:
    return f"{group}/{path.as_posix()}"
