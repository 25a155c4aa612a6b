"""A trained cross-attention reranker at work: logits of pairs of an image and a caption, image by image."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from vitcapr.features.batches.captions import Captions
from vitcapr.features.batches.loader import FeatureSource
from vitcapr.model_folder import read_model
from vitcapr.models.cross_attention import CrossEncoder, Memory, Reading

_IMAGES = 32
"""Images read and projected at a time."""
_CAPTIONS = 256
"""Captions read at a time, before they meet any image."""


def open_cross_encoder(folder: Path, device: torch.device) -> tuple[CrossEncoder, dict[str, Any]]:
    """The model that ``train_cross_encoder`` wrote to ``folder``, in evaluation mode, and its card.

    Raises:
        UserError: there is none.
    """
    weights, card = read_model(folder)
    model = CrossEncoder(**card["architecture"])
    model.load_state_dict(weights)
    return model.to(device).eval(), card


@torch.inference_mode()
def match_pairs(
    model: CrossEncoder,
    store: FeatureSource,
    captions: Captions,
    *,
    image_row: npt.NDArray[np.integer],
    caption_place: npt.NDArray[np.integer],
    pairs: npt.NDArray[np.int64],
    batch: int,
    device: torch.device,
    advance: Callable[[int], None] = lambda _: None,
) -> npt.NDArray[np.float32]:
    """The logit of each pair.

    An image is projected once and a caption read once, whatever the number of their pairs. The memory holds the
    readings of the captions and, besides, what ``batch`` pairs take.

    Args:
        image_row: (N,) rows of the store; caption_place: (M,) places among ``captions``.
        pairs: (Q, 2), places in ``image_row`` and in ``caption_place``, ordered by image.
        batch: captions matched with an image at a time.
        advance: told how many pairs are done.
    """
    reading = _read(model, captions, caption_place, device)
    lengths = reading.real.sum(1).cpu().numpy()
    logits = np.empty(len(pairs), np.float32)
    bounds = np.searchsorted(pairs[:, 0], np.arange(len(image_row) + 1))
    for first in range(0, len(image_row), _IMAGES):
        rows = image_row[first : first + _IMAGES]
        memory = _remember(model, store, rows, device)
        for place in range(len(rows)):
            seen = memory.of(slice(place, place + 1))
            begin, end = bounds[first + place], bounds[first + place + 1]
            # Captions of like length side by side, so that little padding is computed.
            order = begin + np.argsort(lengths[pairs[begin:end, 1]], kind="stable")
            for start in range(0, len(order), batch):
                part = order[start : start + batch]
                chosen = pairs[part, 1]
                longest = int(lengths[chosen].max())
                index = torch.from_numpy(chosen).to(device)
                states, real = reading.states[index, :longest], reading.real[index, :longest]
                logits[part] = model.match(seen, states[None], real[None])[0].cpu().numpy()
            advance(int(end - begin))
    return logits


def _remember(model: CrossEncoder, store: FeatureSource, rows: npt.NDArray[np.integer], device: torch.device) -> Memory:
    patches, cls = (torch.from_numpy(store[name].gather(rows)).to(device).float() for name in ("patches", "cls"))
    return model.remember(patches, cls)


def _read(model: CrossEncoder, captions: Captions, places: npt.NDArray[np.integer], device: torch.device) -> Reading:
    parts = [
        model.understand(*captions.of(places[start : start + _CAPTIONS], device))
        for start in range(0, len(places), _CAPTIONS)
    ]
    longest = max(part.real.shape[1] for part in parts)
    states = [torch.nn.functional.pad(part.states, (0, 0, 0, longest - part.states.shape[1])) for part in parts]
    real = [torch.nn.functional.pad(part.real, (0, longest - part.real.shape[1])) for part in parts]
    return Reading(torch.cat(states), torch.cat(real))
