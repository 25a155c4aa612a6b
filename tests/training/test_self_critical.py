"""Self-critical training of small captioners: what is drawn, how it is weighed, and where it leads."""

import itertools
import math
from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
import torch
from pycocoevalcap.cider.cider_scorer import CiderScorer
from torch import Tensor

from tests.data_sets import token_table
from tests.models.untrained import untrained
from vitcapr.encoders.devices import autocast
from vitcapr.formats.tokens import TokenTable
from vitcapr.models.interface import Captioner
from vitcapr.training.reward import CiderReward, SelfCritical

PAD, START, END, UNKNOWN = range(4)
WORDS = 8
ROWS = torch.tensor([4, 7])


class Counting:
    """A reward that is not CIDEr: how often the image's favourite word was said, and what was asked."""

    def __init__(self) -> None:
        self.favourite = {4: 5, 7: 6}
        self.asked: list[tuple[int, list[list[int]]]] = []

    def __call__(self, row: int, candidates: Sequence[Sequence[int]]) -> list[float]:
        self.asked.append((row, [list(candidate) for candidate in candidates]))
        return [float(list(candidate).count(self.favourite[row])) for candidate in candidates]


def objective(reward: object, samples: int = 5, max_length: int = 6, temperature: float = 1.0) -> SelfCritical:
    return SelfCritical(
        cast(CiderReward, reward),
        samples=samples,
        max_length=max_length,
        start=START,
        end=END,
        pad=PAD,
        forbidden=[UNKNOWN],
        temperature=temperature,
    )


def model_of(kind: str, dropout: float = 0.3, hidden: int = 5, **options: object) -> Captioner:
    return untrained(kind, WORDS, 6, embedding_dim=4, hidden_dim=hidden, dropout=dropout, **options)


@pytest.fixture
def features() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {"patches": torch.randn(2, 3, 6, generator=generator), "cls": torch.randn(2, 6, generator=generator)}


def test_the_temperature_sharpens_and_forbidden_words_have_no_share() -> None:
    policy = objective(Counting(), temperature=0.25)._policy(torch.arange(float(WORDS)))
    never = -math.inf
    assert policy.tolist() == [never, never, 8.0, never, 16.0, 20.0, 24.0, 28.0]


def test_a_sampled_sequence_is_a_caption(features: dict[str, Tensor]) -> None:
    model = model_of("patch_attention")
    with torch.no_grad():
        model.words.bias[torch.tensor([PAD, START, UNKNOWN])] = 9.0  # what the captioner would like best
    model.train()
    words = objective(Counting(), samples=200).draw(model, features)
    assert model.training
    assert words.shape == (2, 200, 5)
    drawn = words.flatten(0, 1).tolist()
    for caption in drawn:
        length = caption.index(END) + 1 if END in caption else len(caption)
        assert {START, UNKNOWN, PAD}.isdisjoint(caption[:length])
        assert set(caption[length:]) <= {PAD}
    assert any(END not in caption for caption in drawn)
    assert any(caption[0] == END for caption in drawn)


@pytest.mark.parametrize(("kind", "temperature"), [("transformer", 1.0), ("baseline", 0.25)])
def test_words_are_drawn_with_their_probability(kind: str, features: dict[str, Tensor], temperature: float) -> None:
    """With dropout off, though the model is training."""
    model = model_of(kind)
    drawing = objective(Counting(), samples=100, max_length=3, temperature=temperature)
    words = torch.cat([drawing.draw(model.train(), features) for _ in range(40)], dim=1)
    model.eval()
    with torch.no_grad():
        for image, samples in enumerate(words):
            one = {name: array[image : image + 1] for name, array in features.items()}
            pairs = [(END, PAD), *itertools.product(range(END + 2, WORDS), [END, *range(END + 2, WORDS)])]
            captions = torch.tensor(pairs)
            memory = {name: value.expand(len(pairs), *value.shape[1:]) for name, value in model.encode(one).items()}
            total = torch.zeros(captions.shape)
            total[captions != PAD] = drawing.log_probs(model, memory, captions)
            expected = total.sum(1).exp()
            assert float(expected.sum()) == pytest.approx(1.0, abs=1e-5)
            found = torch.stack([(samples == caption).all(1).float().mean() for caption in captions])
            assert torch.allclose(found, expected, atol=0.03)


