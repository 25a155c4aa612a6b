"""Tokenised captions for text towers. The text tower of a language tokenises the captions in that language."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer
from torch.nn.utils.rnn import pad_sequence

from vitcapr.errors import UserError
from vitcapr.extensions.finetuning.clauses import second_clause, title_spans
from vitcapr.extensions.finetuning.finetuned_towers import TowerBatch, TowerTokens
from vitcapr.extensions.finetuning.text_files import TagTable


@dataclass(frozen=True)
class TowerReader:
    """The tokenizer of a text tower.

    Attributes:
        languages: the languages that this tower reads.
        pad: id of the padding token.
        max_length: maximum number of tokens of a caption, special tokens included; longer captions are cut.
        segments: split a caption of several clauses into two segments, the first clause and the rest.
    """

    tokenizer: Tokenizer
    languages: tuple[str, ...]
    pad: int
    max_length: int
    segments: bool = False

    def describe(self) -> dict[str, Any]:
        """Return the reader as JSON values, the input of :meth:`from_description`."""
        plain = Tokenizer.from_str(self.tokenizer.to_str())
        plain.no_padding()
        plain.no_truncation()
        return {**vars(self), "tokenizer": plain.to_str(), "languages": list(self.languages)}

    @classmethod
    def from_description(cls, values: Mapping[str, Any]) -> "TowerReader":
        tokenizer, languages = Tokenizer.from_str(values["tokenizer"]), tuple(values["languages"])
        return cls(**{**values, "tokenizer": tokenizer, "languages": languages})

    def read(self, texts: Sequence[str], raw: Sequence[str]) -> list[tuple[list[int], list[int], list[int]]]:
        """Return the tokens of each caption, special tokens included, cut to the maximum length.

        Punctuation in ``raw`` marks the segments.

        Of each token: its id; its type, 0 in the first segment and 1 in the second; and the position of its first
        character in the caption, -1 for special tokens.
        """
        tokenizer = Tokenizer.from_str(self.tokenizer.to_str())
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.max_length)
        cuts = [second_clause(*both) if self.segments else None for both in zip(raw, texts, strict=True)]
        parts = [text if cut is None else (text[:cut], text[cut:]) for text, cut in zip(texts, cuts, strict=True)]
        read = []
        for encoding, cut in zip(tokenizer.encode_batch(parts), cuts, strict=True):
            places = zip(encoding.offsets, encoding.sequence_ids, strict=True)
            starts = [-1 if segment is None else start + segment * (cut or 0) for (start, _), segment in places]
            read.append((encoding.ids, encoding.type_ids, starts))
        return read


class TowerCaptions:
    """All captions of a table as token ids, by their places or by their rows in ``captions.parquet``.

    Args:
        captions: a table of ``Manifest.captions_of``, with ``raw``, the text before cleaning, if texts were cleaned.
        readers: the reader of each tower, by name.
        tags: parts of speech, by ``caption_row``.

    Raises:
        UserError: a caption is in a language that no tower reads.
    """

    def __init__(
        self, captions: pd.DataFrame, readers: Mapping[str, TowerReader], tags: TagTable | None = None
    ) -> None:
        tower_of = {language: name for name, reader in readers.items() for language in reader.languages}
        if unread := sorted(set(captions["language"]) - tower_of.keys()):
            raise UserError(
                f"no text tower reads captions in '{unread[0]}'", remedy="add the language to one of the text towers"
            )
        self.image_row, self._caption_row = captions["image_row"].to_numpy(), captions["caption_row"].to_numpy()
        self._pads = {name: reader.pad for name, reader in readers.items()}
        self._captions: dict[int, tuple[str, dict[str, list[int]]]] = {}
        towers = captions["language"].map(tower_of)
        raw = captions["raw" if "raw" in captions else "text"]
        for name, reader in readers.items():
            mine = captions[towers == name]
            texts = mine["text"].tolist()
            read = reader.read(texts, raw[towers == name].tolist())
            for row, text, (ids, types, starts) in zip(mine["caption_row"].tolist(), texts, read, strict=True):
                spans = title_spans(text)
                titles = [int(any(a <= start < b for a, b in spans)) for start in starts]
                columns = {"ids": ids, "types": types, "titles": titles}
                if tags is not None:
                    columns["tags"] = tags.at(row, starts)
                self._captions[row] = name, columns

    def of(self, captions: np.ndarray) -> TowerBatch:
        """Return the captions at these places of the table."""
        return self.read(self._caption_row[captions].tolist())

    def read(self, rows: Iterable[int]) -> TowerBatch:
        """Return the captions with the given rows, for each tower, padded to the longest caption."""
        read = [self._captions[row] for row in rows]
        batches = TowerBatch()
        for name, pad in self._pads.items():
            at = [place for place, (tower, _) in enumerate(read) if tower == name]
            if at:
                captions = [read[place][1] for place in at]
                inputs = {
                    key: _padded([columns[key] for columns in captions], pad if key == "ids" else 0)
                    for key in captions[0]
                }
                inputs["mask"] = _padded([[1] * len(columns["ids"]) for columns in captions], 0)
                if not inputs["titles"].any():
                    del inputs["titles"]  # Asked here, in host memory, and not of the device.
                batches.append(TowerTokens(name, torch.tensor(at), inputs))
        return batches


def _padded(lists: Sequence[Sequence[int]], pad: int) -> torch.Tensor:
    """(m, T) int64, T the length of the longest list."""
    return pad_sequence([torch.tensor(one, dtype=torch.int64) for one in lists], batch_first=True, padding_value=pad)
