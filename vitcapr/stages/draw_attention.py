"""Draw the attention of a captioner at each word."""

from vitcapr.config.figures import FigureSettings
from vitcapr.declaration.figure import Experiment, Figure
from vitcapr.declaration.kinds import AttentionFile, CaptionsFile, FigureFile, ManifestFile
from vitcapr.declaration.stage import In, Out, Split, stage
from vitcapr.progress import Reporter


def _numbered(experiment: Experiment) -> list[str]:
    numbers = range(1, experiment.config.figures.attended + 1)
    return [f"attention/{{captioner}}/{{decoding}}/{{split}}/attention-{number}" for number in numbers]


@stage(
    figure=Figure(
        files=_numbered,
        inputs=lambda experiment: {
            "captions": "results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
            "attention": "results/{experiment}/captions/{captioner}/{decoding}/{split}/attention.npz",
            "manifest": experiment.manifest,
        },
        each=lambda experiment: experiment.captioning.attended,
        caption="Where {captioner} looks when it writes each word: the attention over the patches, enlarged to the "
        "size of the image. Brighter is more.",
        category="Attention",
        subcategory="{captioner}",
        labels={"figure": "attention by word", "decoding": "{decoding}", "split": "{split}"},
        priority=5,
        mem_mb=4000,
    )
)
def draw_attention(
    captions: In[CaptionsFile],
    attention: In[AttentionFile],
    manifest: In[ManifestFile],
    split: Split,
    settings: FigureSettings,
    report: Reporter,
    pictures: list[Out[FigureFile]],
) -> None:
    """Draw the attention at each word of a caption, for images sampled from those with the longest captions."""
    from vitcapr.artefacts.attention import read_attention
    from vitcapr.artefacts.manifest import read_manifest
    from vitcapr.data.images import ImageSource
    from vitcapr.figures.attended import choose_attended
    from vitcapr.figures.attention import attended_words
    from vitcapr.figures.examples import read_picture
    from vitcapr.figures.style import save_pictures

    data, figures = read_manifest(manifest), {}
    chosen = choose_attended(
        data, split, captions, read_attention(attention), settings.figures.attended, settings.figures.seed
    )
    with ImageSource(data.image_root) as source:
        for number, (row, caption, weights) in enumerate(chosen, start=1):
            report.line(f"attention-{number}: image {caption.image_id}, {caption.caption}")
            figures[f"attention-{number}"] = attended_words(read_picture(data, source, row), caption.tokens, weights)
    save_pictures(figures, pictures, report)
