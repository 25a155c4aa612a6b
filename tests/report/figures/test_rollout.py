import json

import numpy as np
import pytest
from PIL import Image
from transformers import ViTConfig, ViTModel

from vitcapr.errors import UserError
from vitcapr.report.figures.attention import Looked, concentrated, rank_correlation, rolled_out_and_attended
from vitcapr.stages.draw_rollout import draw_rollout


def looked(picture, words=("a", "dog", "runs"), grid=(3, 4)):
    generator = np.random.default_rng(0)
    patches = grid[0] * grid[1]
    rolled = generator.dirichlet(np.ones(patches)).reshape(grid)
    return Looked(picture, words, rolled, generator.dirichlet(np.ones(patches), len(words)).reshape(-1, *grid))


def test_rank_correlation_compares_the_order_of_patches():
    assert rank_correlation(np.array([[1, 2], [3, 4]]), np.array([[1, 10], [11, 99]])) == pytest.approx(1)
    assert rank_correlation(np.array([1, 2, 3, 4]), np.array([4, 3, 2, 1])) == pytest.approx(-1)
    assert rank_correlation(np.array([1, 2, 3]), np.array([1, 3, 2])) == pytest.approx(0.5)
    assert np.isnan(rank_correlation(np.ones(4), np.arange(4)))


def test_words_with_the_most_concentrated_attention_keep_the_captions_order():
    weights = np.array([[0.25] * 4, [0, 0, 0, 1], [0.7, 0.1, 0.1, 0.1], [0.5, 0.5, 0, 0]]).reshape(4, 2, 2)
    assert concentrated(weights, 2) == [1, 3]
    assert concentrated(weights[:1], 2) == [0]


def test_a_row_a_picture_with_both_kinds_of_attention(picture):
    case = looked(picture)
    figure = rolled_out_and_attended([case, looked(picture, ("one",)), looked(picture, ())])
    titles = [axes.get_title() for axes in figure.axes[:-1]]
    chosen = [case.words[word] for word in concentrated(case.attended, 2)]
    both = ["picture", "ViT, rolled out", "captioner, all words"]
    assert titles == [*both, *chosen, *both, "one", *both[:2]]
    assert {axes.images[1].get_clim() for axes in figure.axes if len(axes.images) == 2} == {(0, 1)}
    heat = np.asarray(figure.axes[1].images[1].get_array())
    y, x = np.unravel_index(heat.argmax(), heat.shape)
    place = int(y / heat.shape[0] * 3), int(x / heat.shape[1] * 4)
    assert place == np.unravel_index(case.rolled_out.argmax(), (3, 4))
    said = [text.get_text() for text in figure.texts]
    assert said[0] == f"peak {np.quantile(case.rolled_out * 12, 0.995):.1f}"
    assert said[1].endswith(f", ρ {rank_correlation(case.rolled_out, case.attended.mean(axis=0)):.2f}")
    assert said[4] == "a dog runs"


@pytest.mark.parametrize("size", [(400, 20), (20, 400)])
def test_nothing_overlaps_or_leaves_the_page(size):
    words = ["superextraordinarilylongwords"] * 40
    figure = rolled_out_and_attended([looked(Image.new("RGB", size), words)] * 2)
    renderer = figure.canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    boxes += [text.get_window_extent(renderer) for text in figure.texts]
    for number, box in enumerate(boxes):
        assert box.y0 >= 0
        assert box.y1 <= figure.bbox.y1
        assert all(not box.padded(-1).overlaps(other.padded(-1)) for other in boxes[number + 1 :])


@pytest.fixture
def backbone(tmp_path):
    """A random ViT that sees the toy's grid of 3 x 4 patches, as a checkpoint on disk."""
    config = ViTConfig(
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=(24, 32),
        patch_size=8,
    )
    ViTModel(config, add_pooling_layer=False).save_pretrained(tmp_path / "vit")
    return tmp_path / "vit"


def test_the_stage_draws_the_images_of_draw_attention(draw, dataset, backbone, tmp_path):
    settings = json.dumps({"figures": {"attended": 2}, "backbone": {"source": str(backbone)}})
    values = {"captions": tmp_path / "captions.json", "attention": tmp_path / "attention.npz", "split": "test"}
    log = draw(draw_rollout, "rollout", manifest=dataset, settings=settings, **values)
    assert "image i4: rank correlation" in log
    assert "image i5: rank correlation" in log


def test_attention_over_another_grid_is_a_mistake(draw, dataset, backbone, tmp_path):
    content = dict(np.load(tmp_path / "attention.npz"))
    np.savez(tmp_path / "attention.npz", **{**content, "grid": np.array([4, 3])})
    values = {"captions": tmp_path / "captions.json", "attention": tmp_path / "attention.npz", "split": "test"}
    with pytest.raises(UserError, match="3 x 4 patches, the captioner attends to 4 x 3"):
        draw(draw_rollout, manifest=dataset, settings='{"backbone": {"source": "vit"}}', backbone=backbone, **values)
