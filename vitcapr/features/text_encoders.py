"""A frozen text model of transformers as a function from sentences to vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import transformers
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError
from transformers import AutoConfig, AutoModel, AutoTokenizer

from vitcapr.errors import UserError
from vitcapr.features.backbones import Checkpoint, locate, weights_digest
from vitcapr.features.precision import resolve_dtype
from vitcapr.files import sha256_bytes, sha256_file

Pool = Literal["mean", "cls"]

_TOKENIZER = [
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "*.model"),
]
_OPTIONAL_WEIGHTS = ("pooler", "position_ids")


class TextEncoder:
    """``encode`` turns sentences into vectors; made by :func:`load_text_encoder`.

    Attributes:
        dim: the length D of a vector.
        dtype: of weights and arithmetic.
    """

    def __init__(
        self, tokenizer: Any, model: torch.nn.Module, pool: Pool, dtype: torch.dtype, device: torch.device, longest: int
    ) -> None:
        """Args:
        longest: tokens of a sentence, special ones included; more are cut.
        """
        self._tokenizer, self._model, self._pool, self._longest = tokenizer, model.to(device, dtype), pool, longest
        self.dtype, self._device = dtype, device
        self.dim = int(self._forward(self.tokenize(["a"])).shape[1])

    @property
    def model(self) -> torch.nn.Module:
        """The network itself, frozen and in evaluation mode; for what trains it further."""
        return self._model

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of transformers that belongs to it."""
        return self._tokenizer

    def encode(self, texts: Sequence[str], batch: int = 64) -> np.ndarray:
        """The vector of each sentence, (n, D) float32: :meth:`tokenize`, then :meth:`encode_tokens`."""
        return self.encode_tokens(self.tokenize(texts), batch)

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """The token numbers of each sentence, special ones included, cut to the greatest length."""
        if not texts:
            return []
        cut = self._tokenizer(
            list(texts), truncation=True, max_length=self._longest, return_attention_mask=False, verbose=False
        )
        ids: list[list[int]] = cut["input_ids"]
        return ids

    def encode_tokens(self, tokens: Sequence[list[int]], batch: int = 64) -> np.ndarray:
        """The vector of each sentence.

        Sentences of similar length go together, so that little is computed for padding, and padding counts for
        nothing: but for rounding, the vector of a sentence does not depend on those beside it.

        Args:
            batch: sentences in one forward pass.

        Returns:
            (n, D) float32, in the order given: the mean over the real tokens, or the first token's vector.
        """
        order = sorted(range(len(tokens)), key=lambda index: len(tokens[index]))
        vectors = np.empty((len(tokens), self.dim), np.float32)
        for first in range(0, len(order), batch):
            chosen = order[first : first + batch]
            vectors[chosen] = self._forward([tokens[index] for index in chosen])
        return vectors

    @torch.inference_mode()
    def _forward(self, tokens: list[list[int]]) -> np.ndarray:
        padded = self._tokenizer.pad({"input_ids": tokens}, padding_side="right", return_tensors="pt")
        mask = padded["attention_mask"].to(self._device)
        output = self._model(input_ids=padded["input_ids"].to(self._device), attention_mask=mask)
        hidden = output.last_hidden_state.float()
        if self._pool == "cls":
            pooled = hidden[:, 0]
        else:
            real = mask[..., None].float()
            pooled = (hidden * real).sum(1) / real.sum(1)
        vectors: np.ndarray = pooled.cpu().numpy()
        return vectors


def locate_text_encoder(source: str, revision: str) -> Checkpoint:
    """Find ``source`` as :func:`vitcapr.features.backbones.locate` does, its tokenizer with it.

    Raises:
        UserError: it is nowhere.
    """
    checkpoint = locate(source, revision)
    if checkpoint.revision is not None:
        try:
            snapshot_download(source, revision=checkpoint.revision, allow_patterns=_TOKENIZER)
        except (HfHubHTTPError, OSError) as error:
            remedy = "run where the hub can be reached"
            raise UserError(f"the tokenizer of '{source}' cannot be fetched", where=source, remedy=remedy) from error
    return checkpoint


