from itertools import product

from vitcapr.config.report import FigureSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Language, Split
from vitcapr.progress import Reporter
from vitcapr.stages._drawing import MANIFEST, Drawing, Experiment, Pictures, example_choice


def _each(experiment: Experiment) -> list[dict[str, str]]:
    models = experiment.models
    every = product(models.captioners, models.rerankings_by("retriever"), models.splits)
    return [{"captioner": captioner, "reranking": name, "split": split} for captioner, name, split in every]


@Drawing(
    files=lambda _: ["reranked/{captioner}/{reranking}/{split}/reranked"],
    inputs=lambda experiment: {
        "before": experiment.captioning.candidates,
        "after": "results/{experiment}/captions/{captioner}/{reranking}/{split}/captions.json",
        "manifest": MANIFEST,
    },
    values=lambda experiment: {"language": experiment.config.text.language},
    each=_each,
    caption="Captions of {captioner} before and after {reranking}, of images whose caption changed, with the CIDEr "
    "of both. Struck through: removed words; underlined: added words.",
    category="Captions",
    labels={"figure": "before and after reranking", "split": "{split}"},
    priority=5,
)
def draw_reranked(
    before: In[kinds.CaptionsFile],
    after: In[kinds.CaptionsFile],
    manifest: In[kinds.ManifestFile],
    split: Split,
    language: Language,
    settings: FigureSettings,
    report: Reporter,
) -> Pictures:
    """Draw images with their captions before and after reranking, and the CIDEr of both.

    Sampled from the images whose caption changed, so that changes for the worse appear as often as they occur.
    """
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.captions import draw_changed
    from vitcapr.report.figures.examples import Choice

    choice = Choice(**example_choice(settings.figures, settings.figures.examples))
    return draw_changed(read_manifest(manifest), split, language, before, after, choice, report)
