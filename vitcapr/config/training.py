"""What every training has in common: its seed, the optimiser, when it ends, and how it is computed."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from vitcapr.config.base import Section


class TrainedConfig(Section):
    """A model that is trained."""

    seed: int | None = Field(None, ge=0)
    """Of its first weights and of its training; null takes the experiment's."""

    def seed_in(self, experiment: int) -> int:
        """Its own seed, or that of the experiment."""
        return experiment if self.seed is None else self.seed


class PhaseConfig(Section):
    """A stretch of training with settings of its own; the weights and the optimiser's state carry over.

    A model adds the schedules that it knows and what a batch is.
    """

    epochs: int = Field(ge=1)
    learning_rate: float = Field(1e-3, gt=0)
    final_fraction: float = Field(0.0, ge=0, le=1)
    """Of the learning rate, at the end of a cosine or linear schedule."""
    warmup_steps: int = Field(0, ge=0)
    batch_pairs: int | None = Field(None, ge=1)
    """Pairs of an image and a caption in a batch, drawn from all pairs: an epoch is then every pair once. null draws
    images, batch_images a batch, and an epoch is every image once."""


class TrainingConfig(Section):
    """A model adds what its own phases are, and may know fewer optimisers."""

    phases: Sequence[PhaseConfig]
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    weight_decay: float = Field(0.0, ge=0)
    clip_norm: float | None = Field(5.0, gt=0)
    """Largest norm of the gradient; null leaves it as it is."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Arithmetic of the matrix products; auto: bfloat16 where the hardware has it. Weights and similarities stay
    float32."""
    ema_decay: float = Field(0.0, ge=0, lt=1)
    """Decay of the moving average of the weights that is validated and kept; 0 keeps the weights themselves."""
    patience: int | None = Field(None, ge=1)
    """Stop after so many epochs without a better validation score; null never stops early."""
    save_every_steps: int = Field(200, ge=1)
    """How often the state from which training continues is written."""
    device: Literal["auto", "cpu", "cuda"] = "auto"


class SharedTrainingConfig(TrainingConfig):
    """A training that several processes may share."""

    processes: int = Field(1, ge=1)
    """Processes that share every batch, under torchrun; on GPUs one each. Nothing is re-run for it, as for device."""
