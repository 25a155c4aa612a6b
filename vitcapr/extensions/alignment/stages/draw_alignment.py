from typing import Annotated

from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def draw_alignment(
    scores: Annotated[In[kinds.TableFile], "scores.csv of the comparison"],
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw Recall@1 of a comparison of alignments over the number of training pairs: mean and spread of each system."""
    import pandas as pd

    from vitcapr.extensions.alignment.alignment_figures import alignment_curve
    from vitcapr.report.figures.style import save_pictures

    save_pictures(alignment_curve(pd.read_csv(scores)), pictures, report)
