from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def draw_bars(
    metrics: dict[str, list[In[kinds.MetricsFile]]],
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw Recall@1, 5 and 10 of retrievers as grouped bars from 0: figure 2 of the BLIP-2 projection paper."""
    from vitcapr.extensions.papers.paper_figures import recall_bars
    from vitcapr.formats.scores import read_metrics
    from vitcapr.report.figures.recall import by_system
    from vitcapr.report.figures.style import save_pictures

    read = {name: [read_metrics(path)["metrics"] for path in paths] for name, paths in metrics.items()}
    save_pictures(recall_bars(by_system(read)), pictures, report)
