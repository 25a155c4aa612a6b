"""Captions cut into the pieces that text towers read, each by the tower of its language."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer

from vitcapr.errors import UserError


@dataclass(frozen=True)
class TowerReader:
    """How a text tower reads.

    Attributes:
        languages: of the captions that are this tower's.
        pad: number of the padding token.
        max_length: tokens of a caption, special ones included; more are cut.
    """

    tokenizer: Tokenizer
    languages: tuple[str, ...]
    pad: int
    max_length: int

    def describe(self) -> dict[str, Any]:
        """JSON values from which :meth:`from_description` makes it again."""
        plain = Tokenizer.from_str(self.tokenizer.to_str())
        plain.no_padding()
        plain.no_truncation()
        return {
            "tokenizer": plain.to_str(),
            "languages": list(self.languages),
            "pad": self.pad,
            "max_length": self.max_length,
        }

    @classmethod
    def from_description(cls, values: Mapping[str, Any]) -> "TowerReader":
        tokenizer = Tokenizer.from_str(values["tokenizer"])
        return cls(tokenizer, tuple(values["languages"]), values["pad"], values["max_length"])

    def read(self, texts: Sequence[str]) -> list[list[int]]:
        """The token numbers of each caption, special ones included, cut to the greatest length."""
        tokenizer = Tokenizer.from_str(self.tokenizer.to_str())
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.max_length)
        return [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]


@dataclass(frozen=True)
class TowerTokens:
    """The captions of a batch that one tower reads.

    Attributes:
        at: (m,) int64, their places in the batch.
        ids: (m, T) int64, padded; mask: (m, T) int64, 1 at real tokens.
    """

    tower: str
    at: torch.Tensor
    ids: torch.Tensor
    mask: torch.Tensor


class TokenisedCaptions:
    """All captions of a table as token numbers.

    Args:
        captions: ``caption_row``, ``language`` and ``text``, as ``Manifest.captions_of`` gives them.
        readers: by the tower's name.

    Raises:
        UserError: a caption is in a language that no tower reads.
    """

    def __init__(self, captions: pd.DataFrame, readers: Mapping[str, TowerReader]) -> None:
        tower_of = {language: name for name, reader in readers.items() for language in reader.languages}
        if unread := sorted(set(captions["language"]) - tower_of.keys()):
            raise UserError(
                f"no text tower reads captions in '{unread[0]}'", remedy="add the language to one of the text towers"
            )
        self._pads = {name: reader.pad for name, reader in readers.items()}
        self._tower: dict[int, str] = {}
        self._ids: dict[int, list[int]] = {}
        towers = captions["language"].map(tower_of)
        for name, reader in readers.items():
            mine = captions[towers == name]
            for row, ids in zip(mine["caption_row"].tolist(), reader.read(mine["text"].tolist()), strict=True):
                self._tower[row], self._ids[row] = name, ids

    def of(self, rows: Iterable[int]) -> list[TowerTokens]:
        """The captions with the given rows, tower by tower; padding that none of them needs is not there."""
        rows = list(rows)
        found = []
        for name, pad in self._pads.items():
            at = [place for place, row in enumerate(rows) if self._tower[row] == name]
            if at:
                ids = [self._ids[rows[place]] for place in at]
                lengths = np.array([len(one) for one in ids])
                inside = np.arange(lengths.max()) < lengths[:, None]
                padded = np.full(inside.shape, pad, np.int64)
                padded[inside] = np.concatenate(ids)
                found.append(
                    TowerTokens(
                        name, torch.tensor(at), torch.from_numpy(padded), torch.from_numpy(inside.astype(np.int64))
                    )
                )
        return found
