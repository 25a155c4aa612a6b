"""The cosine of an image and a caption in the space of a retriever (ViTCap-R)."""

from typing import TYPE_CHECKING

from vitcapr.config.parts import Reranker

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vitcapr.retrieval.reranking import Candidates


class Cosine(Reranker):
    def scores(self, candidates: "Candidates") -> "list[NDArray[np.float64]]":
        from vitcapr.retrieval.reranking import candidate_cosines

        texts, place = candidates.different
        with candidates.reporter.track("embed", len(candidates.rows) + len(texts), "images and captions") as tracker:
            images = candidates.images.embed(candidates.rows, advance=tracker.advance)
            captions = candidates.retriever.text_embedder.embed(texts, advance=tracker.advance)
        return candidate_cosines(images, captions[place], candidates.counts)


RERANKER = Cosine
