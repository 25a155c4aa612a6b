"""Scores of judged captions by vectors: of a sentence encoder, of its tokens, and of a retriever.

They are trained on no judgment. The retriever is reference-free: the cosine of image and caption.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from vitcapr.encoders.sentence_vectors import SentenceVectors
from vitcapr.metrics.bootstrap import Array
from vitcapr.metrics.similarity import bert_score, clip_scores, sentence_similarity
from vitcapr.studies.judgments import JudgedCaptions

Embed = Callable[[Sequence[str]], np.ndarray]
"""From n sentences or names of images to vectors (n, D)."""
COMBINED = ("retriever", "sentence_similarity", "bert_score_f1")


def encoder_scores(judged: JudgedCaptions, encoder: SentenceVectors) -> dict[str, Array]:
    """``sentence_similarity`` and ``bert_score_f1`` of each candidate, (N,)."""
    candidates, references, candidate_of = _flat(judged)
    captions, others = _each_once(encoder, candidates, references)
    similarity = sentence_similarity(captions, others, candidate_of)
    reader, vectors = encoder.tokens(None)
    tokens, other_tokens = reader.tokenize(candidates), reader.tokenize(references)
    different = list(dict.fromkeys(map(tuple, [*tokens, *other_tokens])))
    known = dict(zip(different, vectors(different), strict=True))
    similarity |= bert_score(
        tokens,
        other_tokens,
        candidate_of,
        lambda some: [known[tuple(sentence)] for sentence in some],
        vectors.special,
        idf=False,
    )
    return {name: similarity[name].per_image for name in COMBINED[1:]}


def retriever_scores(judged: JudgedCaptions, embed_texts: Embed, embed_images: Embed) -> dict[str, Array]:
    """``retriever`` and ``ref_retriever``, both (N,): CLIPScore and RefCLIPScore with the retriever's vectors."""
    candidates, references, candidate_of = _flat(judged)
    captions, others = _each_once(embed_texts, candidates, references)
    images, _ = _each_once(embed_images, [one.image_id for one in judged.judgments], [])
    scores = clip_scores(images, captions, others, candidate_of)
    return {
        name: scores[of].per_image for name, of in (("retriever", "clip_score"), ("ref_retriever", "ref_clip_score"))
    }


def combined(scores: Mapping[str, Array]) -> Array:
    """The mean of :data:`COMBINED`, each with mean 0 and deviation 1 over the candidates: (N,)."""
    parts = [(scores[name] - scores[name].mean()) / scores[name].std() for name in COMBINED]
    return np.asarray(np.mean(parts, axis=0))


def _flat(judged: JudgedCaptions) -> tuple[list[str], list[str], np.ndarray]:
    """The candidates, all their references, and the candidate of each reference."""
    counts = [len(texts) for texts in judged.references.values()]
    references = [text for texts in judged.references.values() for text in texts]
    return list(judged.captions.values()), references, np.repeat(np.arange(len(counts)), counts)


def _each_once(embed: Embed, some: Sequence[str], others: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of both, computed once for each different entry."""
    different = list(dict.fromkeys([*some, *others]))
    vectors, place = embed(different), {entry: number for number, entry in enumerate(different)}
    return vectors[[place[entry] for entry in some]], vectors[[place[entry] for entry in others]]
