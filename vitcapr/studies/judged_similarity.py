"""Scores of judged captions by vectors: of a sentence encoder, of its tokens, and of a retriever.

They are trained on no judgment. The retriever is reference-free: the cosine of image and caption.
"""

from collections.abc import Mapping

import numpy as np

from vitcapr.encoders.sentence_vectors import SentenceVectors
from vitcapr.metrics.bootstrap import Array
from vitcapr.metrics.similarity import Compared, clip_scores
from vitcapr.studies.compositional import Embed, embed_once
from vitcapr.studies.judgments import JudgedCaptions

COMBINED = ("retriever", "sentence_similarity", "bert_score_f1")


def encoder_scores(judged: JudgedCaptions, encoder: SentenceVectors, pool: str) -> tuple[dict[str, Array], list[str]]:
    """``sentence_similarity`` and ``bert_score_f1`` of each candidate, (N,); and their protocol."""
    compared = Compared(list(judged.captions.values()), list(judged.references.values()))
    compared.by_sentences(encoder, pool)
    compared.by_tokens(encoder, layer=None, idf=False)
    return {name: compared.measures[name].per_image for name in COMBINED[1:]}, compared.protocol


def retriever_scores(judged: JudgedCaptions, embed_texts: Embed, embed_images: Embed) -> dict[str, Array]:
    """``retriever`` and ``ref_retriever``, both (N,): CLIPScore and RefCLIPScore with the retriever's vectors."""
    counts = [len(texts) for texts in judged.references.values()]
    references = [text for texts in judged.references.values() for text in texts]
    # Candidates share images and references: each is embedded once.
    texts = embed_once(embed_texts, [*judged.captions.values(), *references])
    images = embed_once(embed_images, [one.image_id for one in judged.judgments])
    captions, others = np.split(texts, [len(counts)])
    scores = clip_scores(images, captions, others, np.repeat(np.arange(len(counts)), counts))
    return {"retriever": scores["clip_score"].per_image, "ref_retriever": scores["ref_clip_score"].per_image}


def combined(scores: Mapping[str, Array]) -> Array:
    """The mean of :data:`COMBINED`, each with mean 0 and deviation 1 over the candidates: (N,)."""
    parts = [(scores[name] - scores[name].mean()) / scores[name].std() for name in COMBINED]
    return np.asarray(np.mean(parts, axis=0))
