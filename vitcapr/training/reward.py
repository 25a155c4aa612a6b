"""Self-critical training: captions drawn from the captioner are made more probable where they beat its others.

The reward is CIDEr-D of word numbers against an image's references; the end token counts as a word. CIDEr of greedy
captions may select the epoch.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from vitcapr.batches.sources import read_rows
from vitcapr.config.training import CaptionerTrainingConfig
from vitcapr.decoding.stepwise import draw, greedy, pick_class
from vitcapr.encoders.devices import to_device
from vitcapr.formats.tokens import TokenTable
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.interface import Captioner, Memory, Step
from vitcapr.store.reader import FeatureStore
from vitcapr.training.phases import images_in_batch

_ORDERS = 4
_SIGMA = 6.0


class CiderReward:
    """CIDEr-D (Vedantam et al. 2015, section 6: n = 1 to 4, sigma 6, clipped, times 10) as a reward.

    The end token is part of candidates and references. Without it a caption that breaks off after a good n-gram costs
    nothing, and a captioner trained on the score learns to end in "of a".

    Document frequencies are those of the references given here and stay as they are. The vectors of an image's
    references are made when it is scored: that takes a tenth of a millisecond, and to keep them would take gigabytes
    for a large data set.

    Args:
        tokens: all captions, start and end included.
        rows: the images whose captions are the references, those of the training split.
        vocabulary: number of words.
    """

    def __init__(self, tokens: TokenTable, rows: np.ndarray, vocabulary: int) -> None:
        self._base = vocabulary
        images_with_references = set(rows.tolist())
        self._references: dict[int, list[list[int]]] = {}
        for caption, row in enumerate(tokens.image_row.tolist()):
            if row in images_with_references:
                self._references.setdefault(row, []).append(tokens[caption].tolist()[1:])
        images: Counter[int] = Counter()
        for references in self._references.values():
            images.update({gram for words in references for grams in self._grams(words) for gram in grams})
        self._rarest = math.log(max(1, len(self._references)))
        # An n-gram of no image counts like that of one, and most are of one: neither is kept.
        self._rarity = {gram: self._rarest - math.log(count) for gram, count in images.items() if count > 1}

    def __call__(self, row: int, candidates: Sequence[Sequence[int]]) -> list[float]:
        """Return the score, 0 to 10, of each candidate for the image ``row``.

        Args:
            candidates: word numbers without the start token, at least one each.
        """
        references = self._references[row]
        by_order = zip(*map(self._vectors, references), strict=True)
        orders = [[(vector, _norm(vector)) for vector in vectors] for vectors in by_order]
        scores = []
        for candidate in candidates:
            far = [(len(candidate) - len(words)) ** 2 for words in references]
            alike = [math.exp(-squared / (2 * _SIGMA**2)) / len(references) for squared in far]
            total = 0.0
            for vector, others in zip(self._vectors(candidate), orders, strict=True):
                norm = _norm(vector)
                for closeness, (other, other_norm) in zip(alike, others, strict=True):
                    common = ((weight, other[gram]) for gram, weight in vector.items() if gram in other)
                    if product := sum(min(weight, of_other) * of_other for weight, of_other in common):
                        total += closeness * product / (norm * other_norm)
            scores.append(10 * total / _ORDERS)
        return scores

    def _grams(self, words: Sequence[int]) -> Iterator[list[int]]:
        """Yield the n-grams of each order, packed into one number: digits of base V. No word is 0, so orders differ."""
        grams = list(words)
        yield grams
        for order in range(1, _ORDERS):
            grams = [gram * self._base + word for gram, word in zip(grams, words[order:], strict=False)]
            yield grams

    def _vectors(self, words: Sequence[int]) -> list[dict[int, float]]:
        """Term frequency times inverse document frequency of the n-grams of each order."""
        rarity, rarest = self._rarity, self._rarest
        return [
            {gram: count * rarity.get(gram, rarest) for gram, count in Counter(grams).items()}
            for grams in self._grams(words)
        ]


def _norm(vector: dict[int, float]) -> float:
    return math.sqrt(sum(weight * weight for weight in vector.values()))


class SelfCritical:
    """Policy gradient of a reward (Rennie et al. 2017), each caption judged against the image's other samples.

    The baseline of a sample is the mean reward of the other samples of its image (Luo 2020, "A Better Variant of
    Self-Critical Sequence Training"), which takes no greedy caption and makes the advantages of an image sum to zero.

    Captions are drawn with dropout off: what is judged is the captioner that will be decoded. The gradient is taken
    with dropout as the model's mode has it, as under cross-entropy. All randomness is torch's global generator's.

    Args:
        reward: scores the candidates of an image, word numbers with the end token where it was reached.
        samples: K, captions drawn for each image; at least 2.
        max_length: longest caption in tokens, start and end included; one that reaches it is left without its end.
        forbidden: tokens that are never drawn, such as ``<unk>``; ``start`` and ``pad`` never are.
        temperature: divisor of the logits. Words are drawn from this policy, and it is the one that is improved;
            below 1 it is closer to greedy decoding and to a beam.
    """

    def __init__(
        self,
        reward: CiderReward,
        *,
        samples: int,
        max_length: int,
        start: int,
        end: int,
        pad: int,
        forbidden: Sequence[int],
        temperature: float = 1.0,
    ) -> None:
        self._reward, self._samples, self._words = reward, samples, max_length - 1
        self._start, self._end, self._pad = start, end, pad
        self._temperature = temperature
        self._never = sorted({start, pad, *forbidden})

    def loss(self, model: Captioner, features: dict[str, Tensor], rows: Tensor) -> tuple[Tensor, int]:
        """Return minus the mean reward of the drawn captions, and their number.

        The gradient is that of ``-mean over words of advantage x log p(word)``. The value of that product means
        nothing, so the quantity that the gradient lowers is returned as the value.

        Args:
            features: of B images, as ``model.encode`` takes them.
            rows: (B,) int64, the images' rows, by which the reward knows them.
        """
        words = self.draw(model, features)
        images, samples, length = words.shape
        rewards = self.rewards(words, rows)
        others = (rewards.sum(1, keepdim=True) - rewards) / (samples - 1)
        words = words.view(images * samples, length)
        mask = words != self._pad
        log_probs = self.log_probs(model, model.encode(features), words)
        advantage = (rewards - others).view(-1, 1).expand_as(mask)[mask]
        policy = -(advantage * log_probs).mean()
        return policy - policy.detach() - rewards.mean(), images * samples

    def rewards(self, words: Tensor, rows: Tensor) -> Tensor:
        """Return the reward of each caption, (B, K) float32, from padded words (B, K, T)."""
        scores = []
        for row, captions in zip(rows.tolist(), words.tolist(), strict=True):
            scores.append(self._reward(row, [[word for word in caption if word != self._pad] for caption in captions]))
        return torch.tensor(scores, dtype=torch.float32, device=words.device)

    def log_probs(self, model: Captioner, memory: Memory, words: Tensor) -> Tensor:
        """Return the log-probability of every real word of (B * K, T) captions, teacher-forced, in row-major order.

        Words are drawn from the same distribution, in which forbidden tokens have no share.
        """
        samples = len(words) // len(next(iter(memory.values())))
        mask = words != self._pad
        read = torch.cat([torch.full_like(words[:, :1], self._start), words[:, :-1]], dim=1)
        image_index = torch.arange(len(words), device=words.device) // samples
        logits = self._policy(model(memory, read, mask, image_index))
        return torch.log_softmax(logits, dim=-1).gather(1, words[mask][:, None])[:, 0]

    @torch.no_grad()
    def draw(self, model: Captioner, features: dict[str, Tensor]) -> Tensor:
        """Draw K captions of each image word by word: (B, K, T) int64, the end included, then padded."""
        was_training = model.training
        model.eval()
        try:
            return draw(
                model,
                model.encode(features),
                self._pick,
                samples=self._samples,
                steps=self._words,
                start=self._start,
                end=self._end,
                pad=self._pad,
            )
        finally:
            model.train(was_training)
            # Autocast keeps the weights it has cast; torch before 2.11 would take those cast without gradients for the
            # pass that needs them (pytorch/pytorch#158232).
            torch.clear_autocast_cache()

    def _pick(self, step: Step, places: Tensor, length: int) -> Tensor:  # noqa: ARG002
        chances = torch.softmax(self._policy(step.logits), dim=-1)
        return pick_class(chances, torch.rand_like(chances[..., -1:]))

    def _policy(self, logits: Tensor) -> Tensor:
        """Return the logits over the temperature, those of tokens that are never drawn minus infinity."""
        never = to_device(torch.tensor(self._never), logits.device)
        return (logits / self._temperature).index_fill(-1, never, -torch.inf)


class GreedyCider:
    """CIDEr of greedy captions of the images ``rows``; references are the captions as the vocabulary knows them.

    The tokenizer is the training's own, not PTB, so the number ranks epochs and is not to be reported.
    """

    def __init__(
        self,
        store: FeatureStore,
        tokens: TokenTable,
        vocabulary: Vocabulary,
        rows: np.ndarray,
        training: CaptionerTrainingConfig,
        device: torch.device,
    ) -> None:
        self._store, self._vocabulary, self._device = store, vocabulary, device
        self._max_length = max(phase.max_length for phase in training.phases)
        self._batch_images = images_in_batch(training.phases[-1], len(rows))
        split = set(rows.tolist())
        self._references: dict[int, list[str]] = {}
        for caption, row in enumerate(tokens.image_row.tolist()):
            if row in split:
                self._references.setdefault(row, []).append(" ".join(vocabulary.decode(tokens[caption].tolist())))
        self._rows = np.array(sorted(self._references))

    def score(self, model: Captioner) -> float:
        from pycocoevalcap.cider.cider import Cider

        captions: dict[int, list[str]] = {}
        for first in range(0, len(self._rows), self._batch_images):
            rows = self._rows[first : first + self._batch_images]
            read = read_rows(self._store, model.arrays, rows, self._device)
            features = {name: array.float() for name, array in read.items()}
            limits = self._vocabulary.special_tokens()
            hypotheses = greedy(model, model.encode(features), max_length=self._max_length, **limits)
            for row, hypothesis in zip(rows.tolist(), hypotheses, strict=True):
                captions[row] = [" ".join(self._vocabulary.decode(hypothesis.tokens))]
        return float(Cider().compute_score(self._references, captions)[0])
