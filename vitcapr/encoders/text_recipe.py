"""What decides the features of a caption, as attributes of a store, and the encoder that computes them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from vitcapr.encoders.checkpoints import source_name
from vitcapr.encoders.precision import dtype_name, resolve_dtype
from vitcapr.encoders.text_encoders import (
    Pool,
    TextEncoder,
    WordVectorEncoder,
    load_text_encoder,
    locate_text_encoder,
    text_encoder_digest,
)


@dataclass(frozen=True)
class TextRecipe:
    """How captions become features: the checkpoint, the attributes of every store of this recipe, and the encoder."""

    folder: Path
    attributes: dict[str, Any]
    load: Callable[[], TextEncoder | WordVectorEncoder]


def text_recipe(
    source: str, device: torch.device, *, revision: str, output: str, pool: Pool, dtype: str, max_length: int
) -> TextRecipe:
    """Find a text encoder, and collect what decides its vectors; for the arguments see :func:`load_text_encoder`."""
    checkpoint = locate_text_encoder(source, revision, output)
    attributes = {
        "backbone": source_name(source),
        "revision": checkpoint.revision,
        "weights_sha256": text_encoder_digest(checkpoint.folder),
        "output": output,
        "pool": pool if output == "hidden" else None,
        "max_length": max_length,
        "dtype": dtype_name(WordVectorEncoder.dtype if output == "word_vectors" else resolve_dtype(dtype, device)),
    }
    options: dict[str, Any] = {"revision": revision, "output": output, "pool": pool, "dtype": dtype}
    load = partial(load_text_encoder, source, device=device, max_length=max_length, **options)
    return TextRecipe(checkpoint.folder, attributes, load)
