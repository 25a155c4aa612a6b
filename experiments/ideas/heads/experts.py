"""A mixture of experts: a gate weighs the outputs of several perceptrons (Jacobs et al. 1991; Shazeer et al. 2017)."""

import torch
from pydantic import Field
from torch import Tensor, nn

from vitcapr.config.parts import Head


class Mixture(nn.Module):
    def __init__(self, features: int, embedding_dim: int, hidden_dim: int, experts: int, dropout: float) -> None:
        super().__init__()
        self.norm, self.gate = nn.LayerNorm(features), nn.Linear(features, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(
                nn.Dropout(dropout),
                nn.Linear(features, hidden_dim),
                nn.GELU(),
                nn.Dropout(dropout),
                nn.Linear(hidden_dim, embedding_dim),
            )
            for _ in range(experts)
        )

    def forward(self, features: Tensor) -> Tensor:
        features = self.norm(features)
        outputs = torch.stack([expert(features) for expert in self.experts], dim=1)
        return (self.gate(features).softmax(1)[..., None] * outputs).sum(1)


class Experts(Head):
    experts: int = Field(4, ge=1)
    hidden_dim: int = Field(256, ge=1)

    def build(self, features: int, embedding_dim: int, dropout: float) -> nn.Module:
        return Mixture(features, embedding_dim, self.hidden_dim, self.experts, dropout)


HEAD = Experts
