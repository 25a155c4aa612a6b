from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
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
    import pandas as pd

    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import read_metrics
    from vitcapr.metrics.retrieval_scoring import searched
    from vitcapr.report.figures.recall import learning_curve
    from vitcapr.report.figures.style import save_pictures

    all_pairs = len(read_manifest(manifest).captions_of("train", language))
    scores = {name: [read_metrics(path) for path in paths] for name, paths in metrics.items()}
    pools = searched(content["protocol"] for contents in scores.values() for content in contents)
    systems = {
        name: pd.DataFrame([_recalls(*each, all_pairs) for each in zip(files, scores[name], strict=True)])
        for name, files in cards.items()
    }
    save_pictures(learning_curve(systems, pools), pictures, report)


def _recalls(card: Path, scores: Mapping[str, Any], all_pairs: int) -> dict[str, float]:
    """Return Recall@1 of a training in both directions, and its number of pairs."""
    from vitcapr.formats.model import read_card
    from vitcapr.report.direction import TITLES

    try:
        pairs = read_card(card)["settings"]["retriever"]["training"]["pairs"]
        recalls = {direction: float(scores["metrics"][f"{direction}_recall_1"]["value"]) for direction in TITLES}
    except (KeyError, TypeError) as error:
        raise UserError("not the card and the scores of a retriever", where=card) from error
    return {"pairs": all_pairs if pairs is None else pairs, **recalls}
