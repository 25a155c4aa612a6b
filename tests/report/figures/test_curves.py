import numpy as np
import pandas as pd
import pytest

from tests.report.conftest import check_layout
from vitcapr.report.figures.curves import backbone_curves, training_curves


def history(validation=(3.0, 2.0, 2.5), cider=(0.1, 0.4, 0.3), rate=(1e-3, 1e-3, 1e-4), phase=(1, 1, 2)):
    epochs = len(validation)
    return pd.DataFrame(
        {
            "epoch": range(1, epochs + 1),
            "phase": phase,
            "train_loss": np.linspace(4, 1, epochs),
            "validation_loss": validation,
            "validation_cider": cider,
            "learning_rate": rate,
        }
    )


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


def stars(axes):
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.get_lines() if line.get_marker() == "*"]


def legend(figure):
    return {text.get_text() for text in figure.legends[0].get_texts()}


def test_a_panel_for_each_quantity_with_the_values_of_the_history():
    figure = training_curves({"attention": history()}, best={"attention": ("validation_cider", 2)})
    assert titles(figure) == ["loss (nats per token)", "CIDEr on validation", "learning rate, end of epoch"]
    losses = [line.get_ydata().tolist() for line in figure.axes[0].get_lines()[:2]]
    assert losses == [[4, 2.5, 1], [3, 2, 2.5]]
    assert figure.axes[2].get_lines()[0].get_ydata().tolist() == [1e-3, 1e-3, 1e-4]
    assert legend(figure) == {
        "attention",
        "training, mean of the epoch",
        "validation",
        "the epoch whose weights are used",
    }
    assert all(axes.get_xlabel() == "epoch" for axes in figure.axes)
    assert [stars(axes) for axes in figure.axes] == [[], [(2, 40)], []]  # CIDEr chose the weights
    # A phase begins between two epochs.
    assert [line.get_xdata()[0] for line in figure.axes[0].get_lines() if line.get_linestyle() == ":"] == [2]


def test_models_without_cider_have_no_panel_and_missing_epochs_are_skipped():
    nothing = (np.nan,) * 3
    assert titles(training_curves({"a": history(cider=nothing)})) == [
        "loss (nats per token)",
        "learning rate, end of epoch",
    ]
    best = {"a": ("validation_loss", 2), "b": ("validation_cider", 2)}
    figure = training_curves({"a": history(cider=nothing), "b": history(cider=(np.nan, 0.2, np.nan))}, best=best)
    assert [stars(axes) for axes in figure.axes[:2]] == [[(2, 2.0)], [(2, 20)]]


def test_one_epoch_can_be_drawn():
    figure = training_curves({"a": history((2.0,), (0.1,), (1e-3,), (1,))}, best={"a": ("validation_loss", 1)})
    assert stars(figure.axes[0]) == [(1, 2.0)]
    assert all(line.get_marker() != "None" for axes in figure.axes for line in axes.get_lines())


def test_legend_and_panels_share_the_page_without_overlap():
    models = 12
    figure = training_curves({f"a-rather-long-name-of-a-model-{n}": history() for n in range(models)})
    check_layout(figure)
    assert len(legend(figure)) == models + 2


def test_the_backbones_scores_are_drawn_by_name():
    table = pd.DataFrame(
        {"epoch": [1, 2], "train_loss": [3, 2], "validation_loss": [3, 2.5], "kind": [0.2, 0.9], "color": [0.1, 0.8]}
    )
    figure = backbone_curves(table)
    assert [line.get_label() for line in figure.axes[1].get_lines()] == ["kind", "colour"]
    assert figure.axes[1].get_lines()[0].get_ydata().tolist() == [20, 90]


def test_a_self_critical_phase_has_a_reward_and_no_loss():
    table = history().assign(train_loss=[4, np.nan, np.nan], train_reward=[np.nan, 0.5, 0.7])
    figure = training_curves({"attention": table, "baseline": history()})
    assert titles(figure) == [
        "loss (nats per token)",
        "reward in training (CIDEr-D)",
        "CIDEr on validation",
        "learning rate, end of epoch",
    ]
    reward = figure.axes[1].get_lines()
    assert np.asarray(reward[0].get_ydata())[1:].tolist() == [50, 70]
    assert [line.get_xdata()[0] for line in reward if line.get_linestyle() == ":"] == [2]
    assert not stars(figure.axes[1])
    rows = {round(axes.get_position().y0, 3) for axes in figure.axes}
    assert len(rows) == 2


def test_retrievers_have_their_loss_and_their_recalls():
    table = history().drop(columns="validation_cider").assign(validation_rsum=[100, 300.5, 290])
    larger = table.assign(train_loss=10 * table["train_loss"], validation_loss=10 * table["validation_loss"])
    best = {"paper": ("validation_rsum", 2)}
    figure = training_curves({"paper": table, "larger": larger}, "retrievers", best)
    assert titles(figure) == [
        "loss (validation after epoch 1: 1)",
        "recalls on validation, summed",
        "learning rate, end of epoch",
    ]
    assert [stars(axes) for axes in figure.axes] == [[], [(2, 300.5)], []]
    # Losses of different size are compared by their share of the first one; no line is wider than another.
    lines = [line for line in figure.axes[0].get_lines() if line.get_linestyle() == "-"]
    assert [line.get_ydata().tolist() for line in lines] == [pytest.approx([1, 2 / 3, 2.5 / 3])] * 2
    assert len({line.get_linewidth() for line in lines}) == 1


def test_a_loss_that_begins_at_zero_is_not_divided():
    table = history((0.0, 2.0, 1.0)).drop(columns="validation_cider").assign(validation_rsum=[100, 300, 290])
    figure = training_curves({"zero": table, "other": table.assign(validation_loss=[2.0, 1.0, 1.0])}, "retrievers")
    lines = [line for line in figure.axes[0].get_lines() if line.get_linestyle() == "-" and len(line.get_ydata())]
    assert [line.get_ydata().tolist() for line in lines] == [[1, 0.5, 0.5]]
