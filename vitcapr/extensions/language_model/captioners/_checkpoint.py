"""The networks of captioners with a pretrained language model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from vitcapr.encoders.checkpoints import digest_with_tokenizer, locate, source_name
from vitcapr.encoders.language_models import load_causal
from vitcapr.errors import UserError
from vitcapr.formats.vocabulary import Vocabulary

_PLAIN = ("llama", "mistral", "qwen2", "qwen3", "smollm3")
"""Types of models whose attention is softmax(q k^T + mask) v and nothing more."""


class LanguageModel(NamedTuple):
    """A checkpoint.

    Attributes:
        card: its entry in the card of a captioner: name, revision, digest of weights and tokenizer.
        in_float32: whether it is trained, and so opened, in float32.
    """

    folder: Path
    card: dict[str, Any]
    in_float32: bool

    def open(self, words: Vocabulary, dtype: torch.dtype) -> Any:
        """Load the network, reduced to its pieces ``words``.

        Raises:
            UserError: no captioner can be made of it.
        """
        if not words.rows:
            what, remedy = "the vocabulary has words, not pieces", "give text/pieces/CAPTIONER/vocabulary.json"
            raise UserError(what, where=self.folder, remedy=remedy)
        return load_language_model(self.folder, words.rows, torch.float32 if self.in_float32 else dtype)


def find_trained(given: str, known: Mapping[str, Any]) -> LanguageModel:
    """Find the language model of a trained captioner: the checkpoint of its training, or of its name on this machine.

    Args:
        given: the name in its settings.
        known: its entry in the card.

    Raises:
        UserError: it has other weights.
    """
    source = given if Path(given).is_dir() else known["source"]
    model = find_language_model(source, known["revision"] or "main")
    if model.card["weights_sha256"] != known["weights_sha256"]:
        what, remedy = "the captioner was trained with other weights of its language model", "give the same checkpoint"
        raise UserError(what, where=source, remedy=remedy)
    return model


def find_language_model(source: str, revision: str, in_float32: bool = False) -> LanguageModel:
    """Find a language model and read the digest of its files, before it is loaded."""
    checkpoint = locate(source, revision)
    folder, commit = checkpoint.folder, checkpoint.revision
    card = {"source": source_name(source), "revision": commit, "weights_sha256": digest_with_tokenizer(folder)}
    return LanguageModel(folder, card, in_float32)


def load_language_model(folder: Path, rows: Sequence[int], dtype: torch.dtype) -> Any:
    """Return a causal language model that reads and writes the given rows of its vocabulary only.

    Raises:
        UserError: there is none, or its embedding is more than a table.
    """
    # The fused implementations return no attention, and are not faster for short captions.
    model = load_causal(folder, dtype, attention="eager")
    if model.config.model_type in _PLAIN:
        group_queries(model)
    read, written = model.get_input_embeddings(), model.get_output_embeddings()
    if type(read) is not nn.Embedding or type(written) is not nn.Linear:
        what = f"the embedding of a {model.config.model_type} is more than a table, of which no part can be taken"
        raise UserError(what, where=folder, remedy="use a language model like Llama, Qwen or GPT-2")
    chosen, tied = torch.tensor(rows), written.weight is read.weight
    for table in (read, written):
        table.weight = nn.Parameter(table.weight[chosen], requires_grad=False)
    if tied:
        written.weight = read.weight
    if written.bias is not None:
        written.bias = nn.Parameter(written.bias[chosen], requires_grad=False)
    read.num_embeddings = written.out_features = model.config.vocab_size = len(rows)
    read.padding_idx = None
    return model


def group_queries(model: Any) -> None:
    """Let a model compute attention without a copy of each key for every query head that shares it."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionInterface.register("grouped", _grouped_attention)
    AttentionMaskInterface.register("grouped", eager_mask)
    model.set_attn_implementation("grouped")


def _grouped_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float, dropout: float, **_: Any
) -> tuple[Tensor, Tensor]:
    """Attend with grouped queries.

    query: (B, A, Q, D), whose A heads share the G heads of key and value: (B, G, S, D). Returns (B, Q, A, D) and the
    attention (B, A, Q, S).
    """
    heads = query.shape[1] // key.shape[1]
    scores = (query.unflatten(1, (-1, heads)).flatten(2, 3) @ key.mT * scaling).unflatten(2, (heads, -1))
    weights = functional.softmax(scores + mask[:, :, None], dim=-1, dtype=torch.float32).to(query.dtype)
    weights = functional.dropout(weights, dropout, module.training)
    output = (weights.flatten(2, 3) @ value).unflatten(2, (heads, -1)).flatten(1, 2)
    return output.transpose(1, 2).contiguous(), weights.flatten(1, 2)
