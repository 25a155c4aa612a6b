from typing import Annotated, Any, Self

from pydantic import Field

from vitcapr.config.experiment import ScoredModels
from vitcapr.config.report import SCORERS, IntervalSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


class AblateSettings(IntervalSettings):
    pairs: list[tuple[str, str]] = Field(default_factory=list)
    """The names of embeddings: the whole model, and one that lacks something."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        return cls(metrics=config.metrics, pairs=ScoredModels(config).ablations)


@stage(execution_only=SCORERS)
def ablate(
    ranks: Annotated[list[In[kinds.RanksFile]], "MODEL/SPLIT/ranks.npz of every model and split"],
    settings: AblateSettings,
    report: Reporter,
    numbers: Annotated[Out[kinds.TableFile], "ablations.csv: every difference with its interval"],
    table: Annotated[list[Out[kinds.TableFile]], "ablations.md, ablations.html: the same for people"],
) -> None:
    """Compare Recall@K of models with that of a whole model, with paired intervals."""
    from vitcapr.files import write_text
    from vitcapr.formats.containers import frame_to_csv
    from vitcapr.formats.page import write_page
    from vitcapr.formats.tables import to_page
    from vitcapr.metrics.system_comparison import ablation_numbers
    from vitcapr.report.score_tables import ablation_tables

    files = {(path.parent.parent.name, path.parent.name): path for path in ranks}
    differences = ablation_numbers(files, settings.pairs, **settings.metrics.resampling)
    write_text(numbers, frame_to_csv(differences))
    write_page(table, to_page(ablation_tables(differences, **settings.metrics.resampling), "Ablations"))
    report.line(f"ablate: {len(settings.pairs)} pairs of models in {table[0]}")
