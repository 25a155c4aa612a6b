from typing import Annotated

from vitcapr.config.report import SCORERS, IntervalSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage(execution_only=SCORERS)
def differences(
    settings: IntervalSettings,
    report: Reporter,
    differences: Out[kinds.DifferencesFile],
    table: Annotated[list[Out[kinds.TableFile]], "differences.md, differences.html: the same for people"],
    comparisons: list[In[kinds.ComparisonFile]] | None = None,
    ranks: dict[str, In[kinds.RanksFile]] | None = None,
) -> None:
    """Collect the paired differences of systems in their main scores, corrected for their number.

    Each retrieval model is compared with the first that ranks the same captions.
    """
    from vitcapr.formats.page import write_page
    from vitcapr.formats.scores import read_comparison, write_differences
    from vitcapr.formats.tables import to_page
    from vitcapr.metrics.bootstrap import NOT_SHOWN
    from vitcapr.metrics.system_comparison import paired_differences
    from vitcapr.report.score_tables import difference_table

    content = map(read_comparison, comparisons or [])
    rows = paired_differences(content, ranks or {}, **settings.metrics.resampling)
    write_differences(differences, rows)
    write_page(table, to_page([difference_table(rows)]))
    report.line(f"differences: {len(rows)} tests, {(rows['verdict'] != NOT_SHOWN).sum()} differences shown")
