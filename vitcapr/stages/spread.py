from typing import Annotated, Any, Self

from vitcapr.config.base import StageSettings
from vitcapr.config.experiment import ScoredModels, SeededModel
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


class SpreadSettings(StageSettings):
    models: dict[str, SeededModel]
    """By the names under which they are scored."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        return cls(models=ScoredModels(config).seeded)


@stage()
def spread(
    summary: In[kinds.SummaryFile],
    settings: SpreadSettings,
    report: Reporter,
    spread: Annotated[Out[kinds.TableFile], "spread.csv: each score of each model over its seeds"],
    pairs: Annotated[Out[kinds.TableFile], "spread_pairs.csv: models in pairs, seed by seed"],
    table: Annotated[list[Out[kinds.TableFile]], "spread.md, spread.html: both for people"],
) -> None:
    """Compute mean and spread of the scores over seeds, and paired differences of models and decodings."""
    from vitcapr.files import write_text
    from vitcapr.formats.containers import frame_to_csv
    from vitcapr.formats.page import write_page
    from vitcapr.formats.scores import read_summary
    from vitcapr.formats.tables import to_page
    from vitcapr.metrics.seed_spread import paired
    from vitcapr.metrics.seed_spread import spread as means_of
    from vitcapr.report.score_tables import spread_tables

    scores, models = read_summary(summary), settings.models
    seed_average, one_against_other = means_of(scores, models), paired(scores, models)
    write_text(spread, frame_to_csv(seed_average))
    write_text(pairs, frame_to_csv(one_against_other))
    write_page(table, to_page(spread_tables(seed_average, one_against_other), "Over seeds"))
    groups = seed_average[["model", "decoding"]].drop_duplicates()
    report.line(f"spread: {len(groups)} models over seeds in {table[0]}")
