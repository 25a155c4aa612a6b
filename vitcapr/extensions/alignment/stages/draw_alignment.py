from typing import Annotated

from vitcapr.formats import kinds
from vitcapr.loader import run_entries
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import Drawing, Pictures


@Drawing(
    files=lambda _: ["alignments/{alignment}/recall"],
    inputs=lambda _: {"scores": "results/{experiment}/alignments/{alignment}/scores.csv"},
    # With one number of pairs, the table says it.
    each=lambda experiment: [
        {"alignment": name} for name, one in run_entries(experiment.config, "alignments").items() if len(one.sizes) != 1
    ],
    caption="Recall@1 of the alignments {alignment} on the test split over the number of training pairs, on a "
    "logarithmic axis: the mean over the seeds, a standard deviation each way as a band, and every fit as a dot.",
    category="Retrieval",
    labels={"figure": "alignments over training pairs", "alignment": "{alignment}"},
)
def draw_alignment(scores: Annotated[In[kinds.TableFile], "scores.csv of the comparison"]) -> Pictures:
    """Draw Recall@1 of a comparison of alignments over the number of training pairs: mean and spread of each system."""
    import pandas as pd

    from vitcapr.extensions.alignment.figures import alignment_curve

    return alignment_curve(pd.read_csv(scores))
