"""Recall of alignments over the number of training pairs."""

import pandas as pd
from matplotlib.figure import Figure

from vitcapr.figures.learning_curve import TrainedRetriever, learning_curve


def alignment_curve(scores: pd.DataFrame) -> Figure:
    """Recall@1 of every system of a study, as :func:`vitcapr.figures.learning_curve.learning_curve` draws it.

    Args:
        scores: scores.csv of the study.
    """
    columns = ["pairs", "i2t_recall_1", "t2i_recall_1"]
    systems = {
        str(system): [TrainedRetriever(*row) for row in runs[columns].itertuples(index=False, name=None)]
        for system, runs in scores.groupby("system", sort=False)
    }
    images, captions = (f"{int(scores[name].iloc[0]):,} {name}" for name in ("images", "captions"))
    return learning_curve(systems, {"i2t": f"{images} among {captions}", "t2i": f"{captions} among {images}"})
