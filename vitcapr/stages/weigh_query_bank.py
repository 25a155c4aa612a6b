from vitcapr.config.decoding import WeighQueryBankSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def weigh_query_bank(
    embeddings: In[kinds.EmbeddingsFile],
    query_bank: In[kinds.QueryBankFile],
    settings: WeighQueryBankSettings,
    report: Reporter,
    weight: Out[kinds.WeightFile],
) -> None:
    """Try inverse temperatures and weights of the query bank, and keep the pair with the highest sum of recalls."""
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.metrics.query_bank import weigh

    tried = settings.query_bank
    steps = tried.grid_steps
    selected = weigh(
        read_embeddings(embeddings),
        read_embeddings(query_bank),
        tried.inverse_temperatures,
        [step / steps for step in range(steps + 1)],
    )
    selected.write(weight)
    best = max(row["rsum"] for row in selected.curve)
    report.line(
        f"inverse temperature {selected.inverse_temperature:g}, weight {selected.weight:g}, rsum {100 * best:.1f} on "
        f"validation (the cosine alone {100 * selected.curve[0]['rsum']:.1f})"
    )
