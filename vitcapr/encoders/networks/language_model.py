"""The networks of captioners with a pretrained language model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from vitcapr.encoders.checkpoints import locate, source_name
from vitcapr.encoders.language_models import load_causal
from vitcapr.encoders.tokenizers import digest_with_tokenizer
from vitcapr.errors import UserError
from vitcapr.formats.vocabulary import Vocabulary


def open_network(source: str, revision: str, words: Vocabulary, dtype: torch.dtype) -> tuple[Any, dict[str, Any]]:
    """The network of a language model, reduced to its pieces ``words``, and what a captioner's card says of it.

    Raises:
        UserError: it is not found, or no captioner can be made of it.
    """
    checkpoint = locate(source, revision)
    if not words.rows:
        what, remedy = "the vocabulary has words, not pieces", "give text/pieces/CAPTIONER/vocabulary.json"
        raise UserError(what, where=source, remedy=remedy)
    digest = digest_with_tokenizer(checkpoint.folder)
    card = {"source": source_name(source), "revision": checkpoint.revision, "weights_sha256": digest}
    return load_language_model(checkpoint.folder, words.rows, dtype), card


def load_language_model(folder: Path, rows: Sequence[int], dtype: torch.dtype) -> Any:
    """A causal language model that reads and writes the given rows of its vocabulary only.

    Raises:
        UserError: there is none, or its embedding is more than a table.
    """
    # The other implementations of attention return none; for short captions none is faster.
    model = load_causal(folder, dtype, attention="eager")
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
