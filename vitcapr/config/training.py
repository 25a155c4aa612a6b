"""Configuration that all trainings share: seed, optimiser, early stopping and execution."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator

from vitcapr.config.base import Only, Section, StageSettings

Layer = Annotated[int | None, Field(ge=1, exclude_if=lambda layer: layer is None)]
"""A hidden layer, counted from 1. None is left out of the plain settings, so that it does not change a fingerprint."""


Schedule = Literal["constant", "cosine", "linear"]


class TrainedConfig(Section):
    """A model that is trained."""

    seed: int | None = Field(None, ge=0)
    """Seed of the initial weights and of the training; null: the seed of the experiment."""

    def seeded(self, experiment: int) -> tuple[Self, int]:
        """The settings without a seed, and the seed: the model's own, or ``experiment`` if it has none.

        So an own seed that equals the experiment's does not change a fingerprint.
        """
        return self.model_copy(update={"seed": None}), experiment if self.seed is None else self.seed


class TrainedSettings(StageSettings):
    """The settings of a stage that trains a model. Its only other field has the name of the wildcard of the model."""

    seed: int = Field(0, ge=0)
    """The seed of the model, or that of the experiment if the model sets none."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        (kind,) = cls.model_fields.keys() - {"seed"}
        model, seed = getattr(config, f"{kind}s")[getattr(wildcards, kind)].seeded(config.seed)
        return cls(**{kind: model}, seed=seed)


class PhaseConfig(Section):
    """A part of a training with its own settings. Weights and optimiser state carry over to the next phase.

    Subclasses define the schedules and the batch of a model.
    """

    epochs: int = Field(ge=1)
    learning_rate: float = Field(1e-3, gt=0)
    schedule: Literal[Schedule, "step"] = "constant"
    """Learning-rate schedule over the phase: cosine and linear go from learning_rate down to final_fraction of it."""
    final_fraction: Annotated[float, Only("schedule", "cosine", "linear")] = Field(0.0, ge=0, le=1)
    """Final share of the learning rate."""
    warmup_steps: int | None = Field(0, ge=0)
    """Steps in which the learning rate rises from 0; null: a tenth of the steps of the phase, at most 100."""
    batch_pairs: int | None = Field(None, ge=1)
    """Image-caption pairs per batch, drawn from all pairs; an epoch is every pair once. null: batches of batch_images
    images; an epoch is every image once."""
    shuffle_chunks: int | None = Field(None, ge=1)
    """Read the chunks of a store in random order, and shuffle the images of this many at a time: for a store on a slow
    disk, or larger than memory (docs/scale.md). null: shuffle all images."""


def one_or_more(value: Any) -> Any:
    """A list of phases; one phase needs no list."""
    return [value] if isinstance(value, Mapping) else value


class TrainingConfig(Section):
    """Subclasses define the phases of a model, its scores to select by, and may allow fewer optimisers."""

    phases: Sequence[PhaseConfig]
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    """adam and adamw have the moments 0.9 and 0.999; sgd has no momentum."""
    weight_decay: float = Field(0.0, ge=0)
    clip_norm: float | None = Field(5.0, gt=0)
    """Maximum norm of the gradient; null: no clipping."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Data type of the matrix products; auto: bfloat16 if the hardware supports it. Weights stay float32."""
    ema_decay: float = Field(0.0, ge=0, lt=1)
    """Decay of the moving average of the weights. The average is validated and kept; 0: the weights themselves."""
    patience: int | None = Field(None, ge=1)
    """Stop after this many epochs without a better validation score; null: never stop early."""
    processes: int = Field(1, ge=1)
    """Number of processes that share every batch (torchrun); on GPUs one process per GPU. Does not trigger a re-run."""
    select_by: str = "loss"
    """Select the best epoch by this score of the validation split."""


class SweepConfig(Section):
    """Several trainings that differ in one setting. The one with the best validation score is kept."""

    learning_rate: list[Annotated[float, Field(gt=0)]] = Field(min_length=1)
    """Learning rates of the first phase. The rates of later phases are scaled by the same factor."""

    @field_validator("learning_rate")
    @classmethod
    def _rates_differ(cls, rates: list[float]) -> list[float]:
        if len(set(rates)) < len(rates):
            raise ValueError("learning rates must be different")
        return rates
