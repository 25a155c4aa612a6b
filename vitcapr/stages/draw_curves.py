from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import Drawing, Experiment, Pictures

FIGURES = {"captioners": "curves", "retrievers": "retrievers", "backbones": "backbone"}
"""The name of the figure of each kind of model."""


def _models(experiment: Experiment) -> list[str]:
    """Return the models with a history, such as captioners/plain."""
    models = {kind: experiment.models.trained(kind) for kind in FIGURES}
    models["retrievers"] = [name for name in models["retrievers"] if experiment.config.retrievers[name].training.phases]
    return [f"{kind}/{name}" for kind, names in models.items() for name in names]


@Drawing(
    files=lambda experiment: list(
        dict.fromkeys(f"curves/{FIGURES[model.partition('/')[0]]}" for model in _models(experiment))
    ),
    inputs=lambda experiment: {
        "histories": {model: f"results/{{experiment}}/{model}/history.csv" for model in _models(experiment)},
        "cards": {
            model: f"results/{{experiment}}/{model}/card.json"
            for model in _models(experiment)
            if not model.startswith("backbones/")
        },
    },
    caption="Loss on the training and the validation split after every epoch, and the validation score where it "
    "was measured; for self-critical phases, the reward in training. A star marks the "
    "epoch whose weights are used, on the score that chose it. A dotted line marks the start of a phase.",
    category="Training",
    labels={"figure": "training curves"},
)
def draw_curves(histories: dict[str, In[kinds.HistoryFile]], cards: dict[str, In[kinds.CardFile]] | None) -> Pictures:
    """Draw the training curves of captioners, retrievers and the backbone: figure 3 of ViTCap-R.

    Histories and cards have names such as captioners/NAME.
    """
    from vitcapr.report.figures.curves import draw_histories

    return {FIGURES[kind]: figure for kind, figure in draw_histories(histories, cards or {}).items()}
