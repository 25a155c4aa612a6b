"""Generates captions of images with a captioner, by greedy or beam search, or by sampling."""

from collections.abc import Mapping, Sequence
from typing import Any

from vitcapr.decoding.beam import beam_search
from vitcapr.decoding.greedy import greedy
from vitcapr.decoding.hypotheses import Hypothesis
from vitcapr.decoding.sample import sample
from vitcapr.decoding.stepwise import Limits
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.interface import Memory, StepwiseCaptioner


def generate(
    model: StepwiseCaptioner,
    memory: Memory,
    words: Vocabulary,
    *,
    n_best: int,
    max_length: int,
    min_length: int,
    length_penalty: float,
    block_ngram: int,
    beam_size: int = 1,
    sampling: Mapping[str, Any] | None = None,
    images: Sequence[int] = (),
    keep_attention: bool = False,
) -> list[list[Hypothesis]]:
    """Up to ``n_best`` captions of each of B images, best first; see :func:`beam_search` for the parameters.

    A beam of one is greedy decoding, which has a way of its own: it is faster, and a length penalty means nothing to
    it. ``<unk>`` is never written.

    Args:
        memory: of B images, as ``model.encode`` gives it.
        sampling: temperature, top_k, top_p and seed of :func:`sample`, which then draws ``n_best`` captions.
        images: (B,), the number of each image (sampling only).
    """
    common: Limits = {
        "start": words.start,
        "end": words.end,
        "pad": words.pad,
        "forbidden": [] if words.unknown is None else [words.unknown],
        "max_length": max_length,
        "min_length": min_length,
        "block_ngram": block_ngram,
        "keep_attention": keep_attention,
    }
    if sampling is not None:
        return sample(model, memory, images=images, samples=n_best, length_penalty=length_penalty, **sampling, **common)
    if beam_size == 1 and n_best == 1:
        return [[hypothesis] for hypothesis in greedy(model, memory, **common)]
    return beam_search(model, memory, beam_size=beam_size, length_penalty=length_penalty, n_best=n_best, **common)
