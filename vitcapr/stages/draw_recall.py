"""Draw the recall of all retrievers side by side."""

from vitcapr.errors import UserError
from vitcapr.formats.kinds import FigureFile, MetricsFile
from vitcapr.pipeline.figure import Experiment, Figure
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


def _scored(experiment: Experiment) -> list[str]:
    """The names of the scores: every model, followed by its query-bank scores."""
    selection = experiment.selection
    # Models of a learning curve have a figure of their own. They are drawn here only if there are no others.
    others = [name for name in selection.ranked if not experiment.retrieval.is_on_a_curve(name)]
    banks = {model: name for name, model in selection.querybank_scores.items()}
    return [each for name in others or selection.ranked for each in (name, banks.get(name)) if each is not None]


@stage(
    figure=Figure(
        files=lambda _: ["recall/{split}/recall"],
        inputs=lambda experiment: {
            "metrics": [
                f"{experiment.selection.root}/metrics/retrieval/{name}/{{split}}/metrics.json"
                for name in _scored(experiment)
            ],
        },
        bound=lambda experiment: {"metrics": [experiment.selection.system_of(name) for name in _scored(experiment)]},
        each=lambda experiment: [
            {"split": split} for split in experiment.selection.splits if experiment.selection.ranked
        ],
        caption="Recall@1, 5 and 10 of all retrievers on the {split} split, with 95 % intervals; for a retriever that "
        "was trained with several seeds the mean, with a standard deviation over them each way. From image to text, "
        "any of an image's captions is a hit. The dotted line is what a random order gives.",
        category="Retrieval",
        labels={"figure": "recall of all retrievers", "split": "{split}"},
    )
)
def draw_recall(
    metrics: dict[str, list[In[MetricsFile]]],
    report: Reporter,
    pictures: list[Out[FigureFile]],
) -> None:
    """Draw Recall@1, 5 and 10 of retrievers in both directions, with confidence intervals and chance level."""
    from vitcapr.formats.scores import read_metrics
    from vitcapr.metrics.retrieval_scoring import searched
    from vitcapr.report.figures.recall import by_system, recall_bars
    from vitcapr.report.figures.style import save_pictures

    read = {name: [read_metrics(path) for path in paths] for name, paths in metrics.items()}
    every = [content for contents in read.values() for content in contents]
    pools = sorted({f"{content['dataset']} {content['split']}" for content in every})
    if len(pools) > 1:
        raise UserError(
            f"scores of {' and '.join(pools)} cannot share a figure", remedy="give the metrics of one split"
        )
    systems = by_system({name: [content["metrics"] for content in contents] for name, contents in read.items()})
    try:
        figure = recall_bars(systems, searched(content["protocol"] for content in every))
    except ValueError as error:
        raise UserError(str(error), remedy="give the metrics of score_retrieval") from error
    save_pictures({"recall": figure}, pictures, report)
