"""The backbone trained on pictures whose objects are known: its targets, its losses, and what it saves."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from transformers import AutoImageProcessor, AutoModel, ViTConfig, ViTModel

from tests.data_sets import write_data_set
from vitcapr.errors import UserError
from vitcapr.extensions.demo.backbone import SceneReader, loss_of, right_and_counted, start_from_patches
from vitcapr.extensions.demo.backbone_targets import (
    AROUND,
    IGNORED,
    ObjectNames,
    build_targets,
    names_of_train,
    surroundings,
)
from vitcapr.extensions.demo.dataset import write_scenes
from vitcapr.extensions.demo.settings import ScenesConfig
from vitcapr.extensions.demo.stages.train_backbone import train_backbone
from vitcapr.formats.manifest import read_manifest
from vitcapr.pipeline.run import run_stage
from vitcapr.progress import Reporter

NAMES = ObjectNames(["ball", "box"], ["red"], ["dotted", "plain"], ["a", "b", "c"], most=2)
SETTINGS = {"trained_backbone": {"patch_size": 8, "hidden_size": 16, "layers": 1, "heads": 2, "epochs": 2}}


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("scenes")
    with Reporter(stream=io.StringIO()) as reporter:
        scenes = ScenesConfig(images=20, size=32, validation=0.1, test=0.1)
        return write_scenes(directory, scenes, 1, reporter)


def train(manifest: Path, output: Path, **changes: int) -> None:
    settings = {"trained_backbone": SETTINGS["trained_backbone"] | changes}
    run_stage(train_backbone, manifest=manifest, backbone=output, settings=settings)


@pytest.fixture(scope="module")
def trained(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("backbone")
    train(scenes, output)
    return output


def test_targets_by_hand(tmp_path: Path) -> None:
    """A 4 x 4 picture in four patches: a red ball, a blue box that fills too little to tell, and nothing."""
    labels = np.zeros((4, 4), np.uint8)
    labels[:2, :2] = 1
    labels[0, 2] = 2
    labels[2:, :2] = 3
    Image.fromarray(labels).save(tmp_path / "mask.png")
    objects = pd.DataFrame(
        {
            "image_id": ["a"] * 3,
            "label": [1, 2, 3],
            "kind": ["ball", "box", "ball"],
            "color": ["red", "blue", "green"],
            "texture": ["plain", "dotted", "dotted"],
            "mask": ["mask.png"] * 3,
        }
    )
    captions = pd.DataFrame({"image_id": ["a"] * 3, "text": ["A red ball.", "Two balls, one red!", "一个红色小球。"]})
    names = ObjectNames(["ball", "box"], ["blue", "green", "red"], ["dotted", "plain"], ["ball", "red"], most=4)
    targets = build_targets(["a", "b"], objects, captions, names, image_root=tmp_path, grid=2, size=4)
    assert targets["kind"][0].tolist() == [1, IGNORED, 1, 0]
    assert targets["color"][0].tolist() == [3, IGNORED, 2, 0]
    assert targets["texture"][0].tolist() == [2, IGNORED, 1, 0]
    assert targets["count"][0].tolist() == [2, IGNORED, 2, IGNORED]
    assert targets["numbers"].tolist() == [[2, 1], [0, 0]]
    assert targets["present"][0].tolist() == [0, 1, 1, 1, 0, 0]
    assert targets["words"].tolist() == [[0.5, 1.0], [0.0, 0.0]]
    assert targets["kind"][1].tolist() == [0, 0, 0, 0]


def test_words_that_are_rare_or_everywhere_are_not_learnt(tmp_path: Path) -> None:
    texts = ["a red ball"] * 100 + ["a blue ball"] * 100 + ["a green ball"]
    captions = [(str(number), "en", text) for number, text in enumerate(texts)]
    splits = {str(number): "train" for number in range(201)}
    objects = pd.DataFrame({"image_id": ["0", "0", "1"], "kind": ["ball"] * 3, "color": ["red", "red", "blue"]})
    objects = objects.assign(texture="plain", object_id=range(3), mask="mask.png", label=1, words=[["ball"]] * 3)
    manifest = write_data_set(tmp_path, splits, captions, objects=objects)
    names = names_of_train(read_manifest(manifest), manifest)
    assert names == ObjectNames(["ball"], ["blue", "red"], ["plain"], ["blue", "red"], most=2)


def tiny(names: ObjectNames) -> SceneReader:
    torch.manual_seed(0)
    config = ViTConfig(
        image_size=16, patch_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    return SceneReader(ViTModel(config), names)


def two_pictures() -> dict[str, torch.Tensor]:
    """Targets of two pictures with four patches each."""
    targets = {
        "kind": torch.tensor([[0, 1, 2, IGNORED], [0, 0, 1, 1]]),
        "color": torch.tensor([[0, 1, 1, IGNORED], [0, 0, 1, 1]]),
        "texture": torch.tensor([[0, 2, 1, IGNORED], [0, 0, 1, 2]]),
        "count": torch.tensor([[IGNORED, 1, 2, IGNORED], [IGNORED, IGNORED, 1, 1]]),
        "numbers": torch.tensor([[1, 2], [1, 0]]),
        "present": torch.tensor([[1.0, 1.0], [1.0, 0.0]]),
        "words": torch.tensor([[1.0, 0.2, 0.0], [0.4, 0.0, 0.6]]),
        "around": torch.zeros(2, 4, len(AROUND)),
    }
    targets["around"][0, 1, 2] = 1.0
    return targets


def test_the_loss_is_the_sum_of_its_naive_parts() -> None:
    torch.manual_seed(1)
    outputs, targets = tiny(NAMES)(torch.randn(2, 3, 16, 16)), two_pictures()

    def choice(name: str, background: float) -> float:
        terms = [
            (-float(torch.log_softmax(outputs[name][i, j], 0)[target]), background if target == 0 else 1.0)
            for i, row in enumerate(targets[name].tolist())
            for j, target in enumerate(row)
            if target != IGNORED
        ]
        return sum(loss * weight for loss, weight in terms) / sum(weight for _, weight in terms)

    def several(name: str, target: str) -> float:
        share = torch.sigmoid(outputs[name].double())
        true = targets[target].double()
        return -float((true * share.log() + (1 - true) * (1 - share).log()).sum()) / 2

    expected = 2 * choice("kind", 0.2) + choice("color", 0.2) + 0.5 * choice("texture", 0.2)
    expected += choice("count", 1.0) + choice("numbers", 1.0)
    expected += several("present", "present") / 5
    expected += (several("patch_words", "words") + several("cls_words", "words")) / 40
    shares = torch.sigmoid(outputs["around"].double())
    surprise = -(targets["around"] * shares.log() + (1 - targets["around"]) * (1 - shares).log()).sum(-1)
    expected += 1.5 * float(surprise[targets["kind"] > 0].sum()) / 4
    for name, place in (("row", (0, 0, 1, 1)), ("column", (0, 1, 0, 1))):
        chances = torch.log_softmax(outputs[name].double(), -1)
        expected -= 0.5 * float(torch.stack([chances[:, patch, right] for patch, right in enumerate(place)]).mean())
    assert float(loss_of(outputs, targets)) == pytest.approx(expected, rel=1e-4)


def test_pictures_without_a_clear_object_give_a_number() -> None:
    """The last batch of an epoch may hold a single picture whose objects fill too little of any patch."""
    model, targets = tiny(NAMES), two_pictures()
    targets |= {name: torch.zeros_like(targets[name]) for name in ("kind", "color", "texture", "around")}
    targets["count"] = torch.full((2, 4), IGNORED)
    loss = loss_of(model(torch.randn(2, 3, 16, 16)), targets)
    loss.backward()
    assert loss.isfinite()
    assert all(weight.grad.isfinite().all() for weight in model.parameters() if weight.grad is not None)


def test_directions_of_the_other_groups() -> None:
    labels = np.zeros((8, 8), np.uint8)
    labels[0:2, 0:2] = 1
    labels[0:2, 5:7] = 2
    labels[5:7, 0:2] = 3
    labels[6:8, 1:3] = 4
    groups = np.array([0, 1, 2, 3])
    found = surroundings(labels, np.array([1, 2, 3, 4]), groups)
    named = [{AROUND[place] for place in np.flatnonzero(row)} for row in found]
    # The second is as far above the third as to its right: sideways decides.
    assert named == [{"right", "below"}, {"left", "below"}, {"right", "above", "in front"}, {"above", "behind"}]
    together = surroundings(labels, np.array([1, 2, 3]), np.array([0, 0, 0]))
    named = [{AROUND[place] for place in np.flatnonzero(row)} for row in together]
    assert named == [{"fellow right", "fellow below"}, {"fellow left"}, {"fellow above", "fellow right"}]


def test_scores_by_hand() -> None:
    logits = torch.tensor([[[9.0, 0, 0], [0, 9, 0], [0, 9, 0], [0, 0, 9]]])
    outputs = dict.fromkeys(("kind", "color", "texture", "count"), logits)
    outputs |= dict.fromkeys(("cls_words", "patch_words"), torch.tensor([[1.0, -1.0, 1.0]]))
    targets = {
        "kind": torch.tensor([[0, 1, 2, IGNORED]]),
        "color": torch.tensor([[0, 1, 1, 1]]),
        "texture": torch.tensor([[0, 2, 2, 1]]),
        "count": torch.tensor([[IGNORED, 1, 0, 1]]),
        "words": torch.tensor([[0.6, 0.6, 0.4]]),
    }
    scores = right_and_counted(outputs, targets)
    shares = {name: float((right & counts).sum() / counts.sum()) for name, (right, counts) in scores.items()}
    expected = {"kind": 1 / 2, "color": 1, "texture": 0, "count": 1 / 2, "cls_words": 1 / 3, "patch_words": 1 / 3}
    assert shares == pytest.approx(expected)


def test_the_first_filters_whiten_patches() -> None:
    """Of the patches they are made from, their outputs have mean 0, are uncorrelated, and have variance 1 or less."""
    pixels = np.random.default_rng(0).integers(0, 256, (300, 16, 16, 3), dtype=np.uint8)
    vit = tiny(ObjectNames(["ball"], ["red"], ["plain"], [], 1)).vit
    start_from_patches(vit, pixels)
    images = (torch.from_numpy(pixels[:256]).permute(0, 3, 1, 2) / 255 - 0.5) / 0.5
    with torch.no_grad():
        seen = vit.embeddings.patch_embeddings(images).flatten(0, 1)
    covariance = (seen.T @ seen / len(seen)).numpy()
    np.testing.assert_allclose(seen.mean(dim=0), 0, atol=1e-4)
    np.testing.assert_allclose(covariance - np.diag(covariance.diagonal()), 0, atol=1e-3)
    assert (covariance.diagonal() > 0.9).all()
    assert (covariance.diagonal() <= 1).all()
    positions = vit.embeddings.position_embeddings[0, 1:].detach().numpy()
    assert len({tuple(row.round(4)) for row in positions}) == len(positions)


def test_transformers_loads_it_with_all_keys_and_no_others(trained: Path) -> None:
    model, info = AutoModel.from_pretrained(trained, output_loading_info=True)
    assert not any(info.values()), info
    assert type(model) is ViTModel
    processor = AutoImageProcessor.from_pretrained(trained)
    white = processor(Image.new("RGB", (50, 40), "white"), return_tensors="pt")["pixel_values"]
    assert tuple(white.shape) == (1, 3, 32, 32)
    torch.testing.assert_close(white, torch.ones_like(white))
    hidden = model(pixel_values=white).last_hidden_state
    assert tuple(hidden.shape) == (1, 1 + 16, 16)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(
    scenes: Path, trained: Path, tmp_path: Path
) -> None:
    again, other = tmp_path / "again", tmp_path / "other"
    train(scenes, again)
    train(scenes, other, seed=1)
    names = {path.name for path in trained.iterdir()}
    assert names == {"config.json", "model.safetensors", "preprocessor_config.json", "history.csv"}
    for name in names:
        assert (again / name).read_bytes() == (trained / name).read_bytes(), name
    assert (other / "model.safetensors").read_bytes() != (trained / "model.safetensors").read_bytes()


def test_history_has_a_row_an_epoch(trained: Path) -> None:
    history = pd.read_csv(trained / "history.csv")
    assert history["epoch"].tolist() == [1, 2]
    assert history["train_loss"].is_monotonic_decreasing
    assert {"validation_loss", "learning_rate", "kind", "color", "count", "cls_words"} <= set(history)


def test_a_data_set_without_objects_is_refused(tmp_path: Path) -> None:
    manifest = write_data_set(tmp_path, {"a": "train"}, [("a", "en", "A ball.")], name="plain")
    with pytest.raises(UserError, match="the data set plain has no objects to learn from"):
        train(manifest, tmp_path / "out")


def test_a_patch_size_that_does_not_divide_the_pictures_is_refused(scenes: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the patch size 7 does not divide the picture size 32"):
        train(scenes, tmp_path, patch_size=7)
