"""Draw the attention roll-out of the backbone beside the attention of the captioner."""

from typing import Any

from vitcapr.config.features import BackboneConfig
from vitcapr.config.figures import FigureSettings
from vitcapr.formats.kinds import AttentionFile, BackboneFolder, CaptionsFile, FigureFile, ManifestFile
from vitcapr.pipeline.figure import MANIFEST, Experiment, Figure
from vitcapr.pipeline.stage import In, Out, Source, Split, stage
from vitcapr.progress import Reporter


class RolloutSettings(FigureSettings):
    backbone: BackboneConfig

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "RolloutSettings":
        backbone = config.captioners[wildcards.captioner].backbone
        return cls(figures=config.figures, backbone=config.backbones[backbone])


def _with_attention(experiment: Experiment) -> list[dict[str, str]]:
    """The captions with attention whose backbone can be run again and has attention."""
    config = experiment.config
    backbones = {name: config.backbones[captioner.backbone] for name, captioner in config.captioners.items()}
    return [each for each in experiment.attention if backbones[each["captioner"]].rolls_out]


@stage(
    figure=Figure(
        files=lambda _: ["rollout/{captioner}/{decoding}/{split}/rollout"],
        inputs=lambda experiment: {
            "captions": "results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
            "attention": "results/{experiment}/captions/{captioner}/{decoding}/{split}/attention.npz",
            "manifest": MANIFEST,
            "backbone": experiment.trained_backbone,
        },
        bound=lambda experiment: {"source": experiment.backbone_source},
        sources=lambda experiment: experiment.backbone_files,
        each=_with_attention,
        caption="Which patches the ViT's CLS vector is made from (attention roll-out, Abnar and Zuidema 2020), beside "
        "where {captioner} looks: over all words of the caption, and for the two words with the most concentrated "
        "attention. Each map has its own scale; its peak stands below it. ρ is the rank correlation of the two.",
        category="Attention",
        subcategory="{captioner}",
        labels={"figure": "backbone beside captioner", "decoding": "{decoding}", "split": "{split}"},
        priority=5,
        mem_mb=4000,
    )
)
def draw_rollout(
    captions: In[CaptionsFile],
    attention: In[AttentionFile],
    manifest: In[ManifestFile],
    split: Split,
    settings: RolloutSettings,
    report: Reporter,
    pictures: list[Out[FigureFile]],
    source: Source = "",
    backbone: In[BackboneFolder] | None = None,
) -> None:
    """Draw the backbone's attention roll-out (from CLS to the patches) beside the captioner's attention, for the images
    of draw_attention."""
    import torch

    from vitcapr.encoders.checkpoints import locate
    from vitcapr.encoders.image_encoders import image_size_of
    from vitcapr.encoders.preprocess import read_preprocessing
    from vitcapr.encoders.rollout import AttendingBackbone
    from vitcapr.formats.captions import read_attention
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.attention import Looked, check_grid, rolled_out_and_attended
    from vitcapr.report.figures.examples import Choice, choose_attended, open_images
    from vitcapr.report.figures.style import save_pictures

    encoder, data, table = settings.backbone, read_manifest(manifest), read_attention(attention)
    folder = locate(str(backbone or source or encoder.source), encoder.revision).folder
    preprocessing, note = read_preprocessing(folder, image_size_of(folder), encoder.image_size, encoder.interpolation)
    if note:
        report.line(note)
    model, cases = AttendingBackbone(folder, preprocessing.size, torch.float32), []
    check_grid(model.grid, table, attention)
    with open_images(data) as read:
        for row, caption, weights in choose_attended(
            data, split, captions, table, Choice(**settings.figures.attention)
        ):
            image = read(row)
            pixels = preprocessing.normalise(torch.from_numpy(preprocessing.prepared(image)[None]), torch.float32)
            cases.append(Looked(image, caption.tokens, model.roll_out(pixels)[0].numpy(), weights))
            report.line(f"image {caption.image_id}: {caption.caption}")
    save_pictures({"rollout": rolled_out_and_attended(cases)}, pictures, report)
