"""Draw training curves of captioners, of retrievers and of the backbone: figure 3 of ViTCap-R."""

from vitcapr.errors import UserError
from vitcapr.formats.kinds import FigureFile, HistoryFile
from vitcapr.pipeline.figure import Experiment, Figure
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


def _histories(experiment: Experiment) -> dict[str, dict[str, str]]:
    """The histories of the models of each figure, by figure."""
    names = {
        ("curves", "captioners"): experiment.trained("captioners"),
        ("retrievers", "retrievers"): [
            name for name in experiment.trained("retrievers") if experiment.config.retrievers[name].learns
        ],
        ("backbone", "backbones"): experiment.trained("backbones"),
    }
    return {
        figure: {name: f"results/{{experiment}}/{section}/{name}/history.csv" for name in models}
        for (figure, section), models in names.items()
    }


@stage(
    figure=Figure(
        files=lambda experiment: [f"curves/{name}" for name, models in _histories(experiment).items() if models],
        inputs=lambda experiment: {
            "captioners": list(_histories(experiment)["curves"].values()),
            "retrievers": list(_histories(experiment)["retrievers"].values()),
            "backbone": list(_histories(experiment)["backbone"].values()),
        },
        bound=lambda experiment: {
            "captioners": list(_histories(experiment)["curves"]),
            "retrievers": list(_histories(experiment)["retrievers"]),
        },
        caption="Loss on the training and the validation split after every epoch, and the validation score where it "
        "was measured; for self-critical phases, the reward in training. A star marks the best epoch by the score of "
        "its panel. A dotted line marks the start of a phase.",
        category="Training",
        labels={"figure": "training curves"},
    )
)
def draw_curves(
    report: Reporter,
    pictures: list[Out[FigureFile]],
    captioners: dict[str, In[HistoryFile]] | None = None,
    retrievers: dict[str, In[HistoryFile]] | None = None,
    backbone: In[HistoryFile] | None = None,
) -> None:
    """Draw the training curves of captioners, retrievers and the backbone."""
    from vitcapr.formats.training import read_history
    from vitcapr.report.figures.curves import backbone_curves, retriever_curves, training_curves
    from vitcapr.report.figures.style import save_pictures

    figures = {}
    if captioners:
        figures["curves"] = training_curves({name: read_history(path) for name, path in captioners.items()})
    if retrievers:
        figures["retrievers"] = retriever_curves({name: read_history(path) for name, path in retrievers.items()})
    if backbone is not None:
        figures["backbone"] = backbone_curves(read_history(backbone))
    if not figures:
        raise UserError("no history is given", remedy="give --captioners, --retrievers or --backbone")
    save_pictures(figures, pictures, report)
