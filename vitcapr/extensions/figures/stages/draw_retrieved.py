from typing import Annotated

from vitcapr.config.report import FigureSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, Split, stage
from vitcapr.progress import Reporter

_FAILURES = 6
"""Images, and captions, drawn with a wrong first match."""


@stage()
def draw_retrieved(
    embeddings: In[kinds.EmbeddingsFile],
    ranks: In[kinds.RanksFile],
    manifest: In[kinds.ManifestFile],
    split: Split,
    settings: FigureSettings,
    retriever: Annotated[str, "Name of the retrieval model"],
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw randomly selected queries whose first match is wrong, in both directions."""
    from vitcapr.extensions.figures.retrieved import draw_failures
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import RankFile
    from vitcapr.report.figures.examples import Choice, open_images
    from vitcapr.report.figures.style import save_pictures

    data, choice = read_manifest(manifest), Choice(**settings.figures.examples_of(_FAILURES))
    embedded = read_embeddings(embeddings, data, split)
    with open_images(data) as read:
        drawn = draw_failures(data, embedded, RankFile.read(ranks, embedded).ranks, choice, read, report, retriever)
    save_pictures(drawn, pictures, report)
