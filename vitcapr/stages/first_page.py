"""index.html: the results of an experiment on one page."""

from typing import Annotated

from vitcapr.config.first_page import FirstPageSettings
from vitcapr.formats.kinds import (
    CaptionsFile,
    EmbeddingsFile,
    HistoryFile,
    ManifestFile,
    PageFile,
    RanksFile,
    SummaryFile,
)
from vitcapr.pipeline.stage import In, Out, Split, stage
from vitcapr.progress import Reporter


@stage(execution_only={"command"})
def first_page(
    summary: In[SummaryFile],
    manifest: In[ManifestFile],
    split: Split,
    settings: FirstPageSettings,
    report: Reporter,
    page: Out[PageFile],
    captions: dict[str, In[CaptionsFile]] | None = None,
    embeddings: dict[str, In[EmbeddingsFile]] | None = None,
    ranks: dict[str, In[RanksFile]] | None = None,
    histories: dict[str, In[HistoryFile]] | None = None,
    command: Annotated[str, "Command that runs the experiment, for the page"] = "",
) -> None:
    """Write the first page: scores, captioned pictures, retrieval at its best and worst, training, cost.

    It is one file of at most about 2 MB that needs no network and no other file. The cost is that of the jobs behind
    the page, from the run records beside it.
    """
    from vitcapr.files import write_text
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import read_summary
    from vitcapr.report.figures.examples import open_images
    from vitcapr.report.first_page import content, cost, pictures, retrieved
    from vitcapr.report.score_tables import score_tables
    from vitcapr.studies.papers.tables import beside_the_paper

    data, scores = read_manifest(manifest), read_summary(summary)
    captions, embeddings, seed = captions or {}, embeddings or {}, settings.seed
    with open_images(data) as read:
        examples = pictures.captioned(data, split, settings.language, captions, settings.bases, seed, read)
        queries = retrieved.retrieved(data, split, scores, embeddings, ranks or {}, read)
    shown = content.FirstPage(
        title=page.parent.name,
        folder=str(page.parent),
        facts=[("data", content.data_line(data)), *settings.facts.items()],
        scores=list(score_tables(scores)),
        beside=beside_the_paper(settings.paper, scores, settings.systems),
        captioned=examples,
        retrieved=queries,
        curves=pictures.training_pictures(histories or {}),
        cost=cost.cost(page, [summary, manifest, *captions.values(), *embeddings.values()]),
        again=command,
        has_oracle=settings.has_oracle,
        has_alignments="alignments" in settings.facts,
    )
    write_text(page, content.to_html(shown))
    report.line(str(page))
