"""An embedding that starts from word vectors instead of random numbers."""

from pathlib import Path

import torch
from torch import nn

from vitcapr.errors import UserError
from vitcapr.formats.vocabulary import read_word_vectors


def start_embedding(embedding: nn.Embedding, path: Path, key: str) -> None:
    """Give ``embedding`` the vectors of a ``vectors.npy``, a row a word.

    Args:
        key: the setting that decides the embedding's width, for the message.

    Raises:
        UserError: the file is missing or damaged, or its vectors are of another vocabulary or width.
    """
    vectors = read_word_vectors(path)
    weight = embedding.weight
    if vectors.shape != tuple(weight.shape):
        raise UserError(
            f"the word vectors are {vectors.shape[0]} x {vectors.shape[1]}, the embedding {weight.shape[0]} x "
            f"{weight.shape[1]}",
            where=path,
            remedy=f"set {key} to the dimension of the word vectors",
        )
    with torch.no_grad():
        weight.copy_(torch.from_numpy(vectors))
