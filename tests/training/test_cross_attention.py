import math
from pathlib import Path

import numpy as np
import pytest
import torch

from vitcapr.features.batches.captions import Captions
from vitcapr.features.batches.memory import MemoryArray, MemoryFeatures
from vitcapr.models.cross_attention import CrossEncoder
from vitcapr.progress import Reporter
from vitcapr.training.cross_attention import CrossEncoderTask, GroupPhase, Pool, neighbours
from vitcapr.training.loop import Recipe, Trainer
from vitcapr.training.schedule import Phase

IMAGES, KINDS = 24, 6


def task(seed: int = 0, **options: int) -> CrossEncoderTask:
    """Pictures of which one patch shows one of six things, and captions with the thing's word among other words."""
    draw = np.random.default_rng(0)
    kinds = np.arange(IMAGES) % KINDS
    patches = draw.normal(size=(IMAGES, 4, 8)).astype(np.float32) * 0.1
    patches[np.arange(IMAGES), draw.integers(0, 4, IMAGES), kinds] += 3
    store = MemoryFeatures(patches=MemoryArray(patches), cls=MemoryArray(patches.mean(1)))
    words = np.stack([np.full(IMAGES, 1), draw.integers(3, 6, IMAGES), 6 + kinds, np.full(IMAGES, 2)], axis=1)
    table = {
        "ids": words.ravel().astype(np.int32),
        "offsets": np.arange(0, 4 * IMAGES + 1, 4),
        "caption_row": np.arange(IMAGES),
    }
    # Neighbours of other kinds, so that there is a right answer.
    near = np.stack([(place + np.arange(1, KINDS)) % IMAGES for place in range(IMAGES)]).astype(np.int32)
    pool = Pool(np.arange(IMAGES), near, tuple(np.array([place]) for place in range(IMAGES)))
    torch.manual_seed(seed)
    return CrossEncoderTask(
        CrossEncoder(8, None, 6 + KINDS, 6, (2, 2), pool=1, width=16, heads=2, dropout=0.0),
        store,
        Captions(table, 6),
        train=pool,
        validation=pool,
        phases=[GroupPhase(**{"groups": 6, "images": 4, **options})],
        seed=seed,
        device=torch.device("cpu"),
    )


def test_neighbours_are_the_images_whose_captions_come_first() -> None:
    draw = np.random.default_rng(1)
    images, captions = (draw.normal(size=(count, 3)).astype(np.float32) for count in (300, 600))
    owner = np.repeat(np.arange(300), 2)
    done: list[int] = []
    found = neighbours(images, captions, owner, 7, done.append)
    near = (images @ captions.T).reshape(300, 300, 2).max(axis=2)
    np.fill_diagonal(near, -np.inf)
    assert (found == np.argsort(-near, axis=1, kind="stable")[:, :7]).all()
    assert sum(done) == 300
    with pytest.raises(ValueError, match="300 neighbours of each of 300 images"):
        neighbours(images, captions, owner, 300)


def test_groups_are_the_same_wherever_training_begins() -> None:
    one = task()
    whole = list(one.batches(0, 1, 0))
    assert len(whole) == one.steps(0) == 4
    for number, batch in enumerate(one.batches(0, 1, 2), start=2):
        assert (batch.images == whole[number].images).all()
        assert (batch.captions == whole[number].captions).all()
    assert sorted(np.concatenate([batch.images[:, 0] for batch in whole]).tolist()) == list(range(IMAGES))
    assert all(len(set(group)) == 4 for batch in whole for group in batch.images.tolist())
    assert any((a.images != b.images).any() for a, b in zip(whole, one.batches(0, 2, 0), strict=True))


def test_the_loss_of_a_model_that_knows_nothing_is_that_of_a_guess() -> None:
    one = task()
    for parameter in one.model.evidence[-1].parameters():
        torch.nn.init.zeros_(parameter)
    loss, pairs = one.loss(next(iter(one.batches(0, 1, 0))))
    assert loss.item() == pytest.approx(math.log(4))
    assert pairs == 24


def test_it_learns_which_patch_a_word_is_about(tmp_path: Path) -> None:
    one = task()
    recipe = Recipe((Phase(25, 0.01),))
    trainer = Trainer(
        one, recipe, device=torch.device("cpu"), dtype=torch.float32, folder=tmp_path, identity="x",
        reporter=Reporter(tmp_path / "log"),
    )  # fmt: skip
    end = trainer.run()
    assert end.history[0]["validation_loss"] > 0.5
    assert end.history[-1]["validation_loss"] < 0.2
    assert end.history[-1]["validation_accuracy"] > 0.95
