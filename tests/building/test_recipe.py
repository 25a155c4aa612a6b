"""That a training section becomes the loop's recipe, whatever its phases know besides."""

from vitcapr.building.recipe import recipe_of
from vitcapr.config.finetuned_dual_encoder import FinetuningConfig
from vitcapr.config.retriever import RetrieverPhaseConfig, RetrieverTrainingConfig
from vitcapr.training.loop import Recipe
from vitcapr.training.schedule import Phase


def test_every_setting_of_the_loop_arrives() -> None:
    phase = RetrieverPhaseConfig(
        epochs=7, learning_rate=0.5, schedule="step", final_fraction=0.25, warmup_steps=9, step_epochs=3, gamma=0.1
    )
    training = RetrieverTrainingConfig(
        phases=[phase],
        optimizer="adamw",
        weight_decay=0.02,
        clip_norm=None,
        ema_decay=0.9,
        patience=4,
        select_by="rsum",
        save_every_steps=11,
    )
    expected = Phase(7, 0.5, "step", 0.25, 9, 3, 0.1)
    assert recipe_of(training, select_by="rsum") == Recipe(
        (expected,), "adamw", 0.02, None, 0.9, 4, "validation_rsum", 11
    )


def test_a_model_may_have_defaults_of_its_own() -> None:
    made = recipe_of(FinetuningConfig())
    assert made == Recipe((Phase(5, 1e-4, "constant"),), "adam")
