"""The files that decoding leaves: captions in COCO's result format, and what each word looked at."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.arrays import write_arrays
from vitcapr.decoding.hypotheses import Hypothesis
from vitcapr.files import write_json

_DECIMALS = 6


def write_captions(
    path: Path,
    image_ids: Sequence[str],
    candidates: Sequence[Sequence[Hypothesis]],
    spell: Callable[[list[int]], str],
    words: Sequence[str],
) -> None:
    """Write ``captions.json``: a list with one entry an image, the best caption beside all candidates.

    Args:
        image_ids: B identifiers.
        candidates: the hypotheses of each image, the best one first.
        spell: a caption from its word numbers.
        words: word number -> word.
    """

    def describe(hypothesis: Hypothesis) -> dict[str, Any]:
        return {
            "caption": spell(hypothesis.tokens),
            "tokens": [words[token] for token in hypothesis.tokens],
            "token_log_probs": [round(value, _DECIMALS) for value in hypothesis.token_log_probs],
            "log_prob": round(hypothesis.log_prob, _DECIMALS),
            "score": round(hypothesis.score, _DECIMALS),
        }

    entries = []
    for image_id, hypotheses in zip(image_ids, candidates, strict=True):
        described = [describe(hypothesis) for hypothesis in hypotheses]
        entries.append({"image_id": image_id, **described[0], "candidates": described})
    write_json(path, entries)


def write_attention(path: Path, image_rows: Sequence[int], best: Sequence[Hypothesis], grid: tuple[int, int]) -> None:
    """Write ``attention.npz``, the same bytes for the same weights.

    ``weights``: (words of all images, P) float16; ``offsets``: (B + 1,) int64, where the words of an image begin in it;
    ``image_row``: (B,) int32, rows of the data set; ``grid``: (2,) int64, height and width of the patches, P = h * w.

    Args:
        best: the best hypothesis of each image, with attention.
    """
    patches = grid[0] * grid[1]
    weights = [np.zeros((0, patches), np.float16)]
    weights += [hypothesis.attention for hypothesis in best if hypothesis.attention is not None]
    lengths = [len(hypothesis.tokens) for hypothesis in best]
    arrays = {
        "weights": np.concatenate(weights),
        "offsets": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "image_row": np.asarray(image_rows, np.int32),
        "grid": np.asarray(grid, np.int64),
    }
    write_arrays(path, arrays)
