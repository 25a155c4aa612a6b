"""Trained captioners on disk, and captions of the images of a store: by greedy or beam search, or by sampling."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vitcapr.batches.sources import check_widths, read_rows
from vitcapr.config.captioner import DecodingConfig
from vitcapr.decoding.beam import beam_search
from vitcapr.decoding.sample import sample
from vitcapr.decoding.stepwise import Hypothesis, Limits, greedy
from vitcapr.encoders.devices import autocast, dtype_name, resolve_dtype
from vitcapr.errors import UserError
from vitcapr.formats.captions import AttentionTable, Candidate
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import CARD, layer_of, read_card, read_model, rebuild
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.interface import Captioner, Memory, build_captioner, find_pretrained
from vitcapr.progress import Reporter
from vitcapr.store.reader import FeatureStore, open_features
from vitcapr.text.normalise import join_words


def open_captioner(folder: Path, words: Vocabulary, dtype: torch.dtype) -> Captioner:
    """Return the captioner in ``folder``, on the CPU.

    Args:
        dtype: of its arithmetic.

    Raises:
        UserError: the folder holds none, or one that was trained with another vocabulary or language model.
    """
    weights, card = read_model(folder)
    known = card["architecture"].get("vocabulary")
    if known != len(words):
        raise UserError(
            f"the captioner has {known} words and the vocabulary {len(words)}",
            where=folder,
            remedy="give the vocabulary it was trained with, or train it again",
        )
    network: dict[str, Any] = {}
    if "language_model" in card:
        settings, kind = card["settings"]["captioner"], card["architecture"]["kind"]
        pretrained = find_pretrained(kind, settings, card["language_model"])
        network = {} if pretrained is None else {"network": pretrained.open(words, dtype)}
    return rebuild(folder, lambda architecture: build_captioner(architecture, **network), card, weights)


def search_arguments(decoding: DecodingConfig) -> dict[str, Any]:
    """Return the arguments of :func:`generate`."""
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
) -> tuple[list[tuple[str, list[Candidate]]], AttentionTable | None]:
    """Generate up to ``n_best`` captions of each image of a split: image ids and their candidates, the best first.

    With ``attends``, also the attention of the best captions.

    Args:
        captioner: folder of the model.
        features: sealed manifest of the features of all images.

    Raises:
        UserError: as :func:`open_captioner`; the features are of other images or widths, the split has no image, or the
            captioner does not attend to places of the pictures.
    """
    dtype = resolve_dtype(decoding.precision, device)
    hypotheses: list[list[Hypothesis]] = []
    card = read_card(captioner / CARD)
    with open_features(features).at_layer(layer_of(card, "captioner")) as store:
        store.check_rows("image_id", data)
        model = open_captioner(captioner, words, dtype)
        check_widths(store, model.arrays, card["architecture"])
        if attends:
            _check_attention(model, captioner, store)
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
    return [(i, candidates_of(each, words)) for i, each in zip(images, hypotheses, strict=True)], table


def _check_attention(model: Captioner, folder: Path, features: FeatureStore) -> None:
    """Check that the captioner attends to places of the pictures.

    Raises:
        UserError: the captioner does not attend to places of the pictures.
    """
    if not model.attends:
        raise UserError(
            "this captioner does not attend to patches",
            where=folder,
            remedy="omit attention, and set decoding.attention to false",
        )
    if features.grid == (0, 0):
        raise UserError(
            "these features have no patch grid, so attention has no position in the picture",
            where=features.path,
            remedy="omit attention, or use a backbone with output: hidden",
        )


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
    """Generate up to ``n_best`` captions of each of B images, best first; see :func:`beam_search` for the parameters.

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
    """Return the hypotheses of one image in their order. The log-probability of a word is the sum over its pieces."""
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
    """Return the attention of one caption an image; that of a word is the mean over its pieces.

    A captioner may attend to more than the patches, such as to the words of other captions, after them: this part is
    left out.

    Args:
        image_rows: (B,), rows of the data set.
        best: the best hypothesis of each image, with attention.
        grid: height and width of the patches.
    """
    patches = grid[0] * grid[1]
    weights = [np.zeros((0, patches), np.float16)]
    for hypothesis in (one for one in best if one.attention is not None):
        by_piece = np.asarray(hypothesis.attention, np.float32)[:, :patches]
        weights += [by_piece[span].mean(0, keepdims=True) for span in words.spans(hypothesis.tokens)]
    lengths = [len(words.spans(hypothesis.tokens)) for hypothesis in best]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return AttentionTable(np.concatenate(weights).astype(np.float16), offsets, np.asarray(image_rows, np.int32), grid)
