"""The cosine, and agreement with the captions of the nearest training images (Devlin et al. 2015, arXiv 1505.04467).

The agreement is the cosine of a candidate and the mean of these captions, both as tf-idf of one to four words. An image
weighs exp(similarity / temperature); the similarity is the cosine in the space of the retriever.
"""

from typing import Annotated

import numpy as np
from pydantic import Field
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from vitcapr.config.base import DATA, UserPath
from vitcapr.config.parts import Reranker
from vitcapr.formats.manifest import read_manifest
from vitcapr.retrieval.reranking import Candidates, candidate_cosines


class Neighbours(Reranker):
    manifest: Annotated[UserPath, DATA]
    """manifest.json of the data set, whose training images and captions are read."""
    share: float = Field(0.5, ge=0, le=1)
    """Share of the agreement in the score."""
    neighbours: int = Field(20, ge=1)
    temperature: float = Field(0.1, gt=0)

    def scores(self, candidates: Candidates) -> list[np.ndarray]:
        data = read_manifest(self.manifest)
        captions = data.captions[data.captions["image_row"].isin(data.rows("train"))]
        rows, owners = np.unique(captions["image_row"], return_inverse=True)
        texts, place = candidates.different
        images = candidates.images.embed(candidates.rows)
        cosines = candidate_cosines(images, candidates.retriever.text_embedder.embed(texts)[place], candidates.counts)
        orders = [TfidfVectorizer(ngram_range=(n, n), token_pattern=r"[\w']+") for n in (1, 2, 3, 4)]
        known = sparse.hstack([order.fit_transform(captions["text"]) for order in orders]).tocsr() / 2
        given = (sparse.hstack([order.transform(texts) for order in orders]).tocsr() / 2)[place]
        means = sparse.csr_matrix((1 / np.bincount(owners)[owners], (owners, np.arange(len(owners))))) @ known
        similarity, scores = images @ candidates.images.embed(rows).T, []
        ends = np.cumsum([0, *candidates.counts])
        for image, cosine in enumerate(cosines):
            nearest = np.argsort(-similarity[image], kind="stable")[: self.neighbours]
            weights = np.exp((similarity[image, nearest] - similarity[image].max()) / self.temperature)
            mean = sparse.csr_matrix(weights / weights.sum()) @ means[nearest]
            agreement = (given[ends[image] : ends[image + 1]] @ mean.T).toarray()[:, 0]
            scores.append((1 - self.share) * cosine + self.share * agreement)
        return scores


RERANKER = Neighbours
