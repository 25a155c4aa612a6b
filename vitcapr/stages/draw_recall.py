from vitcapr.errors import UserError
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import Drawing, Experiment, Pictures


def metrics_of_systems(experiment: Experiment) -> dict[str, list[str]]:
    """Return the scores of each system."""
    files: dict[str, list[str]] = {}
    for name, system in experiment.retrieval.recall_systems.items():
        files.setdefault(system, []).append(f"results/{{experiment}}/metrics/retrieval/{name}/{{split}}/metrics.json")
    return files


@Drawing(
    files=lambda _: ["recall/{split}/recall"],
    inputs=lambda experiment: {"metrics": metrics_of_systems(experiment)},
    each=lambda experiment: [
        {"split": split} for split in experiment.models.splits if experiment.retrieval.recall_systems
    ],
    caption="Recall@1, 5 and 10 of all retrievers on the {split} split, with 95 % intervals; for a retriever that "
    "was trained with several seeds the mean, with a standard deviation over them each way. From image to text, "
    "any of an image's captions is a hit. Each panel has a scale of its own.",
    category="Retrieval",
    labels={"figure": "recall of all retrievers", "split": "{split}"},
)
def draw_recall(metrics: dict[str, list[In[kinds.MetricsFile]]]) -> Pictures:
    """Draw Recall@1, 5 and 10 of retrievers in both directions, with confidence intervals and chance level."""
    from vitcapr.formats.scores import read_metrics
    from vitcapr.metrics.retrieval_scoring import searched
    from vitcapr.report.figures.recall import by_system, recall_intervals

    read = {name: [read_metrics(path) for path in paths] for name, paths in metrics.items()}
    every = [content for contents in read.values() for content in contents]
    pools = sorted({f"{content['dataset']} {content['split']}" for content in every})
    if len(pools) > 1:
        raise UserError(
            f"scores of {' and '.join(pools)} cannot share a figure", remedy="give the metrics of one split"
        )
    systems = by_system({name: [content["metrics"] for content in contents] for name, contents in read.items()})
    return recall_intervals(systems, searched(content["protocol"] for content in every))
