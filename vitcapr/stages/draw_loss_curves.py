from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import Drawing, Pictures


@Drawing(
    files=lambda _: ["loss_curves/{loss_curves}"],
    inputs=lambda experiment: {
        "histories": lambda wildcards: {
            name: f"results/{wildcards.experiment}/finetuned_dual_encoders/{name}/history.csv"
            for name in experiment.config.run.loss_curves[wildcards.loss_curves]
        },
    },
    each=lambda experiment: [{"loss_curves": name} for name in experiment.config.run.loss_curves],
    caption="Losses after every epoch, of models that differ in one setting. A star marks the best epoch.",
    category="Training",
    labels={"figure": "losses of finetuned_dual_encoders", "compared": "{loss_curves}"},
)
def draw_loss_curves(histories: dict[str, In[kinds.HistoryFile]]) -> Pictures:
    """Draw the training and validation losses of several trainings over the epochs: figures 11 and 12 of Peng 2025."""
    from vitcapr.formats.training import read_history
    from vitcapr.report.figures.curves import training_curves

    return training_curves({name: read_history(path) for name, path in histories.items()}, "finetuned_dual_encoders")
