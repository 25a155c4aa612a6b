"""The captioner that adds the CLS vector to the state of its LSTM (ViTCap-R).

The image does not feed the LSTM, so that all time steps of all captions of an image are computed at once in training;
one word at a time is the same arithmetic (``vitcapr.models.interface``).
"""

import torch
from torch import Tensor, nn

from vitcapr.models.interface import Captioner, Memory, State, Step
from vitcapr.models.packing import WordsOfImages, lstm_states


class WordReader(nn.Module):
    """Embedding, dropout and a single-layer LSTM over the words so far."""

    def __init__(self, vocabulary: int, embedding_dim: int, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding_dim, padding_idx=0)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim, batch_first=True)

    def read(self, tokens: Tensor, words: WordsOfImages, start: tuple[Tensor, Tensor]) -> Tensor:
        """Whole captions. tokens: (M, T); start: h and c, (M, H) each. Returns (W, H), packed."""
        return words.pack(lstm_states(self.lstm, self.dropout(self.embedding(tokens)), start))

    def advance(self, tokens: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """Read one word of each hypothesis.

        tokens: (B, K); hidden, cell: (B, K, H). Returns the next hidden and cell.
        """
        input_weight, recurrent_weight, input_bias, recurrent_bias = self.lstm.all_weights[0]
        words = self.dropout(self.embedding(tokens))
        gates = nn.functional.linear(words, input_weight, input_bias + recurrent_bias)
        gates = (gates + nn.functional.linear(hidden, recurrent_weight)).float()
        input_gate, forget, candidate, output_gate = gates.chunk(4, dim=-1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(input_gate) * torch.tanh(candidate)
        return torch.sigmoid(output_gate) * torch.tanh(cell), cell


class BaselineCaptioner(Captioner):
    """CLS and words meet in a sum (ViTCap-R, section III.D.1).

    CLS -> dropout -> Dense; words -> Embedding -> dropout -> LSTM; added; Dense ReLU; softmax over the vocabulary.
    """

    arrays = ("cls",)
    attends = False

    def __init__(self, vocabulary: int, feature_dim: int, embedding_dim: int, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.reader = WordReader(vocabulary, embedding_dim, hidden_dim, dropout)
        self.dropout = nn.Dropout(dropout)
        self.image = nn.Linear(feature_dim, hidden_dim)
        self.merged = nn.Linear(hidden_dim, hidden_dim)
        self.words = nn.Linear(hidden_dim, vocabulary)

    @property
    def embedding(self) -> nn.Embedding:
        return self.reader.embedding

    def encode(self, features: dict[str, Tensor]) -> Memory:
        return {"image": torch.relu(self.image(self.dropout(features["cls"]))).float()}

    def _predict(self, image: Tensor, hidden: Tensor) -> Tensor:
        return self.words(torch.relu(self.merged(self.dropout(image + hidden)))).float()  # type: ignore[no-any-return]

    def forward(self, memory: Memory, tokens: Tensor, mask: Tensor, image_index: Tensor) -> Tensor:
        words = WordsOfImages.of(mask, image_index, len(memory["image"]), tokens.device)
        zeros = memory["image"].new_zeros(len(tokens), self.reader.lstm.hidden_size)
        hidden = self.reader.read(tokens, words, (zeros, zeros))
        return self._predict(memory["image"][words.image], hidden)

    def initial_state(self, memory: Memory) -> State:
        zeros = memory["image"].new_zeros(len(memory["image"]), 1, self.reader.lstm.hidden_size)
        return {"hidden": zeros, "cell": zeros}

    def step(self, memory: Memory, state: State, tokens: Tensor) -> Step:
        hidden, cell = self.reader.advance(tokens, state["hidden"], state["cell"])
        return Step(self._predict(memory["image"][:, None], hidden), {"hidden": hidden, "cell": cell}, None)


CAPTIONER = BaselineCaptioner
