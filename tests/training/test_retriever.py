"""The retriever's loss by phase, its validation, and that a stopped training loses nothing."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.data_sets import token_table
from tests.launches import watch_steps
from tests.training.trained import StopsBefore, assert_continues, feature_task, train_in
from vitcapr.batches.image_batches import Batch
from vitcapr.batches.sources import MemoryArray, MemoryFeatures
from vitcapr.batches.texts import WordTexts
from vitcapr.config.training import PhaseConfig, RetrieverPhaseConfig, TrainingConfig
from vitcapr.models.dual_encoder_model import DualEncoder, build_dual_encoder
from vitcapr.training.contrastive import hinge_rank, info_nce, max_hinge, mined_loss, structure_loss
from vitcapr.training.retriever import sample_rows
from vitcapr.training.retriever_task import RetrieverTask, mix, recalls

IMAGES, WIDTH, SPACE = 12, 6, 4
OWNER = np.repeat(np.arange(IMAGES), 2)


def store(seed: int = 0) -> MemoryFeatures:
    generator = np.random.default_rng(seed)
    return MemoryFeatures(cls=MemoryArray(generator.normal(size=(IMAGES, WIDTH)).astype(np.float16)))


def words() -> WordTexts:
    """Two captions an image, of its own word and a common one."""
    captions = [[1, 3 + image, 3 + IMAGES + other, 2] for image in range(IMAGES) for other in range(2)]
    return WordTexts(token_table(captions, OWNER.tolist(), range(len(captions))), 9)


def encoder(**changes: object) -> DualEncoder:
    torch.manual_seed(0)
    text = {"kind": "words", "vocabulary": 5 + IMAGES, "word_dim": 3, "hidden_dim": 4, "dropout": 0.2}
    settings = {"embedding_dim": SPACE, "temperature": 0.1, "learn_temperature": True}
    return build_dual_encoder({**settings, "image": {"feature_dim": WIDTH}, "text": text, **changes})


PHASES = [
    RetrieverPhaseConfig(epochs=1, batch_images=3, captions_per_image=1, hard_negatives="second"),
    RetrieverPhaseConfig(epochs=1, batch_images=4, objective={"kind": "max_hinge", "margin": 0.3}),
    RetrieverPhaseConfig(epochs=1, batch_images=5, hard_negatives="hardest"),
]


class Stopped(StopsBefore, RetrieverTask):
    pass


def task_of(model: DualEncoder, phases: list[RetrieverPhaseConfig] = PHASES, views: int = 1) -> Stopped:
    return Stopped(
        model,
        [store(seed) for seed in range(views)],
        words(),
        train=np.arange(8),
        validation=np.arange(8, IMAGES),
        phases=phases,
        seed=0,
        device=torch.device("cpu"),
    )


def similarity_of(model: DualEncoder, batch: Batch) -> torch.Tensor:
    return model.embed_images({"cls": batch.features["cls"].float()}) @ model.embed_texts(batch.texts).T


def test_each_phase_has_its_loss() -> None:
    model = encoder().eval()
    task = task_of(model)
    temperature = model.temperature()
    for number, (phase, objective) in enumerate(zip(PHASES, ("info_nce", "max_hinge", "info_nce"), strict=True)):
        batch = next(iter(task.batches(number, number + 1, 0)))
        assert task.steps(number) == -(-8 // phase.batch_images)
        similarity, index = similarity_of(model, batch[1]), batch[1].image_index
        assert len(index) == phase.batch_images * (phase.captions_per_image or 2)
        expected = (
            info_nce(similarity, index, temperature) if objective == "info_nce" else max_hinge(similarity, index, 0.3)
        )
        if phase.hard_negatives is not None:
            expected = expected + mined_loss(similarity, index, temperature, phase.hard_negatives)
        loss, pairs = task.loss(batch)
        assert pairs == len(index)
        torch.testing.assert_close(loss, expected)


def test_members_have_their_own_losses() -> None:
    ensemble = encoder(members=2).eval()
    task = task_of(ensemble)
    alone = [task_of(member) for member in ensemble.members]
    batch = next(iter(task.batches(0, 1, 0)))
    losses = [each.loss(batch)[0] for each in alone]
    assert losses[0] != losses[1]
    torch.testing.assert_close(task.loss(batch)[0], sum(losses) / 2)
    with torch.no_grad():
        validation = [each.validate()["validation_loss"] for each in alone]
        assert task.validate()["validation_loss"] == pytest.approx(sum(validation) / 2)


def test_hinge_rank_takes_the_images_as_long_as_they_are() -> None:
    model = encoder(image={"feature_dim": WIDTH, "head": "matrix"}).eval()
    hinge = {"kind": "hinge_rank", "margin": 0.1}
    task = task_of(model, phases=[RetrieverPhaseConfig(epochs=1, batch_images=8, objective=hinge)])
    phase, batch = next(iter(task.batches(0, 1, 0)))
    mapped = batch.features["cls"].float() @ model.image.head.project.weight.T
    expected = hinge_rank(mapped @ model.embed_texts(batch.texts).T, batch.image_index, 0.1)
    loss, pairs = task.loss((phase, batch))
    assert pairs == 16
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("views", [1, 2])
@torch.no_grad()
def test_validation_is_the_loss_over_batches_and_the_recall_over_all(views: int) -> None:
    """An image is embedded in the mean direction of its views, as it will be in use."""
    model = encoder().eval()
    phase = RetrieverPhaseConfig(epochs=1, batch_images=3, objective="max_hinge")
    scores = task_of(model, phases=[phase], views=views).validate()
    seen = ({"cls": torch.from_numpy(store(seed)["cls"].values[8:]).float()} for seed in range(views))
    images = torch.nn.functional.normalize(sum(map(model.embed_images, seen)), dim=1)
    captions = model.embed_texts(words().of(np.arange(16, 24)))
    index = torch.arange(4).repeat_interleave(2)
    parts = [(images[:3] @ captions[:6].T, index[:6]), (images[3:] @ captions[6:].T, index[6:] - 3)]
    total = sum(float(info_nce(table, owner, model.temperature())) * len(owner) for table, owner in parts)
    assert scores["validation_loss"] == pytest.approx(total / 8, rel=1e-5)
    first = (images @ captions.T).argmax(1) // 2
    assert scores["validation_i2t_recall_1"] == pytest.approx(100 * float((first == torch.arange(4)).float().mean()))
    recalls = [value for name, value in scores.items() if "recall" in name]
    assert scores["validation_rsum"] == pytest.approx(sum(recalls))
    assert len(recalls) == 6


def test_similarities_stay_float32_under_autocast() -> None:
    model = encoder().eval()
    task = task_of(model)
    batch = next(iter(task.batches(0, 1, 0)))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low, _ = task.loss(batch)
    assert low.dtype == torch.float32
    torch.testing.assert_close(low, task.loss(batch)[0], atol=0.1, rtol=0.1)


RECIPE = TrainingConfig(
    phases=[
        RetrieverPhaseConfig(epochs=2, learning_rate=0.02, schedule="step", step_epochs=1),
        PhaseConfig(epochs=1, learning_rate=0.01),
        PhaseConfig(epochs=1, learning_rate=0.01),
    ],
    select_by="rsum",
    ema_decay=0.8,
)


@pytest.mark.parametrize(("stop_before", "views", "members"), [(1, 1, 1), (7, 3, 1), (4, 1, 2)])
def test_stopped_and_continued_equals_uninterrupted(tmp_path: Path, stop_before: int, views: int, members: int) -> None:
    def task() -> Stopped:
        return task_of(encoder(members=members), views=views)

    _, tensors = assert_continues(tmp_path, task, RECIPE, stop_before)
    for name, tensor in encoder(members=members).state_dict().items():
        if name.endswith("project.weight"):
            assert not torch.equal(tensors[f"state.model.{name}"], tensor), "every member is trained"


def test_a_step_does_not_wait_for_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With each objective."""
    position, _ = train_in(tmp_path / "free", task_of(encoder()), RECIPE)
    watched = watch_steps(monkeypatch)
    assert train_in(tmp_path / "watched", task_of(encoder()), RECIPE)[0] == position
    assert len(watched) > 3


