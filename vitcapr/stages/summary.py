from typing import Annotated

from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def summary(
    experiment: Annotated[str, "Name of the experiment"],
    report: Reporter,
    summary: Out[kinds.SummaryFile],
    table: Annotated[list[Out[kinds.TableFile]], "scores.md, scores.html: the same for people"],
    metrics: list[In[kinds.MetricsFile]] | None = None,
) -> None:
    """Collect the scores of an experiment, also in the summary.csv of all experiments in the folder above."""
    from vitcapr.formats.page import write_page
    from vitcapr.formats.scores import collect, read_metrics, tidy, write_summary
    from vitcapr.report.score_tables import scores_page

    found = [read_metrics(path) for path in metrics or []]
    rows = tidy(found, experiment)
    write_summary(summary, rows)
    write_page(table, scores_page(rows))
    collect(summary.parent.parent / "summary.csv", rows, experiment)
    report.line(f"summary: {len(rows)} scores of {len(found)} files in {summary}")
