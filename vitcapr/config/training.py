"""Configuration of every training: phases, optimiser, early stopping and execution."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from vitcapr.config.base import Only, Section, StageSettings
from vitcapr.config.objective import AnyCaptionerLoss, AnyLoss

Layer = Annotated[int | None, Field(ge=1, exclude_if=lambda layer: layer is None)]
"""A hidden layer, counted from 1. None is left out of the plain settings, so that it does not change a fingerprint."""


Schedule = Literal["constant", "cosine", "linear"]


class TrainedConfig(Section):
    """A model that is trained."""

    seed: int | None = Field(None, ge=0, lt=2**32)
    """Seed of the initial weights and of the training; null: the seed of the experiment."""

    def seeded(self, experiment: int) -> tuple[Self, int]:
        """Return the settings without a seed, and the seed: the model's own, or ``experiment`` if it has none.

        So an own seed that equals the experiment's does not change a fingerprint.
        """
        return self.model_copy(update={"seed": None}), experiment if self.seed is None else self.seed


class TrainedSettings(StageSettings):
    """The settings of a stage that trains a model. Its only other field has the name of the wildcard of the model."""

    seed: int = Field(0, ge=0, lt=2**32)
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
    """Return a list of phases; one phase needs no list."""
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


class CaptionerPhaseConfig(PhaseConfig):
    learning_rate: float = Field(3e-3, gt=0)
    warmup_steps: int | None = Field(None, ge=0)
    """Steps in which the learning rate rises from 0; null: a tenth of the steps of the phase, at most 100."""
    batch_images: Annotated[int | None, Only("batch_pairs", None)] = Field(None, ge=1)
    """Images per batch. Every image comes with all its captions: 32 images give about 160 captions. null: 32, or with
    fewer than 256 training images an eighth of them, at least 4."""
    schedule: Schedule = "cosine"
    max_length: int = Field(35, ge=3)
    """Maximum caption length in tokens, start and end included; longer captions are truncated."""
    objective: AnyCaptionerLoss = Field("cross_entropy", validate_default=True)
    """cross_entropy: of the next word, with label_smoothing; self_critical: the CIDEr-D of drawn captions, with samples
    and temperature, for a late phase with a small learning rate; or a loss of your own (docs/extend.md). A section
    gives settings: {kind: cross_entropy, label_smoothing: 0.1}, {kind: self_critical, samples: 5, temperature: 1}."""


class CaptionerTrainingConfig(TrainingConfig):
    phases: Annotated[
        list[CaptionerPhaseConfig],
        BeforeValidator(one_or_more, json_schema_input_type=CaptionerPhaseConfig | list[CaptionerPhaseConfig]),
    ] = Field([CaptionerPhaseConfig(epochs=4)], min_length=1)
    """Training phases, in order; one phase needs no list."""
    optimizer: Literal["adam", "adamw"] = "adam"
    ema_decay: float = Field(0.99, ge=0, lt=1)
    select_by: Literal["loss", "cider"] = "loss"
    """Select the best epoch by validation loss, or by CIDEr of greedy captions on the validation split."""

    @model_validator(mode="after")
    def _the_best_epoch_can_be_any(self) -> Self:
        if self.select_by == "loss" and any(phase.objective.rewards for phase in self.phases):
            raise ValueError(
                "select_by loss would never select an epoch of a self_critical phase, which trades "
                "cross-entropy for CIDEr; set select_by to cider"
            )
        return self


class DualEncoderPhaseConfig(PhaseConfig):
    """The keys of a phase of every dual encoder."""

    learning_rate: float = Field(3e-3, gt=0)
    schedule: Literal[Schedule, "step"] = "cosine"
    """Learning-rate schedule over the phase: cosine and linear go from learning_rate down to final_fraction of it; step
    multiplies it by gamma after every step_epochs."""
    step_epochs: Annotated[int, Only("schedule", "step")] = Field(5, ge=1)
    """Number of epochs after which the learning rate is multiplied by gamma."""
    gamma: Annotated[float, Only("schedule", "step")] = Field(0.5, gt=0, le=1)
    batch_images: Annotated[int, Only("batch_pairs", None)] = Field(64, ge=2)
    """Images per batch. Each image is compared with the captions of all images of the batch."""
    captions_per_image: Annotated[int | None, Only("batch_pairs", None)] = Field(None, ge=1)
    """Captions sampled per image; null: all captions."""
    objective: AnyLoss = Field("info_nce", validate_default=True)
    """info_nce: contrastive loss in both directions; max_hinge: hinge loss on the hardest negative (VSE++); sigmoid:
    binary classification of every pair (SigLIP); hinge_rank: hinge loss on every negative caption, where captions have
    length 1 and images keep their length (DeViSE); pooled: equation 4 of the BERT-ViT paper; or a loss of your own
    (docs/extend.md). A section gives settings: {kind: max_hinge, margin: 0.1}; margin is 0.2 by default."""
    hard_negatives: Literal["second", "hardest"] | None = None
    """Negatives with an additional loss, which is added to the objective. second: the second of the two most similar
    captions (the paper); hardest: the most similar negative caption; null: none."""

    @model_validator(mode="after")
    def _mines_by_cosine(self) -> Self:
        if not self.objective.unit_images and self.hard_negatives is not None:
            what = f"hard_negatives are mined by cosine, but {self.objective.kind} uses dot products; remove one"
            raise ValueError(what)
        return self


class RetrieverPhaseConfig(DualEncoderPhaseConfig):
    mixup: float = Field(0.0, ge=0)
    """Parameter of Beta(mixup, mixup), from which the mixing share of two pairs of a batch is drawn; 0: no mixup. Text
    kind features only."""
    structure: float = Field(0.0, ge=0)
    """Weight of the STRUCTURE loss, which keeps the neighbours that images and captions have in the spaces of their
    frozen encoders; 0: none. Text kinds features and features_and_words only."""


class DualEncoderTrainingConfig(TrainingConfig):
    """The keys of the training of every dual encoder."""

    phases: Sequence[DualEncoderPhaseConfig]
    pairs: int | None = Field(None, ge=2)
    """Number of training pairs to sample (null: all). A larger sample contains the smaller one."""
    sweep: SweepConfig | None = None
    select_by: Literal["loss", "rsum"] = "rsum"
    """Select the best epoch by validation loss, or by the sum of Recall@1, 5 and 10 of both directions."""

    @property
    def start_bias(self) -> float | None:
        """The initial value of the bias that a loss learns; None: no loss learns one."""
        return next((bias for phase in self.phases if (bias := phase.objective.start_bias) is not None), None)

    @model_validator(mode="after")
    def _a_sweep_is_trained(self) -> Self:
        if self.sweep is not None and not self.phases:
            raise ValueError("sweep needs a training phase")
        return self


class RetrieverTrainingConfig(DualEncoderTrainingConfig):
    phases: Annotated[
        list[RetrieverPhaseConfig],
        BeforeValidator(one_or_more, json_schema_input_type=RetrieverPhaseConfig | list[RetrieverPhaseConfig]),
    ] = [RetrieverPhaseConfig(epochs=10)]
    """Training phases, in order; one phase needs no list. Empty if head is none on both sides, because such a retriever
    has no weights to learn."""
    validation_images: int | None = Field(10_000, ge=2)
    """Number of images of the validation split to validate on, drawn at random; null: all."""