def test_the_loss_is_the_textbooks(features: dict[str, Tensor]) -> None:
    """The value is minus the mean reward; the gradient is that of each caption's sum, weighed by hand."""
    model = model_of("patch_attention").eval()
    reward = Counting()
    critical = objective(reward, samples=3)
    torch.manual_seed(0)
    loss, captions = critical.loss(model, features, ROWS)
    assert captions == 6
    assert [row for row, _ in reward.asked] == ROWS.tolist()
    asked = [caption for _, candidates in reward.asked for caption in candidates]
    scores = [caption.count(reward.favourite[4 if place < 3 else 7]) for place, caption in enumerate(asked)]
    assert any(scores)
    assert loss.item() == pytest.approx(-sum(scores) / 6)
    loss.backward()
    gradient = model.words.weight.grad.clone()  # type: ignore[union-attr]

    model.zero_grad()
    total = torch.zeros(())
    for place, caption in enumerate(asked):
        image = place // 3
        rivals = [scores[other] for other in range(image * 3, image * 3 + 3) if other != place]
        one = {name: array[image : image + 1] for name, array in features.items()}
        log_probs = critical.log_probs(model, model.encode(one), torch.tensor([caption]))
        assert len(log_probs) == len(caption)
        total = total - (scores[place] - sum(rivals) / 2) * log_probs.sum()
    (total / sum(map(len, asked))).backward()
    assert torch.allclose(gradient, model.words.weight.grad, atol=1e-6)  # type: ignore[arg-type]


def test_it_learns_the_caption_that_is_rewarded(features: dict[str, Tensor]) -> None:
    """CIDEr-D of one reference an image, from an untrained captioner: it comes to write them, and to end them."""
    captions = [[START, 4, 5, END], [START, 6, 7, END]]
    reward = CiderReward(token_table(captions, ROWS.tolist(), range(2)), ROWS.numpy(), WORDS)
    model = model_of("baseline", dropout=0.0, hidden=24)
    critical = objective(reward, samples=16, max_length=6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    values = []
    for _ in range(60):
        loss, _ = critical.loss(model, features, ROWS)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(-loss.item())
    assert np.mean(values[:5]) < 2
    assert np.mean(values[-10:]) > 7  # 7.5 is a reference of three words
    for samples, caption in zip(critical.draw(model, features), captions, strict=True):
        written = [[word for word in sample if word != PAD] for sample in samples.tolist()]
        assert written.count(caption[1:]) > 12


def test_drawing_leaves_no_weights_without_gradient_behind(features: dict[str, Tensor]) -> None:
    """Autocast would go on to use the weights that it cast while nothing was recorded."""
    model = model_of("patch_attention", output_dim=4)
    with autocast(torch.device("cpu"), torch.bfloat16):
        loss, _ = objective(Counting()).loss(model, features, ROWS)
    loss.backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert float(weight.grad.abs().sum()) > 0, name


NUMBERS = 9
"""Numbers below this one; from 3 on they are words."""


def table(captions: list[tuple[int, list[int]]]) -> TokenTable:
    numbers = [[START, *words, END] for _, words in captions]
    return token_table(numbers, [row for row, _ in captions], range(len(captions)))


def text(words: list[int]) -> str:
    return " ".join("eos" if word == END else f"w{word}" for word in words)


def test_the_reward_equals_the_reference_scorer_with_the_end_as_a_word() -> None:
    generator = np.random.default_rng(0)

    def caption() -> list[int]:
        return generator.integers(3, NUMBERS, generator.integers(1, 12)).tolist()  # type: ignore[no-any-return]

    rows = np.array([2, 5, 7, 11, 12, 20, 21, 22])
    references = [(int(row), caption()) for row in rows for _ in range(generator.integers(1, 6))]
    # Captions of an image outside the split must change nothing.
    reward = CiderReward(table([*references, (1, caption()), (30, caption())]), rows, NUMBERS)
    for _ in range(5):
        candidates = [(int(row), [*caption(), *([END] if generator.random() < 0.7 else [])]) for row in rows]
        scorer = CiderScorer()
        for row, words in candidates:
            scorer += (text(words), [text([*other, END]) for image, other in references if image == row])
        _, expected = scorer.compute_score()
        ours, nothing_said = zip(*(reward(row, [words, [END]]) for row, words in candidates), strict=True)
        assert ours == pytest.approx(expected.tolist(), abs=1e-6)
        assert not any(nothing_said)
