from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Language
from vitcapr.stages._drawing import MANIFEST, Drawing, Experiment, Pictures


def _files(experiment: Experiment, path: str) -> dict[str, list[str]]:
    """Return a file of every training whose number of pairs varies in a grid, by its system."""
    families = experiment.retrieval.pair_families.items()
    return {system: [f"results/{{experiment}}/{path.format(name)}" for name in names] for system, names in families}


@Drawing(
    files=lambda _: ["learning_curve/{split}/learning_curve"],
    inputs=lambda experiment: {
        "cards": _files(experiment, "retrievers/{}/card.json"),
        "metrics": _files(experiment, "metrics/retrieval/{}/{{split}}/metrics.json"),
        "manifest": MANIFEST,
    },
    values=lambda experiment: {"language": experiment.config.text.language},
    each=lambda experiment: [
        {"split": split} for split in experiment.models.splits if experiment.retrieval.pair_families
    ],
    caption="Recall@1 on the {split} split over the number of training pairs, on a logarithmic axis: the mean over "
    "the seeds, a standard deviation each way as a band, and every training as a dot.",
    category="Retrieval",
    labels={"figure": "recall over training pairs", "split": "{split}"},
)
def draw_learning_curve(
    cards: dict[str, list[In[kinds.CardFile]]],
    metrics: dict[str, list[In[kinds.MetricsFile]]],
    manifest: In[kinds.ManifestFile],
    language: Language,
) -> Pictures:
    """Draw Recall@1 over the number of training pairs: mean and spread over the trainings of each system.

    The model card gives the number of pairs. A training without a number of pairs used all captions of the training
    split.
    """
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import read_metrics
    from vitcapr.metrics.retrieval_scoring import searched
    from vitcapr.report.figures.learning_curve import draw_trainings

    all_pairs = len(read_manifest(manifest).captions_of("train", language))
    scores = {name: [read_metrics(path) for path in paths] for name, paths in metrics.items()}
    pools = searched(content["protocol"] for contents in scores.values() for content in contents)
    return draw_trainings(cards, scores, all_pairs, pools)
