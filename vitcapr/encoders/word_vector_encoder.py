"""Published word vectors as an encoder of sentences."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from vitcapr.errors import UserError
from vitcapr.files import find_under
from vitcapr.text.normalise import words_of
from vitcapr.text.word_vectors import read_dimension, read_vectors


class WordVectorEncoder:
    """Published word vectors, used as a :class:`TextEncoder`: a sentence is the mean of the vectors of its words.

    It knows all words of the file, for any vocabulary. If a word occurs twice in the file, the first vector is used.
    """

    dtype = torch.float32

    def __init__(self, path: Path) -> None:
        self.dim = read_dimension(path)
        self._rows: dict[str, int] = {}
        vectors: list[np.ndarray] = []
        for word, vector in read_vectors(path, self.dim, []):
            if word not in self._rows:
                self._rows[word] = len(vectors)
                vectors.append(np.asarray(vector, np.float32))
        if not vectors:
            raise UserError("the file holds no word vectors", where=path, remedy="name a file in GloVe's format")
        self.model = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(np.stack(vectors)), mode="mean")

    def encode(self, texts: Sequence[str], batch: int = 64) -> np.ndarray:
        """The vector of each sentence, (n, D) float32: :meth:`tokenize`, then :meth:`encode_tokens`."""
        vectors: np.ndarray = self.encode_tokens(self.tokenize(texts), batch).cpu().numpy()
        return vectors

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """The rows of the known words of each sentence, with repetitions."""
        return [[self._rows[word] for word in words_of(text) if word in self._rows] for text in texts]

    def encode_tokens(self, tokens: Sequence[list[int]], batch: int = 64) -> Tensor:  # noqa: ARG002
        """The mean over each sentence, (n, D) float32; zero for a sentence without a known word."""
        lengths = [len(of_sentence) for of_sentence in tokens]
        offsets = torch.from_numpy(np.cumsum([0, *lengths])[:-1])
        words = torch.tensor([row for of_sentence in tokens for row in of_sentence], dtype=torch.int64)
        with torch.inference_mode():
            means: Tensor = self.model(words, offsets)
        return means


def locate_word_vectors(source: str) -> Path:
    """The path of the file ``source``: under ``VITCAPR_DATA`` if it exists there, else as given."""
    path = find_under("VITCAPR_DATA", source)
    if not path.is_file():
        remedy = "give its path, from here or from the folder that VITCAPR_DATA names"
        raise UserError("there is no such file of word vectors", where=source, remedy=remedy)
    return path
