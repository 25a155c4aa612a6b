from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import Drawing, Pictures


@Drawing(
    files=lambda _: ["loss_curves/{loss_curves}"],
    inputs=lambda experiment: {
        key: lambda wildcards, file=file: {
            name: f"results/{wildcards.experiment}/finetuned_dual_encoders/{name}/{file}"
            for name in experiment.config.run.loss_curves[wildcards.loss_curves]
        }
        for key, file in (("histories", "history.csv"), ("cards", "card.json"))
    },
    each=lambda experiment: [{"loss_curves": name} for name in experiment.config.run.loss_curves],
    caption="Losses after every epoch, of models that differ in one setting. A star marks the epoch whose "
    "weights are used.",
    category="Training",
    labels={"figure": "losses of finetuned_dual_encoders", "compared": "{loss_curves}"},
)
def draw_loss_curves(histories: dict[str, In[kinds.HistoryFile]], cards: dict[str, In[kinds.CardFile]]) -> Pictures:
    """Draw the training and validation losses of several trainings over the epochs: figures 11 and 12 of Peng 2025."""
    from vitcapr.formats.training import read_history
    from vitcapr.report.figures.curves import read_best, training_curves

    read = {name: read_history(path) for name, path in histories.items()}
    return training_curves(read, "finetuned_dual_encoders", read_best(cards))
