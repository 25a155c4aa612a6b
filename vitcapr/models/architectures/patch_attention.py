"""The captioner whose LSTM attends to the patches (ViTCap-R)."""

from typing import Literal

import torch
from torch import Tensor, nn

from vitcapr.encoders.devices import to_device
from vitcapr.models.architectures.baseline import WordReader
from vitcapr.models.attention_scores import Scoring, patch_scores, prepare_patches, prepared_scores
from vitcapr.models.interface import Captioner, Memory, State, Step
from vitcapr.models.packing import WordsOfImages


class PatchAttentionCaptioner(Captioner):
    """The LSTM's state chooses among the patches (ViTCap-R, section III.D.2, equations 2 to 4).

    Args:
        vocabulary: V, how many words.
        feature_dim: D, the width of the stored patches.
        cls_dim: the width of CLS, if it differs.
        scoring: ``tanh`` is equation 2; ``relu`` is the paper's Linear - ReLU - Linear; ``bilinear`` multiplies what
            the others add.
        init_from_cls: start the LSTM from two linear maps of CLS; otherwise from zeros, as the paper does.
        output_dim: width of a hidden layer before the vocabulary; None for a single Dense (ViTCap-R, III-E.2).
        output_activation: of that layer; ``relu`` with an output_dim is III-E.1.
    """

    attends = True

    def __init__(
        self,
        vocabulary: int,
        feature_dim: int,
        embedding_dim: int,
        hidden_dim: int,
        attention_dim: int,
        scoring: Scoring,
        init_from_cls: bool,
        output_dim: int | None,
        output_activation: Literal["tanh", "relu"],
        dropout: float,
        cls_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.scoring: Scoring = scoring
        self.arrays = ("patches", "cls") if init_from_cls else ("patches",)
        self.reader = WordReader(vocabulary, embedding_dim, hidden_dim, dropout)
        self.dropout = nn.Dropout(dropout)
        self.patch = nn.Linear(feature_dim, hidden_dim)
        self.patch_key = nn.Linear(hidden_dim, attention_dim)
        self.word_key = nn.Linear(hidden_dim, attention_dim, bias=False)
        self.score = nn.Parameter(torch.empty(attention_dim).uniform_(-1, 1) * attention_dim**-0.5)
        self.start = nn.Linear(cls_dim or feature_dim, 2 * hidden_dim) if init_from_cls else None
        self.output = nn.Linear(2 * hidden_dim, output_dim) if output_dim else None
        self.output_activation = torch.relu if output_activation == "relu" else torch.tanh
        self.words = nn.Linear(output_dim or 2 * hidden_dim, vocabulary)

    @property
    def embedding(self) -> nn.Embedding:
        return self.reader.embedding

    def encode(self, features: dict[str, Tensor]) -> Memory:
        values = self.patch(self.dropout(features["patches"]))
        keys, memory = self.patch_key(values).float(), {"values": values.float()}
        if torch.is_grad_enabled():
            memory["keys"] = keys
        else:
            memory["prepared_keys"] = prepare_patches(keys, self.scoring)
        if self.start is not None:
            memory["start"] = torch.tanh(self.start(self.dropout(features["cls"]))).float()
        return memory

    def _start(self, memory: Memory) -> tuple[Tensor, Tensor]:
        """H and c before the first word, (B, H) each."""
        if self.start is not None:
            hidden, cell = memory["start"].chunk(2, dim=-1)
            return hidden, cell
        zeros = memory["values"].new_zeros(len(memory["values"]), self.reader.lstm.hidden_size)
        return zeros, zeros

    def _attend(self, memory: Memory, words: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """words: ``word_key`` of the hidden states, (B, N, A) float32, of which counts: (B,) are real.

        Returns contexts (B, N, H) and weights (B, N, P).
        """
        if "keys" in memory:
            scores = patch_scores(memory["keys"], words, self.score, counts, self.scoring)
        else:
            scores = prepared_scores(memory["prepared_keys"], words, self.score, counts, self.scoring)
        weights = torch.softmax(scores, dim=-1)
        return weights @ memory["values"], weights

    def _predict(self, context: Tensor, hidden: Tensor) -> Tensor:
        joined = self.dropout(torch.cat([context, hidden.to(context.dtype)], dim=-1))
        if self.output is not None:
            joined = self.dropout(self.output_activation(self.output(joined)))
        return self.words(joined).float()  # type: ignore[no-any-return]

    def forward(self, memory: Memory, tokens: Tensor, mask: Tensor, image_index: Tensor) -> Tensor:
        hidden_start, cell_start = self._start(memory)
        of_caption = to_device(image_index, tokens.device)
        words = WordsOfImages.of(mask, image_index, len(memory["values"]), tokens.device)
        hidden = self.reader.read(tokens, words, (hidden_start[of_caption], cell_start[of_caption]))
        context, _ = self._attend(memory, words.side_by_side(self.word_key(hidden).float()), words.counts)
        return self._predict(words.packed(context), hidden)

    def initial_state(self, memory: Memory) -> State:
        hidden, cell = self._start(memory)
        return {"hidden": hidden[:, None], "cell": cell[:, None]}

    def step(self, memory: Memory, state: State, tokens: Tensor) -> Step:
        hidden, cell = self.reader.advance(tokens, state["hidden"], state["cell"])
        counts = torch.full((len(tokens),), tokens.shape[1], device=tokens.device)
        context, weights = self._attend(memory, self.word_key(hidden).float(), counts)
        return Step(self._predict(context, hidden), {"hidden": hidden, "cell": cell}, weights)


CAPTIONER = PatchAttentionCaptioner