def text_encoder_digest(folder: Path) -> str:
    """sha256 of configuration, weights and tokenizer.

    Raises:
        UserError: there are no safetensors.
    """
    files = sorted({path for pattern in _TOKENIZER for path in folder.glob(pattern)})
    lines = [weights_digest(folder), *(f"{path.name} {sha256_file(path)}" for path in files)]
    return sha256_bytes("\n".join(lines).encode())


def load_text_encoder(
    source: str, *, revision: str, pool: Pool, dtype: str, device: torch.device, max_length: int
) -> TextEncoder:
    """Load a text model and its tokenizer: BERT and its relatives, and the encoder of an encoder-decoder.

    Args:
        source: a hub id or a folder, looked up under ``VITCAPR_BACKBONES`` first.
        pool: ``mean`` over the real tokens, special ones included, or ``cls``, the first token.
        dtype: ``auto``, ``float32``, ``bfloat16`` or ``float16``.
        max_length: tokens of a sentence, special ones included; more are cut.

    Raises:
        UserError: it is nowhere, has code of its own or pickled weights, has no tokenizer, or reads fewer tokens.
    """
    folder = locate_text_encoder(source, revision).folder
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    local = {"trust_remote_code": False, "local_files_only": True}
    try:
        config = AutoConfig.from_pretrained(folder, **local)
    except (ValueError, OSError, KeyError) as error:
        what = f"transformers {transformers.__version__} does not know this checkpoint: {str(error)[:120]}"
        raise UserError(
            what, where=folder / "config.json", remedy="use a checkpoint without code of its own"
        ) from error
    text_config = getattr(config, "text_config", config)
    room = getattr(text_config, "max_position_embeddings", None)
    if room is not None and max_length > room:
        what = f"max_length {max_length} is more than the {room} tokens that the text encoder reads"
        raise UserError(what, where=folder, remedy=f"set max_length to {room} or less")
    return TextEncoder(
        _tokenizer(folder, local), _model(folder, local), pool, resolve_dtype(dtype, device), device, max_length
    )


def _tokenizer(folder: Path, local: dict[str, Any]) -> Any:
    if not any(True for pattern in _TOKENIZER for _ in folder.glob(pattern)):
        what = "the text encoder has no tokenizer"
        raise UserError(what, where=folder, remedy="put its tokenizer.json beside the weights")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **local)
    except Exception as error:  # Each tokenizer class has its own way to say that its files do not do.
        what = f"the tokenizer cannot be opened: {str(error)[:120]}"
        raise UserError(what, where=folder, remedy="fetch the checkpoint again") from error
    if tokenizer.pad_token is None:
        raise UserError("the tokenizer has no padding token", where=folder, remedy="use a model of the BERT family")
    return tokenizer


def _model(folder: Path, local: dict[str, Any]) -> torch.nn.Module:
    """The encoder alone, for inference, every weight of it from the checkpoint."""
    if not any(folder.glob("model*.safetensors")):
        what = "the text encoder has no model.safetensors; pickled weights, which may run code, are not opened"
        raise UserError(what, where=folder, remedy="save it again with model.save_pretrained(folder)")
    model, report = AutoModel.from_pretrained(
        folder, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **local
    )
    missing = [key for key in report["missing_keys"] if not any(part in key for part in _OPTIONAL_WEIGHTS)]
    if missing:
        what = f"the weights lack {len(missing)} tensors of the model, '{sorted(missing)[0]}' among them"
        raise UserError(what, where=folder, remedy="fetch the checkpoint again")
    encoder: torch.nn.Module = (
        model.get_encoder() if model.config.is_encoder_decoder else getattr(model, "text_model", model)
    )
    return encoder.eval().requires_grad_(False)
