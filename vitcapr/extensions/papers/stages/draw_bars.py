from vitcapr.extensions.papers.settings import followed_paper
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import Drawing, Pictures
from vitcapr.stages.draw_recall import metrics_of_systems


@Drawing(
    files=lambda _: ["recall/{split}/bars"],
    inputs=lambda experiment: {"metrics": metrics_of_systems(experiment)},
    each=lambda experiment: [
        {"split": split}
        for split in experiment.models.splits
        if experiment.retrieval.recall_systems and followed_paper(experiment.config) == "blip2-flickr30k"
    ],
    caption="Recall@1, 5 and 10 of all retrievers on the {split} split as bars from 0; for a retriever that was "
    "trained with several seeds the mean.",
    category="Retrieval",
    labels={"figure": "recall of all retrievers, bars", "split": "{split}"},
)
def draw_bars(metrics: dict[str, list[In[kinds.MetricsFile]]]) -> Pictures:
    """Draw Recall@1, 5 and 10 of retrievers as grouped bars from 0: figure 2 of the BLIP-2 projection paper."""
    from vitcapr.formats.scores import read_metrics
    from vitcapr.report.figures.recall import by_system, recall_bars

    read = {name: [read_metrics(path)["metrics"] for path in paths] for name, paths in metrics.items()}
    return recall_bars(by_system(read))
