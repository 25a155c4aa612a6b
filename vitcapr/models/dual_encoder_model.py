"""The dual encoder: images and captions as vectors of length 1 in one space (ViTCap-R, III.D.3)."""

import math
from collections.abc import Sequence
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn

from vitcapr.models.towers import ImageTower, Reads, build_text_tower


class OwnTexts(Protocol):
    """M captions in a form of the text tower's own."""

    def to(self, device: torch.device) -> Self: ...


TextBatch = Tensor | tuple[Tensor, Tensor] | OwnTexts
"""The input of a text tower: token ids, (M, T) int64, padded with 0, with start and end; or features, (M, D) float32;
or both, features first; or the captions of a tower with an input of its own."""

_LARGEST_LOG_SCALE = math.log(100)


class DualEncoder(nn.Module):
    """Two towers with outputs of length 1.

    Args:
        embedding_dim: E, the dimension of the outputs of both towers.
        image: from the arrays of a store with the names ``image.arrays`` to (B, E).
        text: from captions in the form ``text.reads`` to (M, E).
        temperature: divisor of the similarities in the loss; if learned, its initial value.
        learn_temperature: learn its logarithm; it stays between 0.01 and 1, as in CLIP (Radford et al. 2021, 2.5).
        bias: initial value of the learned bias of the sigmoid loss (Zhai et al. 2023); None: the loss has no bias.

    Attributes:
        image_arrays: the arrays of a store that the image tower reads.
        reads: the form of captions that the text tower reads.
    """

    log_scale: Tensor

    def __init__(
        self,
        embedding_dim: int,
        image: Any,
        text: Any,
        temperature: float,
        learn_temperature: bool,
        bias: float | None = None,
    ) -> None:
        super().__init__()
        self.embedding_dim = embedding_dim
        log_scale = torch.tensor(-math.log(temperature))
        if learn_temperature:
            self.log_scale = nn.Parameter(log_scale)
        else:
            self.register_buffer("log_scale", log_scale)
        self.image, self.text = image, text
        self.image_arrays: tuple[str, ...] = image.arrays
        self.reads: Reads = text.reads
        self.bias = None if bias is None else nn.Parameter(torch.tensor(bias))

    def temperature(self) -> Tensor:
        """Return a scalar. A learned one is first clamped to its bounds, because no gradient would return it."""
        if isinstance(self.log_scale, nn.Parameter):
            with torch.no_grad():
                self.log_scale.clamp_(0.0, _LARGEST_LOG_SCALE)
        return torch.exp(-self.log_scale)

    @property
    def members(self) -> Sequence["DualEncoder"]:
        """The dual encoders that it consists of: itself."""
        return [self]

    def embed_images(self, features: dict[str, Tensor]) -> Tensor:
        """``cls: (B, D)`` and ``patches: (B, P, D)``, or ``pixels: (B, 3, S, S)``: those of ``image_arrays``.

        Returns (B, E) float32, unit length.
        """
        return on_sphere(self.image(features))

    def embed_augmented_views(self, augmented_views: Sequence[dict[str, Tensor]]) -> Tensor:
        """Return the mean direction over views of the same images, each embedded by :meth:`embed_images`: (B, E)."""
        first, *others = (self.embed_images(features) for features in augmented_views)
        return on_sphere(torch.stack([first, *others]).mean(0)) if others else first

    def embed_texts(self, texts: TextBatch) -> Tensor:
        """Embed texts: (M, E) float32, unit length."""
        return on_sphere(self.text(texts))


class DualEncoderEnsemble(nn.Module):
    """Dual encoders of one architecture with different weights. The cosine of a pair is the mean of theirs.

    Args:
        members: at least one. A member has its own loss and its own temperature.
    """

    def __init__(self, members: Sequence[DualEncoder]) -> None:
        super().__init__()
        self.towers = nn.ModuleList(members)
        self.embedding_dim = sum(member.embedding_dim for member in members)
        self.image_arrays, self.reads = members[0].image_arrays, members[0].reads

    @property
    def members(self) -> Sequence[DualEncoder]:
        return list(self.towers)  # type: ignore[arg-type]

    def embed_augmented_views(self, augmented_views: Sequence[dict[str, Tensor]]) -> Tensor:
        """Embed views as :class:`DualEncoder` does; E is the sum over the members."""
        return side_by_side([member.embed_augmented_views(augmented_views) for member in self.members])

    def embed_texts(self, texts: TextBatch) -> Tensor:
        """Embed texts as :class:`DualEncoder` does; E is the sum over the members."""
        return side_by_side([member.embed_texts(texts) for member in self.members])


DualEncoders = DualEncoder | DualEncoderEnsemble
"""One, or an ensemble."""


def side_by_side(vectors: Sequence[Tensor]) -> Tensor:
    """Concatenate unit vectors (N, E) of the members to unit vectors whose cosines are the members' mean."""
    joined: Tensor = torch.cat([*vectors], dim=1) * len(vectors) ** -0.5
    return joined


def on_sphere(vectors: Tensor) -> Tensor:
    """Return the vectors divided by their length, in float32: in bfloat16, similarities differ in the third decimal."""
    return nn.functional.normalize(vectors.float(), dim=-1)


def build_dual_encoder(architecture: dict[str, Any]) -> DualEncoders:
    """Return the untrained dual encoder that a card's ``architecture`` describes.

    With the key ``members``, it is an ensemble of that many.

    Its other keys: ``embedding_dim``, ``temperature``, ``learn_temperature``, ``bias`` where a sigmoid loss learns one,
    ``image`` (the arguments of :class:`ImageTower`) and ``text`` (``kind``, ``words``, ``bag``, ``features``,
    ``features_and_words`` or the name of a tower, and the arguments of its class).
    """
    members = [_build_one(architecture) for _ in range(architecture.get("members", 1))]
    return members[0] if len(members) == 1 else DualEncoderEnsemble(members)


def _build_one(architecture: dict[str, Any]) -> DualEncoder:
    embedding_dim = architecture["embedding_dim"]
    return DualEncoder(
        embedding_dim,
        ImageTower(embedding_dim=embedding_dim, **architecture["image"]),
        build_text_tower(architecture["text"], embedding_dim),
        architecture["temperature"],
        architecture["learn_temperature"],
        architecture.get("bias"),
    )
