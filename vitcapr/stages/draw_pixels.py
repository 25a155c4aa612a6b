"""Draw the effect of augmentation on pictures, and one picture in Base64."""

from vitcapr.config.figures import FigureSettings
from vitcapr.formats.kinds import FigureFile, ManifestFile, PixelsFile
from vitcapr.pipeline.figure import MANIFEST, Experiment, Figure
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter

SHOWN = 4
"""Number of pictures in the sheet of augmentations."""


def _backbones(experiment: Experiment) -> list[dict[str, str]]:
    """The backbones that are fine-tuned on decoded pictures of pairs."""
    names = experiment.pixel_backbones if experiment.config.data.dataset == "pairs" else []
    return [{"backbone": name} for name in names]


@stage(
    figure=Figure(
        files=lambda _: ["pixels/{backbone}/augmentations", "pixels/{backbone}/encoding"],
        inputs=lambda _: {
            "pixels": "results/{experiment}/pixels/{backbone}/manifest.json",
            "manifest": MANIFEST,
        },
        each=_backbones,
        caption="Pictures before they are learnt: each random change on its own, as far as it goes by default, and a "
        "picture's file in Base64. Base64 makes a file a third longer. It is shorter than the raw pixels because the "
        "file is a JPEG.",
        category="Data",
        labels={"figure": "augmentation and Base64"},
    )
)
def draw_pixels(
    pixels: In[PixelsFile],
    manifest: In[ManifestFile],
    settings: FigureSettings,
    report: Reporter,
    pictures: list[Out[FigureFile]],
) -> None:
    """Draw each augmentation of a few pictures, and one picture in Base64."""
    import numpy as np

    from vitcapr.batches.augment import Augmentation, single_changes
    from vitcapr.data.images import ImageSource
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.augmented import augmentation_sheet, encoding_sheet
    from vitcapr.report.figures.style import save_pictures
    from vitcapr.store.layout import PIXELS
    from vitcapr.store.reader import open_features

    data, store = read_manifest(manifest), open_features(pixels)
    rows = np.random.default_rng(settings.figures.seed).permutation(len(data.images))[:SHOWN]
    changed = single_changes(store[PIXELS].gather(rows), Augmentation())
    sheet = augmentation_sheet(list(zip(*changed.values(), strict=True)), list(changed))
    first = data.images.iloc[int(rows[0])]
    with ImageSource(data.image_root) as source:
        encoding = encoding_sheet(source.read(first["path"]), int(first["width"]) * int(first["height"]))
    save_pictures({"augmentations": sheet, "encoding": encoding}, pictures, report)
