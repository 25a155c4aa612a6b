"""Self-critical training of small captioners: what is drawn, how it is weighed, and where it leads."""

import itertools
from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.models.untrained import untrained
from tests.tokens import token_table
from vitcapr.encoders.precision import autocast
from vitcapr.models.captioners import CAPTIONERS
from vitcapr.models.interface import Captioner, Step
from vitcapr.training.self_critical import CiderReward, SelfCritical

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
    sizes = {} if kind == "language_model" else {"embedding_dim": 4, "hidden_dim": hidden, "dropout": dropout}
    return untrained(kind, WORDS, 6, **sizes, **options)


@pytest.fixture
def features() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {"patches": torch.randn(2, 3, 6, generator=generator), "cls": torch.randn(2, 6, generator=generator)}


KINDS = pytest.mark.parametrize("kind", ["baseline", "patch_attention"])


@KINDS
def test_a_sampled_sequence_is_a_caption(kind: str, features: dict[str, Tensor]) -> None:
    model = model_of(kind)
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


@pytest.mark.parametrize("kind", CAPTIONERS)
@pytest.mark.parametrize("temperature", [1.0, 0.25])
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


class Reciter(torch.nn.Module):
    """Image b says its word ``often[b]`` times, each hypothesis as often again as its number, and ends."""

    def __init__(self, often: list[int], word: list[int]) -> None:
        super().__init__()
        self.often, self.word = torch.tensor(often), torch.tensor(word)

    def encode(self, features: dict[str, Tensor]) -> dict[str, Tensor]:  # noqa: ARG002
        return {"often": self.often, "word": self.word}

    def initial_state(self, memory: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"said": torch.zeros(len(memory["word"]), 1, dtype=torch.int64)}

    def step(self, memory: dict[str, Tensor], state: dict[str, Tensor], tokens: Tensor) -> Step:
        said = state["said"] + 1
        wanted = memory["often"][:, None] + torch.arange(tokens.shape[1])
        choice = torch.where(said <= wanted, memory["word"][:, None], END)
        return Step(100.0 * torch.nn.functional.one_hot(choice, WORDS), {"said": said}, None)


def test_images_that_are_finished_leave_the_others_alone() -> None:
    often, word = [0, 3, 1, 0, 9], [4, 5, 6, 7, 4]
    words = objective(Counting(), samples=2, max_length=7).draw(cast(Captioner, Reciter(often, word)), {})
    assert words.shape == (5, 2, 6)
    for image, samples in enumerate(words.tolist()):
        for number, caption in enumerate(samples):
            said = [word[image]] * (often[image] + number)
            assert caption == [*said, END, *[PAD] * 6][:6]


@KINDS
@torch.no_grad()
def test_log_probabilities_are_those_of_one_word_at_a_time(kind: str, features: dict[str, Tensor]) -> None:
    model = model_of(kind).eval()
    critical = objective(Counting())
    words = critical.draw(model, features).flatten(0, 1)
    memory = model.encode(features)
    taught = critical.log_probs(model, memory, words)
    alone = []
    for place, caption in enumerate(words.tolist()):
        image = place // 5
        one = {name: value[image : image + 1] for name, value in memory.items()}
        state = model.initial_state(one)
        for before, word in itertools.pairwise([START, *caption]):
            if word == PAD:
                break
            step = model.step(one, state, torch.tensor([[before]]))
            state = step.state
            logits = step.logits[0, 0]
            logits[[PAD, START, UNKNOWN]] = -torch.inf
            alone.append(float(torch.log_softmax(logits, -1)[word]))
    assert taught.tolist() == pytest.approx(alone, abs=1e-5)


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


def test_captions_of_equal_reward_teach_nothing(features: dict[str, Tensor]) -> None:
    model = model_of("baseline")
    loss, _ = objective(lambda row, candidates: [0.7] * len(candidates)).loss(model, features, ROWS)  # noqa: ARG005
    loss.backward()
    assert loss.item() == pytest.approx(-0.7)
    assert all(float(weight.grad.abs().max()) < 1e-6 for weight in model.parameters() if weight.grad is not None)


@KINDS
def test_it_learns_the_caption_that_is_rewarded(kind: str, features: dict[str, Tensor]) -> None:
    """CIDEr-D of one reference an image, from an untrained captioner: it comes to write them, and to end them."""
    captions = [[START, 4, 5, END], [START, 6, 7, END]]
    reward = CiderReward(token_table(captions, ROWS.tolist(), range(2)), ROWS.numpy(), WORDS)
    model = model_of(kind, dropout=0.0, hidden=24)
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
