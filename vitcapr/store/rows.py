"""The rows of a store: the images or the captions of a data set, in its order."""

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from vitcapr.files import canonical_json, sha256_bytes
from vitcapr.formats.manifest import Manifest


@dataclass(frozen=True)
class Rows:
    """What the rows of a store describe, in order.

    Attributes:
        kind: ``image`` or ``caption``.
        origins: for messages, the path of each image or the words of each caption.
        sha256: of ids and contents of all rows.
    """

    kind: str
    table: pd.DataFrame
    origins: list[str]
    sha256: str

    @classmethod
    def of_images(cls, data: Manifest) -> "Rows":
        return cls("image", data.images, data.images["path"].tolist(), _digest(data.images[["image_id", "sha256"]]))

    @classmethod
    def of_captions(cls, data: Manifest) -> "Rows":
        texts = data.captions["text"].tolist()
        return cls("caption", data.captions, texts, _digest(data.captions[["caption_id", "text"]]))

    @cached_property
    def ids(self) -> list[str]:
        ids: list[str] = self.table[f"{self.kind}_id"].tolist()
        return ids

    @cached_property
    def digests(self) -> list[str]:
        """SHA-256 of each file or of the words of each caption; equal rows are copied from other stores."""
        if self.kind == "image":
            return list(self.table["sha256"])
        return [sha256_bytes(text.encode("utf-8")) for text in self.origins]


def _digest(table: pd.DataFrame) -> str:
    return sha256_bytes(canonical_json(table.to_numpy().tolist()).encode("utf-8"))
