"""Tokenizers of checkpoints."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vitcapr.encoders.checkpoints import LOCAL, weights_digest
from vitcapr.encoders.kinds import TOKENIZER
from vitcapr.errors import UserError
from vitcapr.files import sha256_bytes, sha256_file


def digest_with_tokenizer(folder: Path, more: Sequence[str] = ()) -> str:
    """sha256 of configuration, weights and tokenizer, and of the files of the patterns ``more``."""
    files = sorted({path for pattern in (*TOKENIZER, *more) for path in folder.glob(pattern)})
    lines = [weights_digest(folder), *(f"{path.relative_to(folder)} {sha256_file(path)}" for path in files)]
    return sha256_bytes("\n".join(lines).encode())


def open_tokenizer(folder: Path) -> Any:
    """The tokenizer of a checkpoint, of transformers.

    Raises:
        UserError: there is none, or it is damaged.
    """
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, **LOCAL)
    except Exception as error:  # Each tokenizer class has its own way to say that its files do not do.
        what = f"the tokenizer cannot be opened: {str(error)[:120]}"
        raise UserError(what, where=folder, remedy="fetch the checkpoint again") from error


def by_length(tokens: Sequence[Sequence[int]], batch: int) -> Iterator[list[int]]:
    """The places of sentences in batches of similar length, so that there is little padding."""
    order = sorted(range(len(tokens)), key=lambda index: len(tokens[index]))
    for first in range(0, len(order), batch):
        yield order[first : first + batch]
