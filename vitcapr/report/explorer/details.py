"""What the explorer shows of one caption: words, probabilities, candidates, claims, attention."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitcapr.demo.claim_accuracy import Claimed
from vitcapr.formats.captions import Candidate, DecodedCaption
from vitcapr.report.explorer.results import System

LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
"""A weight of attention is one of these characters: the share of the word's largest weight, from 0 to 1."""


def details_of(caption: DecodedCaption, system: System) -> dict[str, Any]:
    """Everything but attention."""
    first = caption.candidates[0]
    added = sorted(first.__pydantic_extra__ or {})
    shown: dict[str, Any] = {
        "tokens": list(caption.tokens),
        "log_probs": [round(value, 2) for value in first.token_log_probs[: len(caption.tokens)]],
        "numbers": ["log_prob", "score", *added],
        "candidates": [_candidate(each, added) for each in caption.candidates],
    }
    if claims := system.claims.get(caption.image_id):
        shown["claims"] = [[claim.kind, _said(claim.claimed), _said(claim.true), claim.right] for claim in claims]
    return shown


def attention_of(system: System, caption: DecodedCaption, row: int) -> NDArray[np.floating] | None:
    """The attention of a system that wrote this caption, for the image of a row of the manifest."""
    own = system.captions.get(caption.image_id)
    if system.attention is None or own is None or own.tokens != caption.tokens:
        return None
    weights = system.attention.of_row(row)
    return weights if weights is not None and len(weights) == len(caption.tokens) else None


def encoded(weights: NDArray[np.floating]) -> dict[str, Any]:
    """Attention (L, h, w): the grid, a string for each word, and the largest weight of each in multiples of an even
    spread."""
    words, height, width = weights.shape
    flat = weights.reshape(words, -1).astype(np.float64)
    most = flat.max(axis=1, keepdims=True, initial=0)
    levels = np.rint(flat / np.where(most > 0, most, 1) * (len(LEVELS) - 1)).astype(np.intp)
    characters = np.array(list(LEVELS))
    return {
        "grid": [height, width],
        "weights": ["".join(characters[row]) for row in levels],
        "peaks": [round(float(value) * height * width, 2) for value in most[:, 0]],
    }


def _candidate(candidate: Candidate, added: Sequence[str]) -> list[str | float | None]:
    """The caption, its log-probability, its score, and the numbers that a stage added, such as a cosine."""
    extra = candidate.__pydantic_extra__ or {}
    numbers = [candidate.log_prob, candidate.score, *(extra.get(name) for name in added)]
    return [candidate.caption, *(None if number is None else round(number, 3) for number in numbers)]


def _said(claim: Claimed | None) -> str | None:
    if claim is None:
        return None
    if not isinstance(claim, tuple):
        return str(claim)
    relation, subject, *others = claim  # As in vitcapr.demo.scenes.reading.Claims.
    return " ".join([subject, relation.replace("_", " "), " and ".join(others)]).strip()
