from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter

INVERSE_TEMPERATURES = (5.0, 10.0, 20.0, 40.0)
"""To try. Larger values give more weight to the nearest queries of the bank."""
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""To try with each; 0 is the cosine alone."""


@stage()
def weigh_query_bank(
    embeddings: In[kinds.EmbeddingsFile],
    query_bank: In[kinds.QueryBankFile],
    report: Reporter,
    weight: Out[kinds.WeightFile],
) -> None:
    """Try inverse temperatures and weights of the query bank, and keep the pair with the highest sum of recalls."""
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.metrics.query_bank import weigh

    selected = weigh(read_embeddings(embeddings), read_embeddings(query_bank), INVERSE_TEMPERATURES, WEIGHTS)
    selected.write(weight)
    best = max(row["rsum"] for row in selected.curve)
    report.line(
        f"inverse temperature {selected.inverse_temperature:g}, weight {selected.weight:g}, rsum {100 * best:.1f} on "
        f"validation (the cosine alone {100 * selected.curve[0]['rsum']:.1f})"
    )
