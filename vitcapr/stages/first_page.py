"""index.html: what an experiment found, on one page."""

from typing import Annotated, Any, Self

from vitcapr.config.base import StageSettings
from vitcapr.config.scored import ScoredModels
from vitcapr.formats.kinds import (
    CaptionsFile,
    EmbeddingsFile,
    HistoryFile,
    ManifestFile,
    PageFile,
    RanksFile,
    SummaryFile,
)
from vitcapr.pipeline.stage import In, Language, Out, Split, stage
from vitcapr.progress import Reporter


class FirstPageSettings(StageSettings):
    seed: int
    """Selects the pictures."""
    paper: str | None
    """The paper whose scores stand beside those of the experiment."""
    systems: dict[str, str]
    """The system of each model that is one seed of it."""
    bases: dict[str, str]
    """For each reranked system of captions, the one whose captions a retriever reorders."""
    has_oracle: bool
    facts: dict[str, str]
    """What the experiment consists of, for the head of the page."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        rerankings = {name: config.rerankings[name] for name in config.run.rerankings}
        models = {
            "captioners": [f"{name} (on {config.captioners[name].backbone})" for name in config.run.captioners],
            "decodings": config.run.decodings,
            "rerankings": [f"{name} (of {each.decoding})" for name, each in rerankings.items()],
            "retrievers": [f"{name} (on {config.retrievers[name].backbone})" for name in config.run.retrievers],
            "fine-tuned dual encoders": config.run.finetuned_dual_encoders,
            "alignments": [
                f"{name} ({config.alignments[name].image} and {config.alignments[name].text})"
                for name in config.run.alignments
            ],
        }
        return cls(
            seed=config.figures.seed,
            paper=config.run.paper,
            systems=ScoredModels(config).systems,
            bases={
                f"{captioner}/{name}": f"{captioner}/{each.decoding}"
                for captioner in config.run.captioners
                for name, each in rerankings.items()
                if each.by == "retriever"
            },
            has_oracle=any(each.by == "oracle" for each in rerankings.values()),
            facts={name: ", ".join(of_kind) for name, of_kind in models.items() if of_kind}
            | {"seed": f"{config.seed}, where a model has no seed of its own"},
        )


@stage(execution_only={"command"})
def first_page(
    summary: In[SummaryFile],
    manifest: In[ManifestFile],
    experiment: Annotated[str, "Name of the experiment"],
    split: Split,
    language: Language,
    settings: FirstPageSettings,
    report: Reporter,
    page: Out[PageFile],
    captions: dict[str, In[CaptionsFile]] | None = None,
    embeddings: dict[str, In[EmbeddingsFile]] | None = None,
    ranks: dict[str, In[RanksFile]] | None = None,
    captioners: dict[str, In[HistoryFile]] | None = None,
    retrievers: dict[str, In[HistoryFile]] | None = None,
    dual_encoders: dict[str, In[HistoryFile]] | None = None,
    backbone: In[HistoryFile] | None = None,
    command: Annotated[str, "Command that runs the experiment, for the page"] = "",
) -> None:
    """Write the first page: scores, captioned pictures, retrieval at its best and worst, training, cost.

    It is one file of at most about 2 MB that needs no network and no other file. The cost is that of the jobs behind
    the page, from the run records beside it.
    """
    from pathlib import Path

    import vitcapr
    from vitcapr.files import write_text
    from vitcapr.formats.captions import read_captions
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import read_summary
    from vitcapr.formats.training import read_history
    from vitcapr.metrics.rank_files import read_ranks_of
    from vitcapr.pipeline.commit import commit_of
    from vitcapr.report.figures.curves import backbone_curves, loss_curves, retriever_curves, training_curves
    from vitcapr.report.figures.examples import open_images
    from vitcapr.report.first_page.content import FirstPage, data_line, to_html
    from vitcapr.report.first_page.cost import cost
    from vitcapr.report.first_page.pictures import captioned, curve
    from vitcapr.report.first_page.retrieved import highest_recall, note_on_model, retrieved
    from vitcapr.report.score_tables import score_tables
    from vitcapr.studies.papers.numbers import read_published
    from vitcapr.studies.papers.tables import score_tables_beside

    data, scores = read_manifest(manifest), read_summary(summary)
    parts: dict[str, Any] = {}
    with open_images(data) as read:
        if captions:
            written = {name: read_captions(path) for name, path in captions.items()}
            bases = {name: base for name, base in settings.bases.items() if {name, base} <= written.keys()}
            parts["captioned"], parts["captioned_note"] = captioned(
                data, split, language, written, bases, settings.seed, read
            )
        if embeddings and ranks:
            name = highest_recall(scores, list(embeddings), split)
            embedded = read_embeddings(embeddings[name], data, split)
            parts["retrieved"] = retrieved(data, embedded, read_ranks_of(ranks[name], embedded), read)
            parts["retrieved_note"] = note_on_model(name, split, len(embeddings))
    drawings = {
        "captioners": (training_curves, captioners),
        "retrievers": (retriever_curves, retrievers),
        "fine-tuned dual encoders": (loss_curves, dual_encoders),
    }
    parts["curves"] = [
        curve(draw({name: read_history(path) for name, path in histories.items()}), f"Training curves of the {kind}")
        for kind, (draw, histories) in drawings.items()
        if histories
    ]
    if backbone is not None:
        parts["curves"].append(curve(backbone_curves(read_history(backbone)), "Training curves of the backbone"))
    if settings.paper is not None:
        published = read_published(settings.paper)
        parts["beside"] = score_tables_beside(settings.paper, scores, settings.systems)
        parts["paper"] = f"{published.title}. {published.citation}."
    shown = [summary, manifest, *(captions or {}).values(), *(embeddings or {}).values()]
    if (spent := cost(page, shown)) is not None:
        parts["cost"], parts["cost_note"] = spent
    commit = commit_of(Path(vitcapr.__file__).parent)
    content = FirstPage(
        title=experiment,
        facts=[("data", data_line(data)), *settings.facts.items()],
        scores=list(score_tables(scores)),
        has_oracle=settings.has_oracle,
        again=[*([command] if command else []), f"vitcapr why {page.parent}"],
        code=f"vitcapr {vitcapr.__version__}" + (f", commit {commit}" if commit else "") + " wrote this page.",
        links=[
            ("summary.csv", "all scores with their intervals and protocols"),
            ("tables/scores.md", "the same as tables"),
            *([("alignments/", "tables of the alignments")] if "alignments" in settings.facts else []),
            ("figures/", "the figures at the size of print"),
            (
                "explorer/index.html",
                f"every image with captions, attention and neighbours; written by vitcapr explore {page.parent}",
            ),
            ("report.html", f"all with their provenance; written by snakemake --report {page.parent}/report.html"),
        ],
        **parts,
    )
    write_text(page, to_html(content))
    report.line(str(page))
