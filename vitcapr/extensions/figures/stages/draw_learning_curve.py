from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Language, Out, stage
from vitcapr.progress import Reporter


@stage()
def draw_learning_curve(
    cards: dict[str, list[In[kinds.CardFile]]],
    metrics: dict[str, list[In[kinds.MetricsFile]]],
    manifest: In[kinds.ManifestFile],
    language: Language,
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw Recall@1 over the number of training pairs: mean and spread over the trainings of each system.

    The model card gives the number of pairs. A training without a number of pairs used all captions of the training
    split.
    """
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import read_metrics
    from vitcapr.metrics.retrieval_scoring import searched
    from vitcapr.report.figures.learning_curve import draw_trainings
    from vitcapr.report.figures.style import save_pictures

    all_pairs = len(read_manifest(manifest).captions_of("train", language))
    scores = {name: [read_metrics(path) for path in paths] for name, paths in metrics.items()}
    pools = searched(content["protocol"] for contents in scores.values() for content in contents)
    save_pictures(draw_trainings(cards, scores, all_pairs, pools), pictures, report)
