from typing import Annotated

from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def draw_embeddings(
    embeddings: In[kinds.EmbeddingsFile],
    manifest: In[kinds.ManifestFile],
    retriever: Annotated[str, "Name of the retrieval model"],
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw the embedding space as t-SNE and a histogram of cosines: figures 18 and 19 of ViTCap-R."""
    from vitcapr.extensions.figures.embedding_figures import cosine_histogram, cosines, neighbourhoods
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.page_layout import nothing_to_draw
    from vitcapr.report.figures.style import save_pictures

    embedded = read_embeddings(embeddings, read_manifest(manifest))
    if len(embedded.images) == 1:
        drawn = dict.fromkeys(("tsne", "cosines"), nothing_to_draw("The split has one image, and so no wrong pair."))
    else:
        drawn = {
            "tsne": neighbourhoods(embedded, retriever),
            "cosines": cosine_histogram(cosines(embedded), retriever),
        }
    save_pictures(drawn, pictures, report)
