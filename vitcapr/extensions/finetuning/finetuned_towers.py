"""Fine-tuned towers of a dual encoder: a ViT, and text models of the BERT family (Peng 2025, section 2).

The callers make the encoders, which are models of transformers. This module selects the trained layers, pools and
projects the outputs, and gives each caption to the tower of its language.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from vitcapr.encoders.devices import to_device

Pool = Literal["cls", "mean"]


class FinetunedTower(nn.Module):
    """A transformer with trainable upper layers, pooling and a projection.

    Args:
        encoder: a model of transformers that returns ``last_hidden_state (B, T, D)``.
        width: D.
        embedding_dim: E, the output of the projection; None: no projection, and E is D.
        top_layers: number of trained layers, from the top; None: the whole encoder is trained; 0: no layer.
        prefix: number of tokens before the patches, which ``mean`` ignores; only for an image tower.
        pretrained: whether the encoder is pretrained; see :func:`layer_rates`.

    Attributes:
        chunk: inputs that are computed at a time. Activations are discarded and computed again in the backward pass
            (GradCache, Gao et al. 2021), with the same random numbers, so that the gradient is that of the whole batch;
            None computes a batch at once.
    """

    chunk: int | None = None

    def __init__(
        self,
        encoder: nn.Module,
        width: int,
        embedding_dim: int | None,
        pool: Pool,
        top_layers: int | None,
        prefix: int = 0,
        pretrained: bool = True,
    ) -> None:
        super().__init__()
        self.encoder, self._pool, self._prefix = encoder, pool, prefix
        self.embedding_dim = width if embedding_dim is None else embedding_dim
        self.pretrained = pretrained
        self.project: nn.Module = nn.Identity() if embedding_dim is None else nn.Linear(width, embedding_dim)
        self.depths, self.layers = layer_depths(encoder)
        for name, parameter in encoder.named_parameters():
            above = self.layers + 1 - self.depths[name]
            parameter.requires_grad_(top_layers is None or (top_layers > 0 and above <= top_layers))

    def train(self, mode: bool = True) -> "FinetunedTower":
        """Modules without a trained weight stay in evaluation mode, without dropout."""
        super().train(mode)
        for module in self.encoder.modules():
            parameters = list(module.parameters())
            if parameters and not any(parameter.requires_grad for parameter in parameters):
                module.eval()
        return self

    def pooled(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """``hidden: (B, T, D)``, ``mask: (B, T)`` with 1 for real tokens -> (B, E)."""
        if self._pool == "cls":
            vectors = hidden[:, 0]
        elif mask is None:
            vectors = hidden[:, self._prefix :].mean(1)
        else:
            real = mask[..., None].to(hidden.dtype)
            vectors = (hidden * real).sum(1) / real.sum(1)
        return self.project(vectors)  # type: ignore[no-any-return]

    def _in_chunks(self, embed: Callable[..., Tensor], *inputs: Tensor | None) -> Tensor:
        if self.chunk is None:
            return embed(*inputs)
        columns = (repeat(None) if tensor is None else tensor.split(self.chunk) for tensor in inputs)
        return torch.cat([checkpoint(embed, *part, use_reentrant=False) for part in zip(*columns, strict=False)])


class FinetunedImageTower(FinetunedTower):
    """Pixels to (B, E).

    Args:
        options: keyword arguments of the encoder, without the pixels.
    """

    arrays: tuple[str, ...] = ("pixels",)

    def __init__(self, *args: Any, options: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._options = dict(options or {})

    def forward(self, features: Mapping[str, Tensor]) -> Tensor:
        """``pixels: (B, 3, S, S)`` float, normalised."""
        return self._in_chunks(self._embed, features["pixels"])

    def _embed(self, pixels: Tensor) -> Tensor:
        return self.pooled(self.encoder(pixels, **self._options).last_hidden_state)


class FinetunedTextTower(FinetunedTower):
    """Tokens, (M, T) int64 -> (M, E).

    Args:
        tags: number of parts of speech; their embedding is initialised with zeros and added to that of the tokens.
        segments: whether the encoder reads token types.
        title_weight: factor on the attention to the tokens of titles, before the softmax.
    """

    def __init__(
        self, *args: Any, tags: int = 0, segments: bool = False, title_weight: float = 1.0, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._segments, self._title_weight = segments, title_weight
        self.tags: nn.Embedding | None = None
        if tags:
            self.tags = nn.Embedding(tags, self._words.weight.shape[1])
            nn.init.zeros_(self.tags.weight)

    @property
    def _words(self) -> Any:
        encoder: Any = self.encoder
        return encoder.get_input_embeddings()

    def forward(
        self,
        ids: Tensor,
        mask: Tensor,
        tags: Tensor | None = None,
        types: Tensor | None = None,
        titles: Tensor | None = None,
    ) -> Tensor:
        """Encode token ids (M, T).

        ``mask: (M, T)``, 1 for real tokens; ``tags: (M, T)`` int64, for a tower with tags; ``types: (M, T)`` int64, for
        a tower with segments; ``titles: (M, T)``, 1 for the tokens of titles.
        """
        return self._in_chunks(self._embed, ids, mask, tags, types, titles)

    def _embed(
        self, ids: Tensor, mask: Tensor, tags: Tensor | None, types: Tensor | None, titles: Tensor | None
    ) -> Tensor:
        given = {"token_type_ids": types} if self._segments else {}
        if self.tags is None:
            given["input_ids"] = ids
        else:
            given["inputs_embeds"] = self._words(ids) + self.tags(tags)
        hidden = self.encoder(attention_mask=self._attention_mask(mask, titles), **given).last_hidden_state
        return self.pooled(hidden, mask)

    def _attention_mask(self, mask: Tensor, titles: Tensor | None) -> Tensor:
        """Return the mask (M, T); if titles have a weight, the bias of the attention scores, (M, 1, T, T)."""
        if self._title_weight == 1 or titles is None:
            return mask
        bias = titles * math.log(self._title_weight)
        bias = bias.masked_fill(mask == 0, torch.finfo(bias.dtype).min)
        return bias[:, None, None, :].expand(-1, -1, mask.shape[1], -1)


class TowerTokens(NamedTuple):
    """The captions of a batch that one tower reads.

    Attributes:
        at: (m,) int64, the places of the captions in the batch.
        inputs: the arguments of the text tower, each (m, T) int64: ``ids``, padded; ``mask``, 1 at real tokens;
            ``types``, 1 in the second segment of a caption; and, where there are any, ``titles``, 1 for the tokens of
            titles and of title marks, and ``tags``, the part of speech of each token's word, 0 for no word.
    """

    tower: str
    at: Tensor
    inputs: dict[str, Tensor]


class TowerBatch(list[TowerTokens]):
    """The captions of a batch, by tower."""

    def to(self, device: torch.device) -> "TowerBatch":
        """Return the batch on a device."""
        return TowerBatch(
            TowerTokens(
                part.tower,
                to_device(part.at, device),
                {name: to_device(tensor, device) for name, tensor in part.inputs.items()},
            )
            for part in self
        )


class LanguageTowers(nn.ModuleDict):
    """Text towers by name: the captions of a batch, each by the tower of its language -> (M, E)."""

    reads: Literal["own"] = "own"

    def forward(self, captions: Sequence[TowerTokens]) -> Tensor:
        order = torch.cat([part.at for part in captions]).argsort()
        return torch.cat([self[part.tower](**part.inputs) for part in captions])[order]


def finetuned_towers(model: nn.Module) -> list[FinetunedTower]:
    """Return the towers of a dual encoder that are fine-tuned."""
    return [module for module in model.modules() if isinstance(module, FinetunedTower)]


def layer_rates(model: nn.Module, decay: float, encoder_rate: float = 1.0) -> list[tuple[list[nn.Parameter], float]]:
    """Return the trained weights in groups of equal learning rate, each with the factor on the learning rate.

    Projections, tags, temperature and encoders that are not pretrained have the full rate. In a pretrained encoder, the
    weights above the layers have ``encoder_rate``. Each layer has ``decay`` times the rate of the part above it (Clark
    et al. 2020, ELECTRA, appendix A; Bao et al. 2022, BEiT).
    """
    groups: dict[float, list[nn.Parameter]] = {}
    inside: set[int] = set()
    for tower in finetuned_towers(model):
        for name, parameter in tower.encoder.named_parameters():
            inside.add(id(parameter))
            if parameter.requires_grad:
                above = tower.layers + 1 - tower.depths[name]
                rate = encoder_rate * decay**above if tower.pretrained else 1.0
                groups.setdefault(rate, []).append(parameter)
    outside = [p for p in model.parameters() if id(p) not in inside and p.requires_grad]
    if outside:
        groups.setdefault(1.0, []).extend(outside)
    return [(groups[scale], scale) for scale in sorted(groups, reverse=True)]


def layer_depths(encoder: nn.Module) -> tuple[dict[str, int], int]:
    """Return the depth of each weight of a transformer, and its number of layers L.

    The depth is 0 before the layers, 1 to L in the layers, and L + 1 after them. The layers are the longest list of
    modules.

    Raises:
        ValueError: the model has no list of layers.
    """
    lists = [(name, module) for name, module in encoder.named_modules() if isinstance(module, nn.ModuleList)]
    if not lists:
        raise ValueError("the model has no list of layers")
    prefix, layers = max(lists, key=lambda item: len(item[1]))
    depths: dict[str, int] = {}
    seen = False
    for name, _ in encoder.named_parameters():
        if name.startswith(f"{prefix}."):
            seen = True
            depths[name] = 1 + int(name.removeprefix(f"{prefix}.").partition(".")[0])
        else:
            depths[name] = len(layers) + 1 if seen else 0
    return depths, len(layers)
