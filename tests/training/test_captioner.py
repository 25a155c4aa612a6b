"""The captioner's loss against one caption at a time, and the decoded validation score."""

import itertools

import numpy as np
import pytest
import torch

from vitcapr.models.captioners import Captioner, build_captioner
from vitcapr.text.tokens import TokenTable
from vitcapr.text.vocabulary import Vocabulary
from vitcapr.training.captioner import CaptionerTask
from vitcapr.training.validation import GreedyCider


class Rows:
    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def gather(self, rows: np.ndarray) -> np.ndarray:
        return self.values[rows]


class Store(dict[str, Rows]):
    block = 1


IMAGES = 5
CAPTIONS = [["a", "red", "boat"], ["boats"], ["a", "dog"], ["two", "dogs", "a", "boat"], ["a", "red", "dog"], ["boat"]]
IMAGE_ROW = [0, 0, 1, 2, 3, 4]


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary.build(CAPTIONS, min_count=1)


@pytest.fixture
def tokens(vocabulary: Vocabulary) -> TokenTable:
    return TokenTable.build([vocabulary.encode(caption) for caption in CAPTIONS], IMAGE_ROW, range(len(CAPTIONS)))


@pytest.fixture
def store() -> Store:
    generator = np.random.default_rng(0)
    return Store(
        patches=Rows(generator.normal(size=(IMAGES, 4, 6)).astype(np.float16)),
        cls=Rows(generator.normal(size=(IMAGES, 6)).astype(np.float16)),
    )


def task_of(model: Captioner, store: Store, tokens: TokenTable, max_length: int = 35) -> CaptionerTask:
    return CaptionerTask(
        model,
        store,  # type: ignore[arg-type]
        tokens,
        train=np.array([0, 1, 2]),
        validation=np.array([0, 2, 3]),
        batch_images=[2],
        max_length=[max_length],
        label_smoothing=0.0,
        seed=0,
        device=torch.device("cpu"),
    )


def model_of(kind: str, vocabulary: Vocabulary) -> Captioner:
    torch.manual_seed(0)
    sizes = {"vocabulary": len(vocabulary), "feature_dim": 6, "embedding_dim": 4, "hidden_dim": 5}
    return build_captioner({"kind": kind, **sizes}).eval()


@pytest.mark.parametrize("kind", ["baseline", "patch_attention"])
@pytest.mark.parametrize("max_length", [35, 3])
@torch.no_grad()
def test_validation_loss_is_the_mean_over_all_words(
    kind: str, max_length: int, vocabulary: Vocabulary, tokens: TokenTable, store: Store
) -> None:
    model = model_of(kind, vocabulary)
    surprise, words = 0.0, 0
    for caption, row in enumerate(IMAGE_ROW):
        if row not in (0, 2, 3):
            continue
        features = {name: torch.from_numpy(array.values[row : row + 1]).float() for name, array in store.items()}
        memory = model.encode(features)
        state = model.initial_state(memory)
        numbers = tokens[caption].tolist()[:max_length]
        for token, following in itertools.pairwise(numbers):
            step = model.step(memory, state, torch.tensor([[token]]))
            state = step.state
            surprise -= float(torch.log_softmax(step.logits[0, 0], -1)[following])
            words += 1
    scores = task_of(model, store, tokens, max_length).validate()
    assert scores == {"validation_loss": pytest.approx(surprise / words, rel=1e-5)}


def test_training_sees_every_caption_of_its_split_once(
    vocabulary: Vocabulary, tokens: TokenTable, store: Store
) -> None:
    task = task_of(model_of("baseline", vocabulary), store, tokens)
    seen = [vocabulary.decode(caption) for batch in task.batches(0, 1, 0) for caption in batch.tokens.tolist()]
    assert sorted(seen) == sorted(" ".join(CAPTIONS[place]) for place, row in enumerate(IMAGE_ROW) if row < 3)
    assert task.steps(0) == 2


def test_greedy_cider_is_one_where_the_captions_are_the_references(
    vocabulary: Vocabulary, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decoder that repeats the only reference of each image reaches CIDEr's maximum of 10."""
    from vitcapr.decoding.hypotheses import Hypothesis
    from vitcapr.training import validation

    words = [["a", "red", "dog", "boat"], ["two", "dogs", "a", "boats"], ["boat", "red", "two", "a"]]
    table = TokenTable.build([vocabulary.encode(caption) for caption in words], [0, 1, 2], range(3))
    written = iter(words)

    def repeat(*_: object, **__: object) -> list[Hypothesis]:
        caption = vocabulary.encode(next(written))[1:-1]
        return [Hypothesis(tokens=caption, token_log_probs=[], log_prob=0.0, score=0.0, attention=None)]

    monkeypatch.setattr(validation, "greedy", repeat)
    scorer = GreedyCider(
        store,  # type: ignore[arg-type]
        table,
        vocabulary,
        np.array([2, 0, 1]),
        max_length=9,
        batch_images=1,
        device=torch.device("cpu"),
    )
    assert scorer(model_of("baseline", vocabulary)) == {"validation_cider": pytest.approx(10.0)}
