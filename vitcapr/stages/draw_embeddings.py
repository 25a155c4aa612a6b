from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import MANIFEST, Drawing, Pictures


@Drawing(
    files=lambda _: [f"embeddings/{{retriever}}/{{split}}/{name}" for name in ("tsne", "cosines")],
    inputs=lambda _: {
        "embeddings": "results/{experiment}/embeddings/{retriever}/{split}/embeddings.npz",
        "manifest": MANIFEST,
    },
    each=lambda experiment: experiment.retrieval.retrievals,
    caption="The space of {retriever} with the images and captions of the {split} split. `tsne`: the first 300 images, "
    "each joined to its first caption by a line. `cosines`: positive pairs against the hardest wrong caption of each "
    "image and against random wrong pairs, with the share of area that they have in common.",
    category="Retrieval",
    labels={"figure": "the shared space", "split": "{split}"},
)
def draw_embeddings(embeddings: In[kinds.EmbeddingsFile], manifest: In[kinds.ManifestFile]) -> Pictures:
    """Draw the embedding space as t-SNE and a histogram of cosines: figures 18 and 19 of ViTCap-R."""
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.embeddings import cosine_histogram, cosines, neighbourhoods
    from vitcapr.report.figures.page import nothing_to_draw

    embedded = read_embeddings(embeddings, read_manifest(manifest))
    if len(embedded.images) == 1:
        return dict.fromkeys(("tsne", "cosines"), nothing_to_draw("The split has one image, and so no wrong pair."))
    return {
        "tsne": neighbourhoods(embedded),
        "cosines": cosine_histogram(cosines(embedded)),
    }
