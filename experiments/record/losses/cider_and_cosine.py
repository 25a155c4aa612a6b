"""Self-critical training with the score of the reranking retriever in the reward.

The reward of a drawn caption is its CIDEr-D and ``weight`` times ten times its cosine with the image, by a retriever
that is trained already. It must read the vocabulary's words.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from vitcapr.config.base import DATA, UserPath
from vitcapr.config.objective import TrainingCaptions
from vitcapr.training.losses.self_critical import SelfCritical

if TYPE_CHECKING:
    from vitcapr.training.reward import SelfCritical as Drawn


class CiderAndCosine(SelfCritical):
    folder: Annotated[UserPath, DATA]
    """Folder of the retriever."""
    vocabulary: Annotated[UserPath, DATA]
    """vocabulary.json of the retriever."""
    embeddings: Annotated[UserPath, DATA]
    """embeddings.npz of the training split by the retriever."""
    weight: float = Field(0.5, ge=0)
    """Weight of ten times the cosine; CIDEr-D, too, goes from 0 to 10."""

    def draw(self, captions: TrainingCaptions) -> "Drawn":
        from vitcapr.training.reward import SelfCritical as Drawn

        limits = {"max_length": captions.max_length, **captions.vocabulary.special_tokens()}
        return Drawn(Reward(self, captions), samples=self.samples, temperature=self.temperature, **limits)


class Reward:
    def __init__(self, settings: CiderAndCosine, captions: TrainingCaptions) -> None:
        from vitcapr.encoders.devices import resolve_device
        from vitcapr.retrieval.embedder import open_retriever
        from vitcapr.training.reward import CiderReward

        self.cider = CiderReward(captions.tokens, captions.rows, len(captions.vocabulary))
        self.words, self.weight = captions.vocabulary, settings.weight
        vocabulary, device = Path(settings.vocabulary), resolve_device("auto")
        self.texts = open_retriever(Path(settings.folder), vocabulary=vocabulary, device=device).text_embedder
        found = np.load(settings.embeddings)
        self.images = dict(zip(found["image_row"].tolist(), found["images"], strict=True))

    def __call__(self, row: int, candidates: Sequence[Sequence[int]]) -> list[float]:
        texts = [" ".join(self.words.decode(list(words))) for words in candidates]
        cosines = self.texts.embed(texts) @ self.images[row]
        scores = zip(self.cider(row, candidates), cosines.tolist(), strict=True)
        return [score + 10 * self.weight * cosine for score, cosine in scores]


LOSS = CiderAndCosine
