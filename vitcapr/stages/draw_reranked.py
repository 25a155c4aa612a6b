"""Draw captions before and after reranking."""

from vitcapr.config.figures import FigureSettings
from vitcapr.formats.kinds import CaptionsFile, FigureFile, ManifestFile
from vitcapr.pipeline.figure import MANIFEST, Experiment, Figure
from vitcapr.pipeline.stage import In, Language, Out, Split, stage
from vitcapr.progress import Reporter

TOKENIZER_TIMEOUT = 300.0
"""In seconds."""


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
    from vitcapr.formats.captions import read_captions, read_results
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.metrics.base import is_oracle
    from vitcapr.metrics.candidates import system_ciders
    from vitcapr.report.figures.captions import Reranked, note_on_choice, reranked_sheet
    from vitcapr.report.figures.examples import choose, first_references, open_images, rows_of_split
    from vitcapr.report.figures.style import save_pictures

    data, old, new = read_manifest(manifest), read_captions(before), read_captions(after)
    rows = rows_of_split(data, split, {"the decoding": old, "the reranking": new})
    images = data.images["image_id"].iloc[rows].tolist()
    systems = [{image: found[image].caption for image in images} for found in (old, new)]
    ciders = system_ciders(data, split, language, images, systems, TOKENIZER_TIMEOUT)
    changed = [place for place, image in enumerate(images) if old[image].caption != new[image].caption]
    references = first_references(data, split, language)
    with open_images(data) as read:
        examples = [
            Reranked(
                picture=read(rows[place]),
                before=old[images[place]].tokens,
                after=new[images[place]].tokens,
                scores=(float(ciders[0][place]), float(ciders[1][place])),
                reference=str(references[rows[place]]),
            )
            for place in choose(changed, settings.figures.examples, settings.figures.seed)
        ]
    note = note_on_choice(len(rows), len(examples), (ciders[1] - ciders[0])[changed], settings.figures.seed)
    if is_oracle(read_results(after).values()):
        note = f"Chosen by an oracle from the references: a ceiling, not a result. {note}"
    report.line(note)
    save_pictures({"reranked": reranked_sheet(examples, note)}, pictures, report)
