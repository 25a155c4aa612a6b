"""Draw captions before and after reranking."""

from vitcapr.config.figures import FigureSettings
from vitcapr.formats.kinds import CaptionsFile, FigureFile, ManifestFile
from vitcapr.pipeline.figure import MANIFEST, Experiment, Figure
from vitcapr.pipeline.stage import In, Language, Out, Split, stage
from vitcapr.progress import Reporter


def _by_retriever(experiment: Experiment) -> list[dict[str, str]]:
    """Every reranking except the oracles."""
    run, rerankings = experiment.config.run, experiment.config.rerankings
    return [
        {"captioner": captioner, "reranking": name, "split": split}
        for captioner in run.captioners
        for name in run.rerankings
        for split in experiment.splits
        if rerankings[name].by == "retriever"
    ]


@stage(
    figure=Figure(
        files=lambda _: ["reranked/{captioner}/{reranking}/{split}/reranked"],
        inputs=lambda experiment: {
            "before": experiment.candidates,
            "after": "results/{experiment}/captions/{captioner}/{reranking}/{split}/captions.json",
            "manifest": MANIFEST,
        },
        bound=lambda experiment: {"language": experiment.config.text.language},
        each=_by_retriever,
        caption="Captions of {captioner} before and after {reranking}: images drawn at random from those whose caption "
        "changed, with the CIDEr of each caption. The words that changed are marked.",
        category="Captions",
        labels={"figure": "before and after reranking", "split": "{split}"},
        priority=5,
        mem_mb=4000,
    )
)
def draw_reranked(
    before: In[CaptionsFile],
    after: In[CaptionsFile],
    manifest: In[ManifestFile],
    split: Split,
    language: Language,
    settings: FigureSettings,
    report: Reporter,
    pictures: list[Out[FigureFile]],
) -> None:
    """Draw images with their captions before and after reranking.

    The images are sampled from those whose caption changed. Each caption is shown with its CIDEr, so that changes for
    the worse appear as often as they occur.
    """
    from functools import partial

    from vitcapr.formats.captions import read_captions, read_results
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.metrics.base import is_oracle
    from vitcapr.metrics.candidates import system_ciders
    from vitcapr.report.figures.captions import compare_captions, reranked_sheet
    from vitcapr.report.figures.style import save_pictures

    data, old, new, shown = read_manifest(manifest), read_captions(before), read_captions(after), settings.figures
    score = partial(system_ciders, data, split, language, timeout=300.0)
    examples, note = compare_captions(data, split, language, old, new, score, shown.examples, shown.seed)
    if is_oracle(read_results(after).values()):
        note = f"Chosen by an oracle from the references: a ceiling, not a result. {note}"
    report.line(note)
    save_pictures({"reranked": reranked_sheet(examples, note)}, pictures, report)
