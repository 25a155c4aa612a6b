"""A pretrained language model that reads an image as a prefix (ClipCap, Mokady et al. 2021; LLaVA, Liu et al. 2023)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache, DynamicLayer

from vitcapr.errors import UserError
from vitcapr.models.interface import Captioner, Memory, State, Step
from vitcapr.models.packing import WordsOfImages
from vitcapr.training.captioner_task import TrainingImages

_RANK = 16
"""Rank of the low-rank adapters."""
_SAMPLE = 2_000
"""Images from which a projector starts."""


class LanguageModelCaptioner(Captioner):
    """CLS and patches, each through a projector, then the pieces of the caption.

    The captions of an image, or its hypotheses, stand side by side behind one prefix. A mask hides each from the
    others, and the positions of each begin after the prefix. The attention of a piece is the mean of all layers and
    heads, without CLS and the pieces.

    Args:
        network: a causal language model of transformers with eager attention. Its embedding has a row for each of the
            ``vocabulary`` pieces.
        feature_dim: D, the width of the stored patches; without patches, of CLS.
        cls_dim: the width of CLS, if it differs; a linear layer then brings CLS to the width of the patches.
        prefix: ``grid``, the side of the grid to which the patches are pooled; None for all patches,
            0 for none, CLS alone.
    """

    def __init__(
        self,
        vocabulary: int,
        feature_dim: int,
        network: Any,
        prefix: Mapping[str, int | None],
        train: Literal["projector", "lora", "all"],
        cls_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.network, self.grid = network, prefix["grid"]
        self.attends = self.grid != 0
        self.arrays = ("patches", "cls") if self.attends else ("cls",)
        assert len(self.embedding.weight) == vocabulary
        if self._mixes_captions():
            what = f"a {network.config.model_type} does not take a mask over several captions behind one prefix"
            raise UserError(what, remedy="use a language model like Llama, Qwen or GPT-2")
        network.requires_grad_(train == "all")
        if train == "lora":
            _add_adapters(network)
        width = self.embedding.embedding_dim
        first, last = nn.Linear(feature_dim, width), nn.Linear(width, width)
        # The prefix begins as large as the words that the language model knows.
        nn.init.normal_(last.weight, std=float(self.embedding.weight.detach().float().std()) * last.in_features**-0.5)
        nn.init.zeros_(last.bias)
        self.projector = nn.Sequential(nn.LayerNorm(feature_dim), first, nn.GELU(), last)
        self.cls_map = nn.Linear(cls_dim, feature_dim) if cls_dim else None

    @property
    def embedding(self) -> nn.Embedding:
        return self.network.get_input_embeddings()  # type: ignore[no-any-return]

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """Return the weights that are trained."""
        trained = {name for name, weight in self.named_parameters() if weight.requires_grad}
        return {name: value for name, value in super().state_dict(*args, **kwargs).items() if name in trained}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load the weights that are trained; the others stay."""
        if strict and (odd := sorted(state_dict.keys() ^ self.state_dict().keys())):
            raise RuntimeError(f"{len(odd)} weights are missing or of another captioner, '{odd[0]}' among them")
        return super().load_state_dict(state_dict, strict=False, assign=assign)

    def encode(self, features: dict[str, Tensor]) -> Memory:
        """Return the memory of B images: ``prefix`` (B, P, H), and ``shares`` of pooled patches.

        ``shares`` are those of the patches in the means of the grid. The first step adds ``states``, the keys and
        values of the prefix: (B, L, 2, A, P, H / A).
        """
        memory, (vectors, shares) = Memory(), self._vectors(features)
        if shares is not None:
            memory["shares"] = shares.expand(len(vectors), -1, -1)
        memory["prefix"] = self.projector(vectors).to(self.embedding.weight.dtype)
        return memory

    def _vectors(self, features: dict[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        """(B, P, D), what the projector reads, and the shares of the patches in the means of the grid."""
        cls = (features["cls"] if self.cls_map is None else self.cls_map(features["cls"]))[:, None]
        if not self.attends:
            return cls, None
        patches = features["patches"]
        shares = _pooling(patches, self.grid) if self.grid else None
        return torch.cat([cls, patches if shares is None else shares @ patches], dim=1), shares

    def begin(self, images: TrainingImages) -> None:
        """Start the projector from a sample of the training images."""
        some = np.sort(np.random.default_rng(images.seed).permutation(images.rows)[:_SAMPLE])
        self.start_projector(image_words(images, some, self.arrays, len(self.embedding.weight)))

    @torch.no_grad()
    def start_projector(self, images: Iterable[tuple[dict[str, Tensor], Tensor]]) -> None:
        """Let each vector of a prefix begin near the words that are said of the image.

        The last layer of the projector becomes the ridge regression onto the mean embedding of these words, enlarged so
        that its output is as large as the embeddings.

        Args:
            images: of some images the features, and the weights (B, V) of the pieces, which sum to 1.
        """
        embedding, last = self.embedding.weight.float(), cast("nn.Linear", self.projector[-1])
        inputs, count = last.in_features, 0
        sums = torch.zeros(inputs + last.out_features, dtype=torch.float64)
        products = torch.zeros(inputs, len(sums), dtype=torch.float64)
        for features, weights in images:
            read = self.projector[:-1](self._vectors(features)[0])
            words = (weights @ embedding)[:, None].expand(-1, read.shape[1], -1)
            both = torch.cat([read, words], dim=-1).flatten(0, 1).double()
            count += len(both)
            sums += both.sum(0)
            products += both[:, :inputs].T @ both
        means = sums / count
        covariances = products / count - means[:inputs, None] * means
        own, with_words = covariances[:, :inputs], covariances[:, inputs:]
        slope = torch.linalg.solve(own + own.diagonal().mean() * torch.eye(inputs), with_words)
        slope *= embedding.std() / (slope * (own @ slope)).sum(0).mean().sqrt()
        last.weight.copy_(slope.T)
        last.bias.copy_(means[inputs:] - means[:inputs] @ slope)

    def forward(self, memory: Memory, tokens: Tensor, mask: Tensor, image_index: Tensor) -> Tensor:
        images, prefix = memory["prefix"].shape[:2]
        words = WordsOfImages.of(mask, image_index, images, tokens.device)
        numbers = torch.stack([words.pack(tokens), words.caption + 1, words.step + prefix], dim=-1)
        pieces, caption, place = words.side_by_side(numbers).unbind(-1)
        before = torch.arange(prefix, device=tokens.device).expand(images, -1)
        owner = torch.cat([torch.zeros_like(before), caption], dim=1)
        logits = self._read(
            torch.cat([memory["prefix"], self.embedding(pieces)], dim=1),
            _sees(owner, owner).tril(),
            torch.cat([before, place], dim=1),
            logits_to_keep=words.most,
        ).logits
        return words.packed(logits).float()

    def initial_state(self, memory: Memory) -> State:  # noqa: ARG002
        """Empty. After a step: ``states``, the keys and values of the pieces so far: (B, K, L, 2, A, T, H / A)."""
        return {}

    def step(self, memory: Memory, state: State, tokens: Tensor) -> Step:
        """Predict the next piece; the first step also reads the prefix.

        The hypotheses share the states of the prefix, so that a beam copies those of the pieces alone.
        """
        images, hypotheses = tokens.shape
        prefix = memory["prefix"].shape[1]
        before = state["states"].shape[-2] if state else 0
        read, own = self.embedding(tokens), torch.arange(1, hypotheses + 1, device=tokens.device)
        owner = torch.cat([own.new_zeros(prefix), own.repeat_interleave(before), own])
        places = torch.cat([torch.arange(prefix, device=tokens.device), torch.full_like(own, prefix + before)])
        cache, new = _cache(memory, state), hypotheses
        if not state:
            read, new = torch.cat([memory["prefix"], read], dim=1), prefix + hypotheses
        output = self._read(
            read,
            _sees(owner[None, -new:], owner[None]).tril(len(owner) - new).expand(images, -1, -1),
            places[-new:].expand(images, -1),
            past_key_values=cache,
            logits_to_keep=hypotheses,
            output_attentions=self.attends,
        )
        newest = torch.stack([states for layer in cache.layers for states in (layer.keys, layer.values)], 1)
        newest = newest.unflatten(1, (-1, 2))  # (B, L, 2, A, new, H / A)
        if not state:
            memory["states"], newest = newest[..., :prefix, :], newest[..., prefix:, :]
        grown = newest.movedim(-2, 1)[..., None, :]
        if state:
            grown = torch.cat([state["states"], grown], dim=-2)
        attention = self._attention(memory, output.attentions, hypotheses) if self.attends else None
        return Step(output.logits.float(), {"states": grown}, attention)

    def _attention(self, memory: Memory, layers: Sequence[Tensor], hypotheses: int) -> Tensor:
        """(B, K, P), over the patches. layers: (B, A, Q, S), whose last K queries are the hypotheses."""
        patches = slice(1, memory["prefix"].shape[1])
        # In float64, which autocast does not round.
        weights = torch.stack([layer[:, :, -hypotheses:, patches].mean(1) for layer in layers]).mean(0).double()
        attention = weights / weights.sum(-1, keepdim=True)
        return (attention @ memory["shares"].double() if "shares" in memory else attention).float()

    def _read(self, read: Tensor, sees: Tensor, places: Tensor, **options: Any) -> Any:
        """sees: (B, Q, S) bool."""
        hidden = torch.zeros(sees.shape, dtype=read.dtype, device=read.device)
        mask = hidden.masked_fill(~sees, torch.finfo(read.dtype).min)[:, None]
        options["use_cache"] = "past_key_values" in options
        return self.network(inputs_embeds=read, attention_mask=mask, position_ids=places, **options)

    @torch.no_grad()
    def _mixes_captions(self) -> bool:
        """Return whether a caption is read differently after another one in the same sequence.

        This holds for a network with a state in place of attention, and for positions that come from the sequence.
        """
        tokens = torch.arange(3).expand(2, -1)
        try:
            memory = {"prefix": self.embedding(tokens[:1])}
            first, second = self(memory, tokens, tokens >= 0, torch.zeros(2, dtype=torch.int64)).chunk(2)
        except (TypeError, ValueError, RuntimeError):  # It takes no such mask or positions.
            return True
        return bool((first - second).abs().max() > 0.02 * first.abs().max())


def image_words(
    images: TrainingImages, rows: np.ndarray, arrays: Sequence[str], pieces: int
) -> Iterator[tuple[dict[str, Tensor], Tensor]]:
    """Blocks of images: their features, and the tf-idf (B, V) of the pieces of their captions, with a sum of 1.

    Args:
        rows: of the images, in increasing order.
        pieces: V.
    """
    counts, tokens = np.zeros((len(rows), pieces), np.float32), images.tokens
    owner, ids = np.repeat(tokens.image_row, tokens.lengths), tokens.ids
    known = np.isin(owner, rows)
    np.add.at(counts, (np.searchsorted(rows, owner[known]), ids[known]), 1)
    counts *= np.log(len(rows) / np.maximum(1, (counts > 0).sum(0)))
    counts /= np.maximum(counts.sum(1, keepdims=True), 1e-9)
    first = 0
    for features in images.blocks(arrays, rows):
        number = len(next(iter(features.values())))
        yield features, torch.from_numpy(counts[first : first + number])
        first += number


def _add_adapters(network: nn.Module) -> None:
    """Low-rank adapters of every linear layer but the output, scaled by 2, in float32."""
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        remedy = "pip install 'vitcapr[language-model]', or train the projector alone"
        raise UserError("low-rank adapters need the library peft", remedy=remedy) from error
    config = LoraConfig(r=_RANK, lora_alpha=2 * _RANK, target_modules="all-linear")
    inject_adapter_in_model(config, network)
    for weight in (each for each in network.parameters() if each.requires_grad):
        weight.data = weight.data.float()


def _sees(queries: Tensor, keys: Tensor) -> Tensor:
    """(B, Q, S) bool: a caption sees itself and the prefix, 0. queries: (B, Q), keys: (B, S): the caption of each."""
    return (keys[:, None] == 0) | (queries[:, :, None] == keys[:, None])


class _NewStates(DynamicLayer):
    """The keys and values of the new tokens of a layer. Those ``before``, (B, 2, A, T, H / A) each, are copied once."""

    def __init__(self, *before: Tensor) -> None:
        super().__init__()
        self.before = before

    def update(self, keys: Tensor, values: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        self.keys, self.values, self.is_initialized = keys, values, True
        every_key = torch.cat([*(states[:, 0] for states in self.before), keys], dim=-2)
        return every_key, torch.cat([*(states[:, 1] for states in self.before), values], dim=-2)


def _cache(memory: Memory, state: State) -> Cache:
    """Return transformers' cache after the prefix and the pieces of all hypotheses of an image.

    It is empty before both.
    """
    if not state:
        return Cache(layer_class_to_replicate=_NewStates)
    pieces = state["states"].movedim(1, -3).flatten(-3, -2)
    return Cache([_NewStates(*layer) for layer in zip(memory["states"].unbind(1), pieces.unbind(1), strict=True)])


def _pooling(patches: Tensor, grid: int) -> Tensor:
    """(grid * grid, P): the share of each patch of (B, P, D) in each mean."""
    side = round(patches.shape[1] ** 0.5)
    if side * side != patches.shape[1] or grid > side:
        what = f"prefix.grid: {grid} is to pool a larger square, but an image has {patches.shape[1]} patches"
        raise UserError(what, remedy="lower it, or set it to null")
    each = torch.eye(side * side, device=patches.device).view(-1, side, side)
    return nn.functional.adaptive_avg_pool2d(each, grid).flatten(1).T
