"""Late interaction (Khattab and Zaharia 2020, ColBERT; Yao et al. 2022, FILIP) in the space of a trained retriever.

Each word is embedded as a caption of its own, and each patch as the only patch of its image. The score of a caption is
the mean over its words of the largest cosine with a patch. The retriever's image tower reads CLS and the mean patch.
"""

import numpy as np
import torch

from vitcapr.batches.sources import read_rows
from vitcapr.config.parts import Reranker
from vitcapr.retrieval.reranking import Candidates


class MaxSim(Reranker):
    pooled: float = 0.5
    """Share of the cosine of the whole image and the whole caption."""

    @torch.inference_mode()
    def scores(self, candidates: Candidates) -> list[np.ndarray]:
        retriever, store = candidates.retriever, candidates.stores[0]
        (model,) = retriever.model.members
        texts, place = candidates.different
        words = sorted({word for text in texts for word in text.split()})
        number = {word: row for row, word in enumerate(words)}
        of_words, of_texts = retriever.text_embedder.embed(words), retriever.text_embedder.embed(texts)
        ends, scores = np.cumsum([0, *candidates.counts]), []
        for image, captions in enumerate(candidates.captions):
            row = candidates.rows[image : image + 1]
            read = read_rows(store, ("cls", "patches"), row, retriever.device)
            patches = read["patches"].transpose(0, 1)
            each = model.embed_images({"cls": read["cls"].expand(len(patches), -1), "patches": patches}).cpu().numpy()
            whole = of_texts[place[ends[image] : ends[image + 1]]] @ candidates.images.embed(row)[0]
            best = (of_words @ each.T).max(1)
            late = [best[[number[word] for word in caption.split()]].mean() for caption in captions]
            scores.append(self.pooled * whole.astype(float) + (1 - self.pooled) * np.array(late))
        return scores


RERANKER = MaxSim
