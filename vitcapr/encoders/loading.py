"""Loads one part of a checkpoint. Only its tensors are read into memory.

transformers builds the part on the meta device, maps the safetensors, and reads each tensor of the part in the dtype of
the arithmetic. So the peak of memory is the part and one more tensor, for a checkpoint of any size.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers import AutoConfig

from vitcapr.errors import UserError

LOCAL = {"trust_remote_code": False, "local_files_only": True}


def read_config(folder: Path) -> Any:
    """The checkpoint's configuration.

    Raises:
        UserError: transformers does not know the model type. Code in the checkpoint is not run.
    """
    try:
        return AutoConfig.from_pretrained(folder, **LOCAL)
    except Exception as error:  # A damaged config.json fails in many ways.
        what = f"transformers {transformers.__version__} does not know this checkpoint: {str(error)[:120]}"
        raise UserError(
            what, where=folder / "config.json", remedy="use a checkpoint without code of its own"
        ) from error


def load_part(
    part: Any,
    folder: Path,
    *,
    dtype: torch.dtype = torch.float32,
    config: Any = None,
    strip: str | None = None,
    optional: Sequence[str] = (),
    remedy: str = "fetch the checkpoint again",
) -> Any:
    """Load ``part`` of the checkpoint in ``folder`` for inference. Every weight comes from the checkpoint.

    Args:
        part: a model class of transformers, or one of its ``Auto`` classes.
        dtype: dtype of the weights in memory.
        config: configuration of the part; None: that of the checkpoint.
        strip: prefix of the names of tensors that the checkpoint has and ``part`` does not have.
        optional: substrings of names of weights that may be missing.
        remedy: the remedy of the error for missing weights.

    Raises:
        UserError: the checkpoint lacks weights of the part, or its weights are damaged.
    """
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    renamed: Mapping[str, str] | None = None if strip is None else {rf"^{strip}\.": ""}
    try:
        model, report = part.from_pretrained(
            folder,
            config=config,
            use_safetensors=True,
            dtype=dtype,
            key_mapping=renamed,
            output_loading_info=True,
            **LOCAL,
        )
    except SafetensorError as error:
        raise UserError(f"the weights cannot be read: {error}", where=folder, remedy=remedy) from error
    missing = [key for key in report["missing_keys"] if not any(piece in key for piece in optional)]
    if missing:
        what = f"the weights lack {len(missing)} tensors of the model, '{sorted(missing)[0]}' among them"
        raise UserError(what, where=folder, remedy=remedy)
    return model.eval().requires_grad_(False)
