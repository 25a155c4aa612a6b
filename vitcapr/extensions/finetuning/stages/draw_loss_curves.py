from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def draw_loss_curves(
    histories: dict[str, In[kinds.HistoryFile]],
    cards: dict[str, In[kinds.CardFile]],
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw the training and validation losses of several trainings over the epochs: figures 11 and 12 of Peng 2025."""
    from vitcapr.formats.training_files import read_history
    from vitcapr.report.figures.curves import read_best, training_curves
    from vitcapr.report.figures.style import save_pictures

    read = {name: read_history(path) for name, path in histories.items()}
    save_pictures(training_curves(read, "finetuned_dual_encoders", read_best(cards)), pictures, report)
