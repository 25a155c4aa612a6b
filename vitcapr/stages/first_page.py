from typing import Annotated

from vitcapr.config.report import FirstPageSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, Split, stage
from vitcapr.progress import Reporter

PICTURES = 12
"""Pictures with captions."""


@stage(execution_only={"command"})
def first_page(
    summary: In[kinds.SummaryFile],
    manifest: In[kinds.ManifestFile],
    split: Split,
    settings: FirstPageSettings,
    report: Reporter,
    page: Out[kinds.PageFile],
    captions: dict[str, In[kinds.CaptionsFile]] | None = None,
    claims: dict[str, In[kinds.CheckedClaimsFile]] | None = None,
    attention: dict[str, In[kinds.AttentionFile]] | None = None,
    comparisons: list[In[kinds.ComparisonFile]] | None = None,
    embeddings: dict[str, In[kinds.EmbeddingsFile]] | None = None,
    ranks: dict[str, In[kinds.RanksFile]] | None = None,
    histories: dict[str, In[kinds.HistoryFile]] | None = None,
    sections: list[In[kinds.PageSectionFile]] | None = None,
    command: Annotated[str, "Command that runs the experiment, for the page"] = "",
) -> None:
    """Write the first page: the result, scores, captioned pictures, retrieval at its best and worst, training, cost.

    It is one file of at most about 2 MB that needs no network and no other file. The cost is that of the jobs behind
    the page, from the run records beside it.
    """
    from vitcapr.files import write_text
    from vitcapr.formats.claims import read_claims
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import read_summary
    from vitcapr.formats.tables import read_page_section
    from vitcapr.metrics.spread import Seeded
    from vitcapr.report import first_page_examples as examples
    from vitcapr.report.figures.examples import Choice, open_images
    from vitcapr.report.first_page import cost, data_line, to_html
    from vitcapr.report.score_tables import score_tables

    data, scores = read_manifest(manifest), read_summary(summary)
    of_seeds = {name: Seeded(**model.values()) for name, model in settings.seeded.items()}
    choice = Choice(PICTURES, settings.images, settings.words)
    captions, attention = (
        {n.replace("/", ", "): path for n, path in (each or {}).items()} for each in (captions, attention)
    )
    embeddings = embeddings or {}
    bases = {name.replace("/", ", "): base.replace("/", ", ") for name, base in settings.bases.items()}
    checked = {name.replace("/", ", "): read_claims(path) for name, path in (claims or {}).items()}
    with open_images(data) as read:
        pictured = {
            "captioned": examples.captioned(
                data, split, settings.language, captions, bases, choice, read, attention, checked
            ),
            "retrieved": examples.retrieved(data, split, scores, embeddings, ranks or {}, read),
        }
    text = to_html(
        title=page.parent.name,
        folder=str(page.parent),
        again=command,
        facts=[("data", data_line(data)), *settings.facts.items()],
        result=examples.sentences(scores, split, comparisons or []),
        attention=examples.attention_picture(data, split, captions, attention),
        scores=[*score_tables(scores), *examples.seed_tables(scores, of_seeds)],
        curves=examples.training_pictures(histories or {}),
        cost=cost(page, [summary, manifest, *captions.values(), *embeddings.values()]),
        has_oracle=settings.has_oracle,
        split=split,
        of_rooms=[read_page_section(path) for path in sections or []],
        **pictured,
    )
    write_text(page, text)
    report.line(str(page))
