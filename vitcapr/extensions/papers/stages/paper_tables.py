from typing import Annotated, Any, Self

from pydantic import Field

from vitcapr.config.base import StageSettings
from vitcapr.config.experiment import ScoredModels
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


class PaperTablesSettings(StageSettings):
    systems: dict[str, str] = Field(default_factory=dict)
    """The system of each model that is one seed of it."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        return cls(systems=ScoredModels(config).systems)


@stage()
def paper_tables(
    summary: In[kinds.SummaryFile],
    settings: PaperTablesSettings,
    report: Reporter,
    page: Annotated[list[Out[kinds.TableFile]], "PAPER.md, PAPER.html: all tables; each also as .md, .csv and .tex"],
    latex: Annotated[Out[kinds.TableFile], "PAPER.tex: all tables for LaTeX"],
    numbers: Annotated[Out[kinds.TableFile], "PAPER.csv: every published number"],
    section: Out[kinds.PageSectionFile],
    cards: list[In[kinds.CardFile]] | None = None,
    ranks: list[In[kinds.RanksFile]] | None = None,
    paper: Annotated[str, "Whose numbers: vitcap-r, blip2-flickr30k or bert-vit"] = "vitcap-r",
) -> None:
    """Write the tables of a paper: its numbers, those of this build and those of the literature.

    Rows are matched by name. For vitcap-r: the captioners ``baseline`` and ``patch_attention`` under the decodings
    ``greedy``, ``beam`` and ``reranked``, and the retrievers ``paper`` and ``paper_hard_negatives``. For
    blip2-flickr30k: the retrievers ``raw``, ``linear`` and ``mlp``. For bert-vit: the fine-tuned dual
    encoder ``fine_tuned`` and the retriever ``devise``. What has another name is a row of its own.
    """
    from vitcapr.extensions.papers.beside_papers import beside_the_paper, write_paper_tables
    from vitcapr.extensions.papers.beside_papers import paper_tables as tables_of
    from vitcapr.formats.scores import read_summary
    from vitcapr.formats.tables import write_page_section

    tables = tables_of(paper, read_summary(summary), systems=settings.systems, cards=cards or [], ranks=ranks or [])
    write_paper_tables(paper, tables, page=page, latex=latex, numbers=numbers)
    write_page_section(section, beside_the_paper(paper, tables))
    report.line(f"paper_tables: {len(tables)} tables beside {paper} in {latex.parent}")
