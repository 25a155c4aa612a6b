"""A captioner and how it is trained."""

from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from vitcapr.config.training import PhaseConfig, SharedTrainingConfig, TrainedConfig


class Architecture(NamedTuple):
    """What is known of an architecture without its model, which needs torch."""

    attends: bool
    """Whether it weighs the patches word by word: then there is attention to draw, to roll out and to ground."""
    arguments: tuple[str, ...]
    """The keys of :class:`CaptionerConfig` that its model takes."""


ArchitectureName = Literal["baseline", "patch_attention"]

_SIZES = ("embedding_dim", "hidden_dim", "dropout")
ARCHITECTURES: dict[ArchitectureName, Architecture] = {
    "baseline": Architecture(attends=False, arguments=_SIZES),
    "patch_attention": Architecture(
        attends=True,
        arguments=(*_SIZES, "attention_dim", "scoring", "init_from_cls", "output_dim", "output_activation"),
    ),
}
"""Their models are ``CAPTIONERS`` in ``vitcapr.models.captioners``."""


class CaptionerPhaseConfig(PhaseConfig):
    batch_images: int = Field(64, ge=1)
    """Images in a batch; each comes with all its captions, so a batch of 64 holds about 320."""
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    """How the learning rate moves over the phase, from learning_rate down to final_fraction of it."""
    max_length: int = Field(35, ge=3)
    """Longest caption in tokens, start and end included; longer ones are cut."""
    objective: Literal["cross_entropy", "self_critical"] = "cross_entropy"
    """self_critical: raise the CIDEr-D of captions drawn from the captioner; for a late phase with a small rate."""
    samples: int = Field(5, ge=2)
    """Captions drawn for each image; self_critical only."""
    temperature: float = Field(1.0, gt=0)
    """What the logits are divided by before captions are drawn: below 1 they are nearer to what a beam would write;
    self_critical only."""


class CaptionerTrainingConfig(SharedTrainingConfig):
    phases: list[CaptionerPhaseConfig] = Field([CaptionerPhaseConfig(epochs=10)], min_length=1)
    optimizer: Literal["adam", "adamw"] = "adam"
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of each target spread over the vocabulary; cross_entropy only."""
    select_by: Literal["loss", "cider"] = "loss"
    """The best epoch by validation loss, or by CIDEr of greedy captions of the validation split."""

    @model_validator(mode="after")
    def _the_best_epoch_can_be_any(self) -> Self:
        if self.select_by == "loss" and any(phase.objective == "self_critical" for phase in self.phases):
            raise ValueError(
                "with select_by loss no epoch of a self_critical phase would be chosen, because it trades "
                "cross-entropy for CIDEr; select_by must be cider"
            )
        return self


class CaptionerConfig(TrainedConfig):
    backbone: str
    """The name of an entry of backbones."""
    start_from: str | None = None
    """The name of another captioner of the same architecture, from whose weights training starts."""
    architecture: ArchitectureName = "patch_attention"
    embedding_dim: int = Field(256, ge=1)
    word_vectors: str | None = None
    """The name of an entry of word_vectors to start the embedding from; it is trained further."""
    hidden_dim: int = Field(256, ge=1)
    attention_dim: int = Field(256, ge=1)
    scoring: Literal["tanh", "relu", "bilinear"] = "tanh"
    """tanh: equation 2 of the paper; relu: Linear - ReLU - Linear, as its training section has it; bilinear: word times
    patch instead of word plus patch, a fraction of the arithmetic."""
    init_from_cls: bool = False
    """Start the LSTM from the CLS vector instead of from zeros."""
    output_dim: int | None = Field(None, ge=1)
    """Width of a hidden layer between [context, h] and the vocabulary; null projects directly (ViTCap-R on MS COCO)."""
    output_activation: Literal["tanh", "relu"] = "tanh"
    """Of that hidden layer; relu: ViTCap-R on Flickr8k."""
    dropout: float = Field(0.3, ge=0, lt=1)
    training: CaptionerTrainingConfig = CaptionerTrainingConfig()

    @property
    def attends(self) -> bool:
        return ARCHITECTURES[self.architecture].attends

    def arguments(self) -> dict[str, Any]:
        """Those of its model that do not come from the data."""
        return {name: getattr(self, name) for name in ARCHITECTURES[self.architecture].arguments}
