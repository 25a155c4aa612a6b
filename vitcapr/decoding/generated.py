"""Hypotheses as the files of captions and of attention have them."""

from collections.abc import Callable, Sequence

import numpy as np

from vitcapr.decoding.hypotheses import Hypothesis
from vitcapr.formats.captions import AttentionTable, Candidate


def candidates_of(
    hypotheses: Sequence[Hypothesis], spell: Callable[[list[int]], str], words: Sequence[str]
) -> list[Candidate]:
    """The hypotheses of one image in their order.

    Args:
        spell: a caption from its word numbers.
        words: word number -> word.
    """
    return [
        Candidate(
            caption=spell(hypothesis.tokens),
            tokens=tuple(words[token] for token in hypothesis.tokens),
            token_log_probs=tuple(hypothesis.token_log_probs),
            log_prob=hypothesis.log_prob,
            score=hypothesis.score,
        )
        for hypothesis in hypotheses
    ]


def attention_of(image_rows: Sequence[int], best: Sequence[Hypothesis], grid: tuple[int, int]) -> AttentionTable:
    """The attention of one caption an image.

    Args:
        image_rows: (B,), rows of the data set.
        best: the best hypothesis of each image, with attention.
        grid: height and width of the patches.
    """
    patches = grid[0] * grid[1]
    weights = [np.zeros((0, patches), np.float16)]
    weights += [hypothesis.attention for hypothesis in best if hypothesis.attention is not None]
    lengths = [len(hypothesis.tokens) for hypothesis in best]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return AttentionTable(np.concatenate(weights), offsets, np.asarray(image_rows, np.int32), grid)