def test_structure_counts_for_images_and_captions() -> None:
    plain = RetrieverPhaseConfig(epochs=1, batch_images=8)
    weighed = plain.model_copy(update={"structure": 5.0})
    task = feature_task(weighed, pool="cls_mean")
    _, batch = next(task.batches(0, 1, 0))
    model, stored = task.model, {name: array.float() for name, array in batch.features.items()}
    frozen = torch.cat([stored["cls"], stored["patches"].mean(1)], dim=1)
    moved = (
        structure_loss(frozen, model.embed_images(stored), model.temperature()),
        structure_loss(batch.texts, model.embed_texts(batch.texts), model.temperature()),
    )
    added = task.loss((weighed, batch))[0] - task.loss((plain, batch))[0]
    torch.testing.assert_close(added, 2.5 * sum(moved), rtol=1e-4, atol=1e-5)


def test_mixed_captions_follow_their_image_and_meet_those_in_their_place_counted_round() -> None:
    """Image b is the b-th unit vector, as are its captions in the first axes; the others tell captions apart."""
    torch.manual_seed(0)
    counts = torch.tensor([2, 1, 3])
    owner, begin = torch.repeat_interleave(torch.arange(3), counts), [0, 2, 3]
    batch = Batch(
        {"cls": torch.eye(3).half()}, torch.cat([torch.eye(3)[owner], torch.eye(6)], 1).half(), owner, torch.arange(3)
    )
    moved = 0
    for alpha in [0.5] * 20 + [1.0] * 20:
        mixed = mix(batch, alpha)
        images = mixed.features["cls"]
        assert images.dtype == mixed.texts.dtype == torch.float32
        assert torch.equal(mixed.image_index, owner)
        torch.testing.assert_close(mixed.texts[:, :3], images[owner])
        torch.testing.assert_close(images.sum(1), torch.ones(3))
        torch.testing.assert_close(mixed.texts[:, 3:].sum(1), torch.ones(6))
        assert (images.argmax(1) == torch.arange(3)).all(), "the larger share stays"
        shares = {round(float(share), 5) for share in images.amax(1) if share < 1}
        assert len(shares) <= 1, "one share a batch"
        moved += len(shares)
        for caption, (own, row) in enumerate(zip(owner.tolist(), mixed.texts, strict=True)):
            strange = row[:3].index_fill(0, torch.tensor(own), 0)
            if strange.max() > 0:
                other = int(strange.argmax())
                place = begin[other] + (caption - begin[own]) % int(counts[other])
                assert row[3 + place] == strange.max()
    assert moved > 20


def test_a_large_validation_split_is_sampled() -> None:
    rows = np.arange(5, 105)
    sample = sample_rows(rows, 10)
    assert len(sample) == 10
    assert set(sample) < set(rows)
    assert (np.diff(sample) > 0).all()
    assert sample[-1] > rows[50]  # Not the first ones, which may be of one kind.
    for most in (100, 1000, None):
        assert np.array_equal(sample_rows(rows, most), rows)


def test_validation_recall_by_hand() -> None:
    """Caption 1 belongs to image 1 and lies on image 0; image 1 still finds caption 2."""
    axes = np.eye(2, dtype=np.float32)
    found = recalls(axes, axes[[0, 0, 1]], np.array([0, 1, 1]))
    assert found["validation_i2t_recall_1"] == 50.0  # image 0 ties with a wrong caption and is ranked behind it
    assert found["validation_t2i_recall_1"] == pytest.approx(200 / 3)
    assert found["validation_rsum"] == pytest.approx(50 + 200 / 3 + 4 * 100)
