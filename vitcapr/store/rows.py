"""The rows of a store: the images or the captions of a data set, in its order."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import pandas as pd

from vitcapr.formats.containers import TableFile
from vitcapr.formats.manifest import Manifest


@dataclass(frozen=True)
class Rows:
    """What the rows of a store describe, in order. A row is read when it is asked for.

    Attributes:
        kind: ``image`` or ``caption``.
        sha256: of ids and contents of all rows.
    """

    kind: str
    table: TableFile
    sha256: str

    @classmethod
    def of_images(cls, data: Manifest) -> "Rows":
        return cls("image", data.image_table, data.image_contents)

    @classmethod
    def of_captions(cls, data: Manifest) -> "Rows":
        return cls("caption", data.caption_table, data.caption_contents)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def ids(self) -> "pd.Series[str]":
        return self.table.column(f"{self.kind}_id")

    def id_parts(self) -> Iterator["pd.Series[str]"]:
        """The ids, a row group at a time."""
        return (part[f"{self.kind}_id"] for part in self.table.batches(f"{self.kind}_id"))

    def texts(self, rows: np.ndarray) -> list[str]:
        """The path of each image, or the words of each caption."""
        column = "path" if self.kind == "image" else "text"
        texts: list[str] = self.table.rows(rows, column)[column].tolist()
        return texts

    def digests(self) -> Iterator[np.ndarray]:
        """SHA-256 of each file or of the words of each caption, a row group at a time: (n, 32) uint8. Equal rows are
        copied from other stores."""
        if self.kind == "image":
            parts = (bytes.fromhex("".join(part["sha256"].tolist())) for part in self.table.batches("sha256"))
        else:
            texts = (part["text"].tolist() for part in self.table.batches("text"))
            parts = (b"".join(sha256(text.encode()).digest() for text in part) for part in texts)
        return (np.frombuffer(part, np.uint8).reshape(-1, sha256().digest_size) for part in parts)
