"""Causal language models: the pieces of words that their tokenizers know, and captions judged without an image."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vitcapr.encoders.checkpoints import by_length, load_part, locate, open_tokenizer, read_config
from vitcapr.encoders.devices import resolve_device
from vitcapr.errors import UserError

_BATCH = 32


class Pieces:
    """Cuts words into the pieces of a tokenizer; a piece that begins a word begins with a space."""

    def __init__(self, source: str, revision: str) -> None:
        folder = locate(source, revision).folder
        self._tokenizer = open_tokenizer(folder)
        self._begin, self._end = special_rows(self._tokenizer, folder)
        self._rows: dict[str, int] = {}
        self._pieces = cache(self._cut)

    def cut(self, words: Iterable[str]) -> list[str]:
        """Return the pieces of a caption. Words of which a piece is not a whole character are left out."""
        return [piece for word in words for piece in self._pieces(word)]

    def _cut(self, word: str) -> list[str]:
        # Behind another word, for some tokenizers add or drop a space at the very beginning.
        before = self._ids("a")
        ids = self._ids(f"a {word}")[len(before) :]
        pieces = [self._tokenizer.decode([*before, row]).removeprefix("a") for row in ids]
        if "".join(pieces) != f" {word}":
            return []
        self._rows |= dict(zip(pieces, ids, strict=True))
        return pieces

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def rows(self, pieces: Iterable[str]) -> tuple[int, ...]:
        """Return the row of each piece in the embedding of the language model, behind those of pad, start and end."""
        return (self._end, self._begin, self._end, *(self._rows[piece] for piece in pieces))


def special_rows(tokenizer: Any, folder: Path) -> tuple[int, int]:
    """Return the tokens that begin and end a text; where there is one of them, it does both."""
    tokens = [token for token in (tokenizer.bos_token_id, tokenizer.eos_token_id) if token is not None]
    if not tokens:
        what = "the language model has no token that begins or ends a text"
        raise UserError(what, where=folder, remedy="give another")
    return tokens[0], tokens[-1]


def load_judge(source: str, revision: str, device: str) -> Callable[[Sequence[str]], NDArray[np.float64]]:
    """Return a function from captions to their log-likelihoods under a language model that sees no image.

    In nats: the sum over the tokens after the start token, in float32. An end token is not scored, because a caption
    rarely ends a text.

    Raises:
        UserError: the language model is not found, has no safetensors, or has no token that begins a text.
    """
    folder, chosen = locate(source, revision).folder, resolve_device(device)
    tokenizer, network = open_tokenizer(folder), load_causal(folder, torch.float32).to(chosen)
    begin, _ = special_rows(tokenizer, folder)

    @torch.inference_mode()
    def log_likelihoods(captions: Sequence[str]) -> NDArray[np.float64]:
        tokens = [[begin, *tokenizer(text, add_special_tokens=False)["input_ids"]] for text in captions]
        scores = np.empty(len(tokens))
        for places in by_length(tokens, _BATCH):
            rows = [torch.tensor(tokens[place]) for place in places]
            padded = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1).to(chosen)
            real = padded >= 0
            read = padded.clamp(min=0)
            logits = network(input_ids=read, attention_mask=real.long()).logits[:, :-1].float()
            each = nn.functional.cross_entropy(logits.transpose(1, 2), read[:, 1:], reduction="none")
            scores[places] = -(each * real[:, 1:]).sum(1).double().cpu().numpy()
        return scores

    return log_likelihoods


def load_causal(folder: Path, dtype: torch.dtype, attention: str | None = None) -> Any:
    """Return a causal language model of transformers.

    Raises:
        UserError: the checkpoint holds none.
    """
    from transformers import AutoModelForCausalLM

    config = read_config(folder)
    config._attn_implementation = attention
    try:
        return load_part(AutoModelForCausalLM, folder, dtype=dtype, config=config)
    except ValueError as error:
        what, remedy = f"this is no causal language model: {str(error)[:120]}", "give another"
        raise UserError(what, where=folder, remedy=remedy) from error
