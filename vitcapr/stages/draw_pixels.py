from typing import Any

from vitcapr.config.report import FigureSettings
from vitcapr.config.training import AugmentationConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import MANIFEST, Drawing, Pictures

PICTURES = 4
"""In the sheet of augmentations."""


class PixelFigureSettings(FigureSettings):
    augmentation: AugmentationConfig | None = None
    """Of the first fine-tuned model that has one and reads these pixels."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "PixelFigureSettings":
        models = [config.finetuned_dual_encoders[name] for name in config.run.finetuned_dual_encoders]
        used = [m.training.augmentation for m in models if m.image.backbone == wildcards.backbone]
        return cls(figures=config.figures, augmentation=next(filter(None, used), None))


@Drawing(
    files=lambda _: ["pixels/{backbone}/augmentations", "pixels/{backbone}/encoding"],
    inputs=lambda _: {
        "pixels": "results/{experiment}/pixels/{backbone}/manifest.json",
        "manifest": MANIFEST,
    },
    each=lambda experiment: [
        {"backbone": name} for name in experiment.models.pixel_backbones if experiment.config.data.dataset == "pairs"
    ],
    caption="Pictures in training: each random change of the experiment on its own, at its limit, and a "
    "picture's file in Base64. Base64 makes a file a third longer. It is shorter than the raw pixels because the "
    "file is a JPEG.",
    category="Data",
    labels={"figure": "augmentation and Base64"},
)
def draw_pixels(
    pixels: In[kinds.PixelsFile], manifest: In[kinds.ManifestFile], settings: PixelFigureSettings
) -> Pictures:
    """Draw each augmentation of a few pictures, and one picture in Base64."""
    import numpy as np

    from vitcapr.batches.augment import Augmentation, single_changes
    from vitcapr.data.images import ImageSource
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.augmented import augmentation_sheet, encoding_sheet
    from vitcapr.store.layout import PIXELS
    from vitcapr.store.reader import open_features

    data, store = read_manifest(manifest), open_features(pixels)
    rows = np.random.default_rng(0).permutation(len(data.images))[:PICTURES]
    off = Augmentation(rotation=0, flip=0, brightness=0, hue=0, blur=0)
    limits = off if settings.augmentation is None else settings.augmentation.to(Augmentation)
    changed = single_changes(store[PIXELS].gather(rows), limits)
    with ImageSource(data.image_root) as source:
        encoding = encoding_sheet(source.read(data.images["path"].iloc[int(rows[0])]))
    return {"augmentations": augmentation_sheet(changed), "encoding": encoding}
