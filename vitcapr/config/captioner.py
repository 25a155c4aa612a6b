"""A captioner and how it is trained."""

from typing import Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Section


class PhaseConfig(Section):
    """A stretch of training with settings of its own; the weights and the optimiser's state carry over."""

    epochs: int = Field(ge=1)
    batch_images: int = Field(64, ge=1)
    """Images in a batch; each comes with all its captions, so a batch of 64 holds about 320."""
    learning_rate: float = Field(1e-3, gt=0)
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    """How the learning rate moves over the phase, from learning_rate down to final_fraction of it."""
    final_fraction: float = Field(0.0, ge=0, le=1)
    warmup_steps: int = Field(0, ge=0)
    max_length: int = Field(35, ge=3)
    """Longest caption in tokens, start and end included; longer ones are cut."""
    objective: Literal["cross_entropy", "self_critical"] = "cross_entropy"
    """self_critical: raise the CIDEr-D of captions drawn from the captioner; for a late phase with a small rate."""
    samples: int = Field(5, ge=2)
    """Captions drawn for each image; self_critical only."""
    temperature: float = Field(1.0, gt=0)
    """What the logits are divided by before captions are drawn: below 1 they are nearer to what a beam would write;
    self_critical only."""


class TrainingConfig(Section):
    phases: list[PhaseConfig] = Field([PhaseConfig(epochs=10)], min_length=1)
    optimizer: Literal["adam", "adamw"] = "adam"
    weight_decay: float = Field(0.0, ge=0)
    clip_norm: float | None = Field(5.0, gt=0)
    """Largest norm of the gradient; None leaves it as it is."""
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of each target spread over the vocabulary; cross_entropy only."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Arithmetic of the matrix products; auto: bfloat16 where the hardware has it. Weights stay float32."""
    ema_decay: float = Field(0.0, ge=0, lt=1)
    """Decay of the moving average of the weights that is validated and kept; 0 keeps the weights themselves."""
    patience: int | None = Field(None, ge=1)
    """Stop after so many epochs without a better validation score; None never stops early."""
    select_by: Literal["loss", "cider"] = "loss"
    """The best epoch by validation loss, or by CIDEr of greedy captions of the validation split."""
    save_every_steps: int = Field(200, ge=1)
    """How often the state from which training continues is written."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    processes: int = Field(1, ge=1)
    """Processes that share every batch, under torchrun; on GPUs one each. Nothing is re-run for it, as for device."""

    @model_validator(mode="after")
    def _the_best_epoch_can_be_any(self) -> Self:
        if self.select_by == "loss" and any(phase.objective == "self_critical" for phase in self.phases):
            raise ValueError(
                "with select_by loss no epoch of a self_critical phase would be chosen, because it trades "
                "cross-entropy for CIDEr; select_by must be cider"
            )
        return self


class CaptionerConfig(Section):
    backbone: str
    """The name of an entry of backbones."""
    seed: int | None = Field(None, ge=0)
    """Of its first weights and of its training; None takes the experiment's."""
    start_from: str | None = None
    """The name of another captioner of the same architecture, from whose weights training starts."""
    architecture: Literal["baseline", "patch_attention"] = "patch_attention"
    embedding_dim: int = Field(256, ge=1)
    word_vectors: str | None = None
    """The name of an entry of word_vectors to start the embedding from; it is trained further."""
    hidden_dim: int = Field(256, ge=1)
    attention_dim: int = Field(256, ge=1)
    scoring: Literal["tanh", "relu"] = "tanh"
    """tanh: equation 2 of the paper; relu: Linear - ReLU - Linear, as its training section has it."""
    init_from_cls: bool = False
    """Start the LSTM from the CLS vector instead of from zeros."""
    output_dim: int | None = Field(None, ge=1)
    """A hidden layer between [context, h] and the vocabulary; None projects directly, as the paper does."""
    dropout: float = Field(0.3, ge=0, lt=1)
    training: TrainingConfig = TrainingConfig()


class TrainCaptionerSettings(Section):
    """What the stage ``train_captioner`` reads."""

    captioner: CaptionerConfig
    seed: int = Field(0, ge=0)
    """The experiment's; one of the captioner's own comes before it."""

    @property
    def own_seed(self) -> int:
        return self.seed if self.captioner.seed is None else self.captioner.seed
