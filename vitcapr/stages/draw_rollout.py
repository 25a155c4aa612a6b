from typing import Any

from vitcapr.config.features import BackboneConfig
from vitcapr.config.report import FigureSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Source, Split
from vitcapr.progress import Reporter
from vitcapr.stages._drawing import MANIFEST, Drawing, Pictures, attention_choice


class RolloutSettings(FigureSettings):
    backbone: BackboneConfig

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "RolloutSettings":
        backbone = config.captioners[wildcards.captioner].backbone
        return cls(figures=config.figures, backbone=config.backbones[backbone])


@Drawing(
    files=lambda _: ["rollout/{captioner}/{decoding}/{split}/rollout"],
    inputs=lambda experiment: {
        "captions": "results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
        "attention": "results/{experiment}/captions/{captioner}/{decoding}/{split}/attention.npz",
        "manifest": MANIFEST,
        "backbone": lambda job: experiment.features.trained_backbone(
            experiment.config.captioners[job.captioner].backbone
        ),
    },
    values=lambda experiment: {
        "source": lambda job: experiment.features.backbone_source(experiment.config.captioners[job.captioner].backbone)
    },
    # The captions with attention whose backbone can be run again and has attention.
    each=lambda experiment: [
        one
        for one in experiment.captioning.attention
        if experiment.features.rolls_out(experiment.config.captioners[one["captioner"]].backbone)
    ],
    caption="Which patches the ViT's CLS vector is made from (attention roll-out, Abnar and Zuidema 2020), beside "
    "where {captioner} looks: over all words of the caption, and for the two words with the most concentrated "
    "attention. Each map has its own scale; its peak stands below it. ρ is the rank correlation of the two.",
    category="Attention",
    labels={"figure": "backbone beside captioner", "decoding": "{decoding}", "split": "{split}"},
    priority=5,
)
def draw_rollout(
    captions: In[kinds.CaptionsFile],
    attention: In[kinds.AttentionFile],
    manifest: In[kinds.ManifestFile],
    split: Split,
    settings: RolloutSettings,
    report: Reporter,
    source: Source = "",
    backbone: In[kinds.BackboneFolder] | None = None,
) -> Pictures:
    """Draw the backbone's attention roll-out and the captioner's attention for the images of draw_attention.

    The roll-out goes from CLS to the patches.
    """
    from vitcapr.encoders.rollout import open_rollout
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.attention import draw_rolled_out
    from vitcapr.report.figures.examples import Choice

    of, choice = settings.backbone, Choice(**attention_choice(settings.figures))
    where = str(backbone or source or of.source), of.revision
    grid, roll_out = open_rollout(*where, image_size=of.image_size, interpolation=of.interpolation, report=report)
    return draw_rolled_out(read_manifest(manifest), split, captions, attention, choice, grid, roll_out, report)
