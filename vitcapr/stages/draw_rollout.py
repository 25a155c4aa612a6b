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


def _rolled_out(experiment: Experiment) -> list[dict[str, str]]:
    """The captions with attention whose backbone can be run again and has attention."""
    config = experiment.config
    return [
        wildcards
        for wildcards in experiment.attention
        if config.backbones[config.captioners[wildcards["captioner"]].backbone].rolls_out
    ]


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
        each=_rolled_out,
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
    from vitcapr.report.figures.attention import Looked, check_grid, rank_correlation, rolled_out_and_attended
    from vitcapr.report.figures.examples import choose_attended, open_images
    from vitcapr.report.figures.style import save_pictures

    wanted, data, table = settings.backbone, read_manifest(manifest), read_attention(attention)
    folder = locate(str(backbone or source or wanted.source), wanted.revision).folder
    preprocessing, note = read_preprocessing(folder, image_size_of(folder), wanted.image_size, wanted.interpolation)
    if note:
        report.line(note)
    model = AttendingBackbone(folder, preprocessing.size, torch.float32)
    check_grid(model.grid, table, attention)
    shown, cases = settings.figures, []
    chosen = choose_attended(
        data, split, captions, table, shown.attention_images, shown.seed, shown.attention_first, shown.attention_words
    )
    with open_images(data) as read:
        for row, caption, weights in chosen:
            picture = read(row)
            seen = torch.from_numpy(preprocessing.prepared(picture)[None])
            rolled = model.roll_out(preprocessing.normalise(seen, torch.float32))[0].numpy()
            cases.append(Looked(picture, caption.tokens, rolled, weights))
            agreement = rank_correlation(rolled, weights.mean(axis=0)) if len(weights) else float("nan")
            report.line(f"image {caption.image_id}: rank correlation of roll-out and attention {agreement:.2f}")
    save_pictures({"rollout": rolled_out_and_attended(cases)}, pictures, report)
