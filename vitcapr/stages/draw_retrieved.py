from vitcapr.config.report import FigureSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Split
from vitcapr.progress import Reporter
from vitcapr.stages._drawing import MANIFEST, Drawing, Pictures, example_choice


@Drawing(
    files=lambda _: [f"retrieved/{{retriever}}/{{split}}/{name}" for name in ("image_to_text", "text_to_image")],
    inputs=lambda _: {
        "embeddings": "results/{experiment}/embeddings/{retriever}/{split}/embeddings.npz",
        "ranks": "results/{experiment}/metrics/retrieval/{retriever}/{split}/ranks.npz",
        "manifest": MANIFEST,
    },
    each=lambda experiment: experiment.retrieval.retrievals,
    caption="Where {retriever} fails on the {split} split, drawn at random from all failures: the wrong match that "
    "came first beside the true one, with cosine and rank. Some wrong matches fit the picture well; the data set "
    "still counts them as wrong.",
    category="Retrieval",
    labels={"figure": "failures", "split": "{split}"},
)
def draw_retrieved(
    embeddings: In[kinds.EmbeddingsFile],
    ranks: In[kinds.RanksFile],
    manifest: In[kinds.ManifestFile],
    split: Split,
    settings: FigureSettings,
    report: Reporter,
) -> Pictures:
    """Draw randomly selected queries whose first match is wrong, in both directions."""
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import RankFile
    from vitcapr.report.figures.examples import Choice, open_images
    from vitcapr.report.figures.retrieval import draw_failures

    data, choice = read_manifest(manifest), Choice(**example_choice(settings.figures, settings.figures.failures))
    embedded = read_embeddings(embeddings, data, split)
    with open_images(data) as read:
        return draw_failures(data, embedded, RankFile.read(ranks, embedded).ranks, choice, read, report)
