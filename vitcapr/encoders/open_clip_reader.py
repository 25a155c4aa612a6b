"""The two halves of a checkpoint of open_clip: a folder with ``open_clip_config.json`` and safetensors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from vitcapr.encoders.image_towers import ModelEncoder
from vitcapr.encoders.kinds import OPEN_CLIP_CONFIG, open_clip_config, weight_files
from vitcapr.encoders.text_towers import TextModel
from vitcapr.errors import UserError


def open_clip_images(folder: Path, size: tuple[int, int], dtype: torch.dtype, device: torch.device) -> ModelEncoder:
    """The image half; ``cls`` is not normalised.

    Raises:
        UserError: open_clip is not installed or does not read the checkpoint.
    """
    model, _ = _open(folder, dtype, device, force_image_size=size)
    return ModelEncoder(model, lambda pixels: {"cls": model.encode_image(pixels, normalize=False)}, size, device, dtype)


def open_clip_texts(folder: Path, dtype: torch.dtype, device: torch.device) -> tuple[Any, TextModel]:
    """The tokenizer and the text half; see :func:`open_clip_images`."""
    model, tokenizer = _open(folder, dtype, device)
    room = tokenizer.context_length
    text = TextModel(model, lambda input_ids: model.encode_text(input_ids, normalize=False), room, padded_to=room)
    return OpenClipTokenizer(tokenizer), text


class OpenClipTokenizer:
    """A tokenizer of open_clip, called like one of transformers."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.pad_token_id = getattr(getattr(tokenizer, "tokenizer", None), "pad_token_id", None) or 0

    def __call__(self, texts: Sequence[str], *, max_length: int, **_: Any) -> dict[str, list[list[int]]]:
        rows = self._tokenizer(list(texts), context_length=max_length).tolist()
        for row in rows:
            while len(row) > 1 and row[-1] == self.pad_token_id:
                row.pop()
        return {"input_ids": rows}

    def pad(self, tokens: dict[str, list[list[int]]], *, max_length: int, **_: Any) -> dict[str, torch.Tensor]:
        rows = tokens["input_ids"]
        ids = torch.tensor([[*row, *[self.pad_token_id] * (max_length - len(row))] for row in rows])
        lengths = torch.tensor([[len(row)] for row in rows])
        return {"input_ids": ids, "attention_mask": (torch.arange(max_length) < lengths).long()}


def _open(folder: Path, dtype: torch.dtype, device: torch.device, **options: Any) -> tuple[Any, Any]:
    weight_files(folder)
    try:
        import open_clip
    except ImportError as error:
        remedy = "pip install 'vitcapr[open-clip]'"
        raise UserError(
            "open_clip, which reads this checkpoint, is not installed", where=folder, remedy=remedy
        ) from error
    if ":" in str(open_clip_config(folder)[0].get("vision_cfg", {}).get("timm_model_name")):
        what, remedy = "the configuration names another checkpoint as its image encoder", "give a name of timm there"
        raise UserError(what, where=folder / OPEN_CLIP_CONFIG, remedy=remedy)
    if any(path.suffix != ".safetensors" for path in folder.glob("open_clip_*") if path.name != OPEN_CLIP_CONFIG):
        raise UserError(
            "there are pickled weights, which may run code", where=folder, remedy="keep the safetensors only"
        )
    try:
        model = open_clip.create_model(f"local-dir:{folder}", device="cpu", **options)
        tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    except Exception as error:  # A damaged checkpoint fails in many ways.
        what = f"open_clip {open_clip.__version__} does not read this checkpoint: {str(error)[:120]}"
        raise UserError(what, where=folder / OPEN_CLIP_CONFIG, remedy="fetch the checkpoint again") from error
    return model.to(device, dtype).eval().requires_grad_(False), tokenizer
