"""Fine-tuning: dual encoders whose image and text encoders are trained on decoded pictures."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from vitcapr.config.base import Entry, ModelName, Name, Section
from vitcapr.config.features import TRAINED
from vitcapr.encoders.checkpoint_kinds import check_image_tower, check_text_encoder
from vitcapr.experiment.paths import FIGURES, ROOT, TEXT
from vitcapr.extensions.finetuning.config import FinetunedDualEncoderConfig, TagsConfig, TokenizerConfig
from vitcapr.loader import Hooks

SECTION = "finetuned_dual_encoders"
PIXELS = f"{ROOT}/pixels/{{backbone}}/manifest.json"
TOKENIZER = f"{ROOT}/tokenizers/{{tokenizer}}/tokenizer.json"
TAGS = f"{TEXT}/tags/tags.npz"
TAGS_CARD = f"{TEXT}/tags/tags.json"
FINETUNED = f"{ROOT}/{SECTION}/{{finetuned}}"
LOSS_CURVES = f"{FIGURES}/loss_curves/{{loss_curves}}"
PIXEL_SHEETS = [f"{FIGURES}/pixels/{{backbone}}/{name}" for name in ("augmentations", "encoding")]


class Experiment(Section):
    tags: TagsConfig = TagsConfig()
    tokenizers: dict[Name, TokenizerConfig] = {}
    finetuned_dual_encoders: dict[ModelName, FinetunedDualEncoderConfig] = {}
    """Dual encoders whose image and text encoders are trained on decoded pictures."""


class Run(Section):
    finetuned_dual_encoders: Annotated[list[str], Entry(SECTION)] = []
    """Fine-tuned dual encoders to train, embed, score and draw."""
    tags: bool = False
    """Write part-of-speech tags (text/tags/) even if no fine-tuned dual encoder reads them."""
    loss_curves: Annotated[dict[Name, list[str]], Entry(SECTION)] = {}
    """Loss-curve figures by name; each lists the fine-tuned dual encoders whose losses it shows side by side."""


class Grid(Section):
    finetuned_dual_encoders: list[str] = []


def needed(config: Any) -> dict[str, FinetunedDualEncoderConfig]:
    """Return the fine-tuned dual encoders to train, by name."""
    return {name: config.finetuned_dual_encoders[name] for name in config.run.named(SECTION)}


def pixel_backbones(config: Any) -> list[str]:
    """Return the backbones to fine-tune."""
    return list(dict.fromkeys(model.image.backbone for model in needed(config).values()))


def tokenizers(config: Any) -> list[str]:
    """Return the tokenizers to train."""
    names = (tower.tokenizer for model in needed(config).values() for tower in model.text.values())
    return list(dict.fromkeys(name for name in names if name is not None))


def _checkpoints(config: Any) -> Iterator[tuple[str, str, str, Callable[[Path], object]]]:
    for name in pixel_backbones(config):
        backbone = config.backbones[name]
        if backbone.source != TRAINED:
            check = partial(check_image_tower, image_size=backbone.image_size)
            yield f"backbones.{name}", backbone.source, backbone.revision, check
    for name, model in needed(config).items():
        for part, tower in model.text.items():
            if tower.source is not None:
                checked = partial(check_text_encoder, output="hidden", max_length=tower.max_length)
                yield f"{SECTION}.{name}.text.{part}", tower.source, tower.revision, checked


def _figures(experiment: Any) -> Iterator[tuple[str | list[str], dict[str, str]]]:
    for name in experiment.config.run.loss_curves:
        yield LOSS_CURVES, {"loss_curves": name}
    for name in pixel_backbones(experiment.config) if experiment.config.data.dataset == "pairs" else ():
        yield PIXEL_SHEETS, {"backbone": name}


HOOKS = Hooks(
    facts=lambda config: [("fine-tuned dual encoders", config.run.finetuned_dual_encoders)],
    checkpoints=_checkpoints,
    figures=_figures,
    tables=lambda experiment: [experiment.retrieval.path(TAGS)] if experiment.config.run.tags else [],
)
