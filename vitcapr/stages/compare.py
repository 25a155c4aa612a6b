from typing import Annotated

from vitcapr.config.report import SCORERS, IntervalSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


# The metrics count: each says how its scores are made of the statistics of images.
@stage(execution_only=SCORERS - {"metrics.caption"})
def compare(
    before: Annotated[In[kinds.MetricsFile], "metrics.json of one system"],
    before_images: Annotated[In[kinds.PerImageFile], "per_image.parquet of the same system"],
    after: Annotated[In[kinds.MetricsFile], "metrics.json of the other system"],
    after_images: Annotated[In[kinds.PerImageFile], "per_image.parquet of the other system"],
    settings: IntervalSettings,
    report: Reporter,
    comparison: Out[kinds.ComparisonFile],
    table: Annotated[list[Out[kinds.TableFile]], "comparison.md, comparison.html: the same for people"],
    before_claims: In[kinds.CheckedClaimsFile] | None = None,
    after_claims: In[kinds.CheckedClaimsFile] | None = None,
) -> None:
    """Compare two systems scored on the same split: the difference of every score, its interval and its test.

    With the checked claims of both, claims are compared like scores.
    """
    from vitcapr.formats.claims import read_claims
    from vitcapr.formats.page import write_page
    from vitcapr.formats.scores import write_comparison
    from vitcapr.metrics.system_comparison import compare_systems, read_scored, with_claims
    from vitcapr.report.score_tables import comparison_page, comparison_rows

    systems = read_scored(before, before_images), read_scored(after, after_images)
    if before_claims and after_claims:
        claims = read_claims(before_claims), read_claims(after_claims)
        systems = with_claims(systems[0], claims[0]), with_claims(systems[1], claims[1])
    content = compare_systems(*systems, **settings.metrics.resampling)
    write_comparison(comparison, content)
    write_page(table, comparison_page(content), home="../../../../index.html")
    for row in comparison_rows(content["metrics"]):
        report.line(f"compare: {row[0].text} {row[1].text} to {row[2].text}, {row[-1].text}")
