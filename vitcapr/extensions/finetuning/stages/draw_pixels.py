from typing import Any

from vitcapr.config.report import FigureSettings
from vitcapr.extensions.finetuning.config import AugmentationConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter

PICTURES = 4
"""In the sheet of augmentations."""


class PixelFigureSettings(FigureSettings):
    augmentation: AugmentationConfig | None = None
    """Augmentation of the first fine-tuned model that has one and reads these pixels."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "PixelFigureSettings":
        models = [config.finetuned_dual_encoders[name] for name in config.run.finetuned_dual_encoders]
        used = [m.training.augmentation for m in models if m.image.backbone == wildcards.backbone]
        return cls(figures=config.figures, augmentation=next(filter(None, used), None))


@stage()
def draw_pixels(
    pixels: In[kinds.PixelsFile],
    manifest: In[kinds.ManifestFile],
    settings: PixelFigureSettings,
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw each augmentation of a few pictures, and one picture in Base64."""
    import numpy as np

    from vitcapr.data.images import ImageSource
    from vitcapr.extensions.finetuning.augment import Augmentation, single_changes
    from vitcapr.extensions.finetuning.augmented import augmentation_sheet, encoding_sheet
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.style import save_pictures
    from vitcapr.store.layout import PIXELS
    from vitcapr.store.reader import open_features

    data, store = read_manifest(manifest), open_features(pixels)
    rows = np.random.default_rng(0).permutation(len(data.images))[:PICTURES]
    off = Augmentation(rotation=0, flip=0, brightness=0, hue=0, blur=0)
    limits = off if settings.augmentation is None else settings.augmentation.to(Augmentation)
    changed = single_changes(store[PIXELS].gather(rows), limits)
    with ImageSource(data.image_root) as source:
        encoding = encoding_sheet(source.read(data.images["path"].iloc[int(rows[0])]))
    save_pictures({"augmentations": augmentation_sheet(changed), "encoding": encoding}, pictures, report)
