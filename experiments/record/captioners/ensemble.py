"""An ensemble of trained captioners of one vocabulary: the weighted mean of their log-probabilities at every word.

The members are copied into the model, so it needs their folders no more. One weight for each member is learned.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from vitcapr.config.base import DATA, UserPath
from vitcapr.config.captioner import CaptionerConfig
from vitcapr.formats.model import CARD, read_card, read_model
from vitcapr.models.interface import Captioner, Memory, State, Step, build_captioner
from vitcapr.training.captioner_task import TrainingImages


class Config(CaptionerConfig):
    architecture: Literal["ensemble"] = "ensemble"
    folders: list[Annotated[UserPath, DATA]] = Field(min_length=2)
    """Folders of the members: captioners trained on the same features and words."""

    def described(self) -> dict[str, Any]:
        parts = [read_card(Path(folder) / CARD)["architecture"] for folder in self.folders]
        return {"folders": self.folders, "parts": parts}


class Ensemble(Captioner):
    arrays, attends = ("patches", "cls"), True

    def __init__(self, *, folders: list[str], parts: list[dict[str, Any]], **_: Any) -> None:
        super().__init__()
        self.folders, self.members = folders, nn.ModuleList(map(build_captioner, parts)).requires_grad_(False)
        self.weights = nn.Parameter(torch.zeros(len(parts)))

    @property
    def embedding(self) -> nn.Embedding:
        return self.members[0].embedding  # type: ignore[return-value, union-attr]

    def train(self, mode: bool = True) -> "Ensemble":
        super().train(mode).members.eval()
        return self

    def begin(self, images: TrainingImages) -> None:  # noqa: ARG002
        for member, folder in zip(self.members, self.folders, strict=True):
            member.load_state_dict(read_model(Path(folder))[0])

    def encode(self, features: dict[str, Tensor]) -> Memory:
        return joined([member.encode(features) for member in self.members])

    def initial_state(self, memory: Memory) -> State:
        return joined([member.initial_state(part(memory, n)) for n, member in enumerate(self.members)])

    def step(self, memory: Memory, state: State, tokens: Tensor) -> Step:
        parts = [part(memory, n) for n in range(len(self.members))]
        steps = [member.step(parts[n], part(state, n), tokens) for n, member in enumerate(self.members)]
        memory.update(joined(parts))
        attention = torch.stack([step.attention for step in steps]).mean(0)
        return Step(self._mixed([step.logits for step in steps]), joined([step.state for step in steps]), attention)

    def forward(self, memory: Memory, *caption: Tensor) -> Tensor:
        return self._mixed([member(part(memory, n), *caption) for n, member in enumerate(self.members)])

    def _mixed(self, logits: list[Tensor]) -> Tensor:
        return (torch.stack([each.log_softmax(-1) for each in logits], -1) * self.weights.softmax(0)).sum(-1)


def joined(parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {f"{number}.{key}": value for number, part in enumerate(parts) for key, value in part.items()}


def part(whole: dict[str, Tensor], number: int) -> dict[str, Tensor]:
    return {key.partition(".")[2]: value for key, value in whole.items() if key.partition(".")[0] == str(number)}


CAPTIONER = Ensemble
