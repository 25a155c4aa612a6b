"""Captions of the images of a store by a trained captioner: greedy or beam search, or sampling."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from vitcapr.batches.sources import read_rows
from vitcapr.config.captioner import DecodingConfig
from vitcapr.decoding.beam import beam_search
from vitcapr.decoding.captioners import check_features, open_captioner
from vitcapr.decoding.hypotheses import Hypothesis
from vitcapr.decoding.sample import sample
from vitcapr.decoding.stepwise import Limits, greedy
from vitcapr.encoders.precision import autocast, dtype_name, resolve_dtype
from vitcapr.errors import UserError
from vitcapr.formats.captions import AttentionTable, Candidate
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import CARD, layer_of, read_card
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.interface import Captioner, Memory
from vitcapr.progress import Reporter
from vitcapr.store.reader import open_features
from vitcapr.text.normalise import join_words


class DecodedSplit(NamedTuple):
    """Image ids and their candidates, the best one first; and the attention of the best, where it was kept."""

    captions: list[tuple[str, list[Candidate]]]
    attention: AttentionTable | None


def search_arguments(decoding: DecodingConfig) -> dict[str, Any]:
    """The arguments of :func:`generate`."""
    return decoding.model_dump(exclude={"attention", "batch_images", "precision"})


def decode_split(
    captioner: Path,
    features: Path,
    data: Manifest,
    split: str,
    words: Vocabulary,
    decoding: DecodingConfig,
    attends: bool,
    device: torch.device,
    reporter: Reporter,
) -> DecodedSplit:
    """Up to ``n_best`` captions of each image of a split.

    Args:
        captioner: folder of the model.
        features: sealed manifest of the features of all images.
        attends: keep the attention of the best captions.

    Raises:
        UserError: as :func:`open_captioner` and :func:`check_features`; the features are of other images, or the split
            has none.
    """
    dtype = resolve_dtype(decoding.precision, device)
    hypotheses: list[list[Hypothesis]] = []
    with open_features(features).at_layer(layer_of(read_card(captioner / CARD), "captioner")) as store:
        store.check_rows("image_id", data)
        model = open_captioner(captioner, words, dtype)
        check_features(model, captioner, store, attends)
        model.to(device).eval()
        rows = data.rows(split)
        if not len(rows):
            raise UserError(f"the data set {data.dataset} has no images in the split '{split}'")
        reporter.line(f"decode: {len(rows)} images, {decoding.method}, {dtype_name(dtype)} on {device}")
        with reporter.track("decode", len(rows), "captions") as tracker:
            for first in range(0, len(rows), decoding.batch_images):
                batch = rows[first : first + decoding.batch_images]
                read = {name: array.float() for name, array in read_rows(store, model.arrays, batch, device).items()}
                how = {**search_arguments(decoding), "images": batch.tolist(), "keep_attention": attends}
                with torch.inference_mode(), autocast(device, dtype):
                    hypotheses += generate(model, model.encode(read), words, **how)
                tracker.advance(len(batch))
        table = attention_of(rows.tolist(), [best for best, *_ in hypotheses], words, store.grid) if attends else None
    images = data.images["image_id"].iloc[rows].tolist()
    return DecodedSplit([(i, candidates_of(each, words)) for i, each in zip(images, hypotheses, strict=True)], table)


def generate(
    model: Captioner,
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
        **words.special_tokens(),  # type: ignore[typeddict-item]
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


def candidates_of(hypotheses: Sequence[Hypothesis], words: Vocabulary) -> list[Candidate]:
    """The hypotheses of one image in their order. The log-probability of a word is the sum over its pieces."""
    candidates = []
    for hypothesis in hypotheses:
        tokens, log_probs = tuple(words.decode(hypothesis.tokens)), hypothesis.token_log_probs
        of_words = [sum(log_probs[span]) for span in words.spans(hypothesis.tokens)]
        candidates.append(
            Candidate(
                caption=join_words(tokens),
                tokens=tokens,
                token_log_probs=(*of_words, log_probs[-1]),
                log_prob=hypothesis.log_prob,
                score=hypothesis.score,
            )
        )
    return candidates


def attention_of(
    image_rows: Sequence[int], best: Sequence[Hypothesis], words: Vocabulary, grid: tuple[int, int]
) -> AttentionTable:
    """The attention of one caption an image; that of a word is the mean over its pieces.

    Args:
        image_rows: (B,), rows of the data set.
        best: the best hypothesis of each image, with attention.
        grid: height and width of the patches.
    """
    patches = grid[0] * grid[1]
    weights = [np.zeros((0, patches), np.float16)]
    for hypothesis in (one for one in best if one.attention is not None):
        by_piece = np.asarray(hypothesis.attention, np.float32)
        weights += [by_piece[span].mean(0, keepdims=True) for span in words.spans(hypothesis.tokens)]
    lengths = [len(words.spans(hypothesis.tokens)) for hypothesis in best]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return AttentionTable(np.concatenate(weights).astype(np.float16), offsets, np.asarray(image_rows, np.int32), grid)
