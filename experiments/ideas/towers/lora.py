"""A sentence encoder with low-rank adapters (Hu et al. 2022, LoRA) as the text tower, over stored image features."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import torch
from peft import LoraConfig, get_peft_model
from pydantic import Field
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer

from vitcapr.config.base import CHECKPOINT, UserPath
from vitcapr.config.dual_encoder import TextTowerPart
from vitcapr.encoders.checkpoints import locate


class Lora(TextTowerPart):
    kind: Literal["lora"] = "lora"
    source: Annotated[UserPath, CHECKPOINT]
    rank: int = Field(8, ge=1)
    pieces: int = Field(6, ge=1)
    """Most pieces of a word."""
    network: dict[str, Any] = Field({})  # config.json, which the card of a model keeps

    def described(self) -> dict[str, Any]:
        folder = locate(self.source, "main").folder
        return super().described() | {"network": AutoConfig.from_pretrained(folder).to_dict()}

    def build(self, vocabulary: int, embedding_dim: int) -> nn.Module:
        return Tower(self, vocabulary, embedding_dim)


class Tower(nn.Module):
    def __init__(self, settings: Lora, vocabulary: int, embedding_dim: int) -> None:
        super().__init__()
        self.source = settings.source
        self.adapters = LoraConfig(r=settings.rank, lora_alpha=2 * settings.rank, target_modules=["query", "value"])
        network = AutoModel.from_config(AutoConfig.for_model(**settings.network))
        self.network = get_peft_model(network, self.adapters)
        self.project = nn.Linear(network.config.hidden_size, embedding_dim)
        self.register_buffer("pieces", torch.zeros(vocabulary, settings.pieces, dtype=torch.int64))

    def begin(self, words: Sequence[str]) -> None:
        folder = locate(self.source, "main").folder
        self.network = get_peft_model(AutoModel.from_pretrained(folder), self.adapters)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        signs = {"<pad>": "", "<start>": tokenizer.cls_token, "<end>": tokenizer.sep_token}
        for row, word in zip(self.pieces, words, strict=True):
            ids = tokenizer(signs.get(word, word), add_special_tokens=False)["input_ids"][: len(row)]
            row[: len(ids)] = torch.tensor(ids, dtype=torch.int64)

    def forward(self, tokens: Tensor) -> Tensor:
        ids = self.pieces[tokens].flatten(1)
        ids = ids.gather(1, (ids == 0).int().argsort(dim=1, stable=True))[:, : max(1, int((ids != 0).sum(1).max()))]
        mask = (ids != 0).float()
        hidden = self.network(input_ids=ids, attention_mask=mask).last_hidden_state
        return self.project((hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1))


TOWER = Lora
