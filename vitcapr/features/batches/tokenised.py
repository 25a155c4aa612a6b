"""Tokenised captions for text towers; the tower of its language tokenises each caption."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer

from vitcapr.errors import UserError


@dataclass(frozen=True)
class TowerReader:
    """The tokenizer of a text tower.

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

    def read(self, texts: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        """The token numbers of each caption, special ones included, cut to the greatest length; and at which character
        of the caption each token begins, -1 for special ones."""
        tokenizer = Tokenizer.from_str(self.tokenizer.to_str())
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.max_length)
        return [
            (
                encoding.ids,
                [-1 if special else start for (start, _), special in zip(*_places(encoding), strict=True)],
            )
            for encoding in tokenizer.encode_batch(list(texts))
        ]


def _places(encoding: Any) -> tuple[list[tuple[int, int]], list[int]]:
    return encoding.offsets, encoding.special_tokens_mask


class WordTags(Protocol):
    """Parts of speech of words: ``vitcapr.artefacts.tags.TagTable``."""

    def at(self, caption: int, characters: Sequence[int]) -> list[int]:
        """The tag at each of some characters of a caption; 0 where there is no word."""
        ...


@dataclass(frozen=True)
class TowerTokens:
    """The captions of a batch that one tower reads.

    Attributes:
        at: (m,) int64, their places in the batch.
        ids: (m, T) int64, padded; mask: (m, T) int64, 1 at real tokens.
        tags: (m, T) int64, the part of speech of each token's word, 0 for none; None where no tags were given.
    """

    tower: str
    at: torch.Tensor
    ids: torch.Tensor
    mask: torch.Tensor
    tags: torch.Tensor | None = None


class TokenisedCaptions:
    """All captions of a table as token numbers.

    Args:
        captions: ``caption_row``, ``language`` and ``text``, as ``Manifest.captions_of`` gives them.
        readers: by the tower's name.
        tags: parts of speech, by ``caption_row``.

    Raises:
        UserError: a caption is in a language that no tower reads.
    """

    def __init__(
        self, captions: pd.DataFrame, readers: Mapping[str, TowerReader], tags: WordTags | None = None
    ) -> None:
        tower_of = {language: name for name, reader in readers.items() for language in reader.languages}
        if unread := sorted(set(captions["language"]) - tower_of.keys()):
            raise UserError(
                f"no text tower reads captions in '{unread[0]}'", remedy="add the language to one of the text towers"
            )
        self._pads = {name: reader.pad for name, reader in readers.items()}
        self._tower: dict[int, str] = {}
        self._ids: dict[int, list[int]] = {}
        self._tags: dict[int, list[int]] | None = None if tags is None else {}
        towers = captions["language"].map(tower_of)
        for name, reader in readers.items():
            mine = captions[towers == name]
            read = reader.read(mine["text"].tolist())
            for row, (ids, starts) in zip(mine["caption_row"].tolist(), read, strict=True):
                self._tower[row], self._ids[row] = name, ids
                if tags is not None and self._tags is not None:
                    self._tags[row] = tags.at(row, starts)

    def of(self, rows: Iterable[int]) -> list[TowerTokens]:
        """The captions with the given rows, tower by tower; padding that none of them needs is not there."""
        rows = list(rows)
        found = []
        for name, pad in self._pads.items():
            at = [place for place, row in enumerate(rows) if self._tower[row] == name]
            if at:
                ids, mask = _padded([self._ids[rows[place]] for place in at], pad)
                tags = None if self._tags is None else _padded([self._tags[rows[place]] for place in at], 0)[0]
                found.append(TowerTokens(name, torch.tensor(at), ids, mask, tags))
        return found


def _padded(lists: Sequence[Sequence[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(m, T) int64 twice: the numbers with ``pad`` behind them, and 1 where they are."""
    lengths = np.array([len(one) for one in lists])
    inside = np.arange(lengths.max()) < lengths[:, None]
    padded = np.full(inside.shape, pad, np.int64)
    padded[inside] = np.concatenate(lists)
    return torch.from_numpy(padded), torch.from_numpy(inside.astype(np.int64))
