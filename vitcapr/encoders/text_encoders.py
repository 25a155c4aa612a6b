"""Frozen text encoders as functions from sentences to vectors, and what decides their vectors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from vitcapr.encoders.checkpoint_kinds import (
    MODULES,
    SENTENCE_MODULES,
    check_room,
    check_text_encoder,
    image_kind,
    library,
    read_model_config,
)
from vitcapr.encoders.checkpoints import (
    Checkpoint,
    by_length,
    digest_with_tokenizer,
    locate,
    open_tokenizer,
    source_name,
)
from vitcapr.encoders.devices import dtype_name, resolve_dtype, to_device
from vitcapr.encoders.network_checks import check_sentences
from vitcapr.encoders.text_towers import (
    Output,
    TextModel,
    WordVectorEncoder,
    load_modules,
    load_text_model,
    open_clip_texts,
    read_published,
)
from vitcapr.errors import UserError
from vitcapr.files import find_under, read_json, sha256_file

Pool = Literal["auto", "modules.json", "mean", "cls", "last"]
_BATCH = 64
"""Sentences in a forward pass."""


class TextEncoder:
    """Encoder of sentences into vectors of length ``dim``, made by :class:`TextRecipe`.

    ``prompt`` precedes each sentence, which is put into lower case with ``lowercase`` and cut to ``longest`` tokens;
    ``pool`` makes the vector.
    """

    def __init__(
        self,
        tokenizer: Any,
        tower: TextModel,
        pool: Callable[[Tensor, Tensor], Tensor],
        dtype: torch.dtype,
        device: torch.device,
        longest: int,
        lowercase: bool = False,
        prompt: str = "",
    ) -> None:
        self.tokenizer, self._tower, self.pool, self.longest = tokenizer, tower, pool, longest
        self.model, self.lowercase, self.prompt, self.room = tower.model, lowercase, prompt, tower.room
        self.dtype, self.device = dtype, device
        self.dim = int(self._forward(self.tokenize(["a"])).shape[1])

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vector of each sentence, (n, D) float32: :meth:`tokenize`, then :meth:`encode_tokens`."""
        vectors: np.ndarray = self.encode_tokens(self.tokenize(texts)).cpu().numpy()
        return vectors

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each sentence, special tokens included, cut to the maximum length."""
        if not texts:
            return []
        whole = [self.prompt + text for text in texts]
        cut = self.tokenizer(
            [text.lower() for text in whole] if self.lowercase else whole,
            truncation=True,
            max_length=self.longest,
            return_attention_mask=False,
            verbose=False,
        )
        ids: list[list[int]] = cut["input_ids"]
        return ids

    def encode_tokens(self, tokens: Sequence[list[int]]) -> Tensor:
        """Return the vector of each sentence.

        Sentences of similar length share a forward pass; except for rounding, a vector does not depend on the others.

        Returns:
            (n, D) float32 on the encoder's device, in the given order: the mean of the real tokens, the first or last
            real token, or the model's own vector of a sentence.
        """
        parts = list(by_length(tokens, _BATCH))
        vectors = [self._forward([tokens[index] for index in some]) for some in parts]
        if not vectors:
            return torch.empty(0, self.dim)
        place = torch.tensor([index for some in parts for index in some]).argsort()
        return torch.cat(vectors)[to_device(place, self.device)]

    @torch.inference_mode()
    def _forward(self, tokens: list[list[int]]) -> Tensor:
        length = self._tower.padded_to
        padded = self.tokenizer.pad(
            {"input_ids": tokens},
            padding="longest" if length is None else "max_length",
            max_length=length,
            padding_side="right",
            return_tensors="pt",
        )
        mask = to_device(padded["attention_mask"], self.device)
        masked = {"attention_mask": mask} if length is None else {}
        output = self._tower.run(input_ids=to_device(padded["input_ids"], self.device), **masked)
        return output.float() if output.ndim == 2 else self.pool(output.float(), mask)


def _first(hidden: Tensor, _: Tensor) -> Tensor:
    return hidden[:, 0]


def _last(hidden: Tensor, mask: Tensor) -> Tensor:
    return hidden[torch.arange(len(hidden), device=hidden.device), mask.sum(1) - 1]


def _mean(hidden: Tensor, mask: Tensor) -> Tensor:
    real = mask[..., None].to(hidden.dtype)
    return (hidden * real).sum(1) / real.sum(1)


POOLS = {"mean": _mean, "cls": _first, "last": _last}
"""From hidden states (B, T, D), padded on the right, and their mask (B, T), 1 for a real token, to (B, D)."""


@dataclass(frozen=True)
class TextRecipe:
    """Recipe from sentences to vectors: a text encoder and everything that decides its vectors.

    Attributes:
        source: a hub id or a folder, looked up under ``VITCAPR_BACKBONES`` first. Of output ``word_vectors``, a file in
            GloVe's format, looked up under ``VITCAPR_DATA`` first; only the source counts.
        output: see :func:`vitcapr.encoders.text_towers.load_text_model`.
        pool: pooling of hidden states: the ``mean`` of the real tokens (special tokens included), ``cls`` (the first),
            ``last``, ``modules.json``: what the modules of sentence-transformers compute, or ``auto``: these modules if
            the checkpoint has them, else the mean.
        dtype: ``auto``, ``float32``, ``bfloat16`` or ``float16``.
        max_length: maximum number of tokens of a sentence, special tokens included; longer sentences are cut.
        prompt: precedes each sentence: a text, or the name of a prompt of the checkpoint; None: its default prompt.
    """

    source: str
    device: torch.device
    revision: str
    output: Output | Literal["word_vectors"]
    pool: Pool
    dtype: str
    max_length: int
    prompt: str | None = None

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """Return the place of the encoder; for word vectors, ``folder`` is their file.

        Raises:
            UserError: it is not found.
        """
        if self.output != "word_vectors":
            return locate(self.source, self.revision)
        if not (path := find_under("VITCAPR_DATA", self.source)).is_file():
            remedy = "give its path, from here or from the folder that VITCAPR_DATA names"
            raise UserError("there is no such file of word vectors", where=self.source, remedy=remedy)
        return Checkpoint(path, None)

    @property
    def pooling(self) -> str:
        """Return the pooling of the checkpoint: ``modules.json``, ``mean``, ``cls`` or ``last``."""
        published = self.output == "hidden" and (self.checkpoint.folder / MODULES).is_file()
        if self.pool in ("auto", MODULES) and published:
            return MODULES
        return "mean" if self.pool == "auto" else self.pool

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes of every store of this recipe."""
        checkpoint, words = self.checkpoint, self.output == "word_vectors"
        folder, modules = checkpoint.folder, not words and self.pooling == MODULES
        attributes = {
            "backbone": source_name(self.source),
            "revision": checkpoint.revision,
            "weights_sha256": sha256_file(folder)
            if words
            else digest_with_tokenizer(folder, SENTENCE_MODULES if modules else []),
            "output": self.output,
            "pool": self.pooling if self.output == "hidden" else None,
            "max_length": self.max_length,
            "dtype": dtype_name(WordVectorEncoder.dtype if words else resolve_dtype(self.dtype, self.device)),
        }
        if not words:
            published = read_published(folder)
            more: dict[str, Any] = {"prompt": published.prompt(self.prompt), "lowercase": reads_lowercase(folder)}
            more["library"] = library(folder, modules)
            default = published.default
            attributes |= {name: value for name, value in more.items() if value or (name == "prompt" and default)}
        return attributes

    @property
    def note(self) -> str | None:
        """A line for the log about prompts, or None."""
        if self.output == "word_vectors" or not (names := read_published(self.checkpoint.folder).prompts):
            return None
        unused = f"no prompt precedes the captions; the checkpoint has prompts named {', '.join(names)}"
        return None if self.attributes.get("prompt") else f"{unused} (text_encoders: prompt)"

    def load(self) -> TextEncoder | WordVectorEncoder:
        """Load the text encoder and its tokenizer.

        Raises:
            UserError: it is not found, has its own code or pickled weights, has no tokenizer or no such output, reads
                fewer tokens than ``max_length``, or the vector of a sentence depends on its batch.
        """
        folder, device, longest = self.checkpoint.folder, self.device, self.max_length
        if self.output == "word_vectors":
            return WordVectorEncoder(folder)
        check_text_encoder(folder, self.output, longest)
        dtype, prompt = resolve_dtype(self.dtype, device), read_published(folder).prompt(self.prompt)
        if image_kind(folder) == "open-clip":
            tokenizer, tower = open_clip_texts(folder, dtype, device)
        else:
            tokenizer, tower = open_tokenizer(folder), load_text_model(folder, self.output, dtype, device)
            if tokenizer.pad_token is None:
                raise UserError("the tokenizer has no padding token", where=folder, remedy="use a model like BERT")
        check_room(folder, longest, tower.room)
        if self.pooling == MODULES:
            pool = load_modules(folder, dtype, device, len(tokenizer(prompt)["input_ids"]) - 1 if prompt else 0)
        else:
            pool = POOLS.get(self.pooling, _mean)  # Aligned vectors are not pooled.
        try:
            encoder = TextEncoder(tokenizer, tower, pool, dtype, device, longest, reads_lowercase(folder), prompt)
        except (RuntimeError, ValueError, TypeError, AttributeError) as error:
            what = f"the model does not encode a sentence: {str(error)[:120]}"
            raise UserError(what, where=folder, remedy="use a text encoder such as BERT, E5 or CLIP") from error
        check_sentences(encoder.encode, dtype, folder)
        return encoder


def reads_lowercase(folder: Path) -> bool:
    """Return whether a text encoder was trained on lower case that its tokenizer does not make.

    This holds for SigLIP 2, whose tokenizer is Gemma's (Tschannen et al. 2025, "SigLIP 2", section 2.1), and where
    sentence-transformers' files say so.
    """
    path = folder / "tokenizer_config.json"
    name = str(read_json(path).get("tokenizer_class")) if path.is_file() else ""
    siglip = str(read_model_config(folder).get("model_type")).startswith("siglip")
    return (siglip and name.startswith(("Gemma", "Siglip2"))) or read_published(folder).lowercase
