"""The captioner's loss against one caption at a time, its objectives by phase, and the decoded validation score."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.data_sets import token_table
from tests.launches import watch_steps
from tests.models.untrained import untrained
from tests.training.trained import StopsBefore, assert_continues, assert_same, train_in
from vitcapr.batches.sources import MemoryArray, MemoryFeatures
from vitcapr.config.training import CaptionerPhaseConfig, CaptionerTrainingConfig
from vitcapr.decoding.stepwise import Hypothesis
from vitcapr.formats.training_files import write_history
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.interface import Captioner
from vitcapr.training.captioner_task import CaptionerTask, history_with_rewards
from vitcapr.training.reward import GreedyCider, SelfCritical

IMAGES = 5
CAPTIONS = [["a", "red", "boat"], ["boats"], ["a", "dog"], ["two", "dogs", "a", "boat"], ["a", "red", "dog"], ["boat"]]
IMAGE_ROW = [0, 0, 1, 2, 3, 4]
VOCABULARY = Vocabulary.build(itertools.chain(*CAPTIONS), min_count=1)
TOKENS = token_table([VOCABULARY.encode(caption) for caption in CAPTIONS], IMAGE_ROW, range(len(CAPTIONS)))
DRAW = np.random.default_rng(0)
STORE: Any = MemoryFeatures(
    patches=MemoryArray(DRAW.normal(size=(IMAGES, 4, 6)).astype(np.float16)),
    cls=MemoryArray(DRAW.normal(size=(IMAGES, 6)).astype(np.float16)),
)


class Stopped(StopsBefore, CaptionerTask):
    pass


def task_of(
    model: Captioner, recipe: CaptionerTrainingConfig | None = None, max_length: int = 35, **training: Any
) -> Stopped:
    phase = CaptionerPhaseConfig(epochs=1, batch_images=2, max_length=max_length)
    return Stopped(
        model,
        STORE,
        TOKENS,
        recipe or CaptionerTrainingConfig(phases=[phase], **training),
        train=np.array([0, 1, 2]),
        validation=np.array([0, 2, 3]),
        seed=0,
        device=torch.device("cpu"),
        vocabulary=VOCABULARY,
    )


def model_of(kind: str) -> Captioner:
    return untrained(kind, len(VOCABULARY), 6, embedding_dim=4, hidden_dim=5).eval()


@pytest.mark.parametrize("kind", ["baseline", "patch_attention"])
@pytest.mark.parametrize("max_length", [35, 3])
@torch.no_grad()
def test_validation_loss_is_the_mean_over_all_words(kind: str, max_length: int) -> None:
    model = model_of(kind)
    surprise, words = 0.0, 0
    for caption, row in enumerate(IMAGE_ROW):
        if row not in (0, 2, 3):
            continue
        features = {name: torch.from_numpy(array.values[row : row + 1]).float() for name, array in STORE.items()}
        memory = model.encode(features)
        state = model.initial_state(memory)
        numbers = TOKENS[caption].tolist()[:max_length]
        for token, following in itertools.pairwise(numbers):
            step = model.step(memory, state, torch.tensor([[token]]))
            state = step.state
            surprise -= float(torch.log_softmax(step.logits[0, 0], -1)[following])
            words += 1
    scores = task_of(model, max_length=max_length).validate()
    assert scores == {"validation_loss": pytest.approx(surprise / words, rel=1e-5)}


@torch.no_grad()
def test_label_smoothing_spreads_a_share_over_the_vocabulary() -> None:
    phase = CaptionerPhaseConfig(epochs=1, objective={"kind": "cross_entropy", "label_smoothing": 0.25})
    task = task_of(model_of("baseline"), CaptionerTrainingConfig(phases=[phase]))
    batch = next(iter(task.batches(0, 1, 0)))
    words = task._words(batch[2])
    logits, targets = words.logits, words.targets
    log_probs = torch.log_softmax(logits, -1)
    target = log_probs[torch.arange(len(targets)), targets]
    expected = -(0.75 * target + 0.25 * log_probs.mean(-1)).mean()
    assert task.loss(batch)[0].item() == pytest.approx(expected.item(), rel=1e-6)


PHASE = {"learning_rate": 0.01, "schedule": "constant", "warmup_steps": 0}
DRAWN = {"kind": "self_critical", "samples": 4}
TWO_PHASES = CaptionerTrainingConfig.model_validate(
    {
        "phases": [
            {**PHASE, "epochs": 1, "batch_images": 2},
            {
                **PHASE,
                "epochs": 2,
                "batch_images": 1,
                "max_length": 6,
                "objective": {"kind": "self_critical", "samples": 4},
            },
        ],
        "select_by": "cider",
        "ema_decay": 0,
    }
)


def two_phases() -> Stopped:
    return task_of(model_of("patch_attention"), TWO_PHASES)


def test_each_phase_has_its_objective() -> None:
    task = two_phases()
    (taught, *_), (drawn, *others) = list(task.batches(0, 1, 0)), list(task.batches(1, 2, 0))
    assert taught[1] is None
    assert isinstance(drawn[1], SelfCritical)
    assert len(others) == task.steps(1) - 1 == 2
    surprise, words = task.loss(taught)
    assert float(surprise.detach()) > 0
    assert words == int((taught[2].texts[:, 1:] != 0).sum())
    shortfall, captions = task.loss(drawn)
    assert -10 <= float(shortfall.detach()) <= 0
    assert captions == 4


@pytest.mark.parametrize("kind", ["baseline", "patch_attention", "transformer"])
def test_a_step_does_not_wait_for_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    recipe = CaptionerTrainingConfig(phases=[CaptionerPhaseConfig(epochs=2, batch_images=2)])
    free = train_in(tmp_path / "free", task_of(model_of(kind)), recipe)
    watched = watch_steps(monkeypatch)
    assert_same(free, train_in(tmp_path / "watched", task_of(model_of(kind)), recipe))
    assert watched


@pytest.mark.parametrize("stop_before", [1, 6])
def test_self_critical_training_stopped_and_continued_equals_uninterrupted(tmp_path: Path, stop_before: int) -> None:
    end, _ = assert_continues(tmp_path, two_phases, TWO_PHASES, stop_before)
    assert [row["phase"] for row in end.history] == [1, 2, 2]


def test_greedy_cider_is_one_where_the_captions_are_the_references(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that repeats the only reference of each image reaches CIDEr's maximum of 10."""
    words = [["a", "red", "dog", "boat"], ["two", "dogs", "a", "boats"], ["boat", "red", "two", "a"]]
    table = token_table([VOCABULARY.encode(caption) for caption in words], [0, 1, 2], range(3))
    written = iter(words)

    def repeat(*_: object, **__: object) -> list[Hypothesis]:
        caption = VOCABULARY.encode(next(written))[1:-1]
        return [Hypothesis(tokens=caption, token_log_probs=[], log_prob=0.0, score=0.0, attention=None)]

    monkeypatch.setattr("vitcapr.training.reward.greedy", repeat)
    training = CaptionerTrainingConfig(phases=[CaptionerPhaseConfig(epochs=1, batch_images=1, max_length=9)])
    scorer = GreedyCider(STORE, table, VOCABULARY, np.array([2, 0, 1]), training, torch.device("cpu"))
    assert scorer.score(model_of("baseline")) == pytest.approx(10.0)


def test_a_reward_is_not_written_as_a_loss(tmp_path: Path) -> None:
    phases = [CaptionerPhaseConfig(epochs=1), CaptionerPhaseConfig(epochs=1, objective="self_critical")]
    history = [
        {"epoch": 1, "phase": 1, "train_loss": 2.5, "validation_loss": 2.0},
        {"epoch": 2, "phase": 2, "train_loss": -1.5, "validation_loss": 2.25},
    ]
    write_history(tmp_path / "history.csv", history_with_rewards(history, phases))
    assert (tmp_path / "history.csv").read_text().splitlines() == [
        "epoch,phase,train_loss,train_reward,validation_loss",
        "1,1,2.5,,2.0",
        "2,2,,1.5,2.25",
    ]
    assert "train_reward" not in history_with_rewards(history[:1], phases[:1])[0]
