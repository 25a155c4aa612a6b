from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter

FIGURES = {"captioners": "curves", "retrievers": "retrievers", "backbones": "backbone"}
"""The name of the figure of each section of models."""


@stage()
def draw_curves(
    histories: dict[str, In[kinds.HistoryFile]],
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
    cards: dict[str, In[kinds.CardFile]] | None = None,
) -> None:
    """Draw the training curves of captioners, retrievers and the backbone: figure 3 of ViTCap-R.

    Histories and cards have names such as captioners/NAME.
    """
    from vitcapr.report.figures.curves import draw_histories
    from vitcapr.report.figures.style import save_pictures

    drawn = draw_histories(histories, cards or {})
    save_pictures({FIGURES[section]: figure for section, figure in drawn.items()}, pictures, report)
