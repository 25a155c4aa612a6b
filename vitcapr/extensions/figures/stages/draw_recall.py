from vitcapr.errors import UserError
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def draw_recall(
    metrics: dict[str, list[In[kinds.MetricsFile]]],
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw Recall@1, 5 and 10 of retrievers in both directions, with confidence intervals and chance level."""
    from vitcapr.extensions.figures.recall_intervals import recall_intervals
    from vitcapr.formats.scores import read_metrics
    from vitcapr.metrics.retrieval_scoring import searched
    from vitcapr.report.figures.recall import by_system
    from vitcapr.report.figures.style import save_pictures

    read = {name: [read_metrics(path) for path in paths] for name, paths in metrics.items()}
    every = [content for contents in read.values() for content in contents]
    pools = sorted({f"{content['dataset']} {content['split']}" for content in every})
    if len(pools) > 1:
        raise UserError(
            f"scores of {' and '.join(pools)} cannot share a figure", remedy="give the metrics of one split"
        )
    systems = by_system({name: [content["metrics"] for content in contents] for name, contents in read.items()})
    figure = recall_intervals(systems, searched(content["protocol"] for content in every))
    save_pictures(figure, pictures, report)
