"""Preprocesses photographs as the processor of a checkpoint says.

The files of transformers, timm and open_clip name the steps, and the numbers equal those of these libraries. Threads
resize and crop with Pillow to 8-bit pixels. The device normalises a whole batch at once.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from vitcapr.encoders.checkpoint_kinds import (
    OPEN_CLIP_CONFIG,
    PROCESSORS,
    image_kind,
    open_clip_config,
    read_model_config,
)
from vitcapr.encoders.checkpoints import LOCAL
from vitcapr.encoders.devices import to_device
from vitcapr.encoders.loading import quiet_loading
from vitcapr.errors import UserError
from vitcapr.files import read_json
from vitcapr.formats.records import reading

INTERPOLATIONS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
_STEPS = {"do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb", "do_flip_channel_order"}
"""Switches of transformers' processors that are read."""
_ALL = {"do_resize": True, "do_rescale": True, "do_normalize": True}
_CROPPED_SHARE = 224 / 256
_UNCROPPED_FROM = 384
_TIMM_SHARE = 0.875
IMAGENET_STATISTICS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CLIP_STATISTICS = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_LARGEST_RESIZED = 64
"""Largest ratio of resized to cropped pixels at which a picture is resized whole; ``box`` changes some by one."""
_SUPPORT = 3
"""Pixels on each side that the widest kernel (lanczos) reads."""


@dataclass(frozen=True)
class Preprocessing:
    """Mirror (if ``mirror``), resize, crop, scale, normalise.

    Attributes:
        resize: (height, width) of the resized image, or (edge,), the length of its shorter side.
        crop: (height, width) of the centre crop after resizing; None: no crop.
        interpolation: a key of ``INTERPOLATIONS``.
        scale: factor on the 8-bit values, before ``mean`` and ``std``.
        mean, std: mean and standard deviation of the three channels.
        mirror: flip left to right before all other steps.
        rounded_crop: half a pixel of the crop's offset is rounded to even, as torchvision does, and not down.
        bgr: the channels are blue, green, red; ``mean`` and ``std`` are in this order.
    """

    resize: tuple[int, ...]
    crop: tuple[int, int] | None
    interpolation: str
    scale: float
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    mirror: bool = False
    rounded_crop: bool = False
    bgr: bool = False

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the model's input."""
        if self.crop is not None:
            return self.crop
        return self.resize[0], self.resize[-1]

    def describe(self) -> dict[str, Any]:
        """Plain JSON values, for the fingerprint and the store's attributes; switches only where they are true."""
        values: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return {name: value for name, value in values.items() if value is not False}

    def prepare(self, image: Image.Image, out: np.ndarray) -> None:
        """Mirror, resize and crop an RGB picture into ``out``: (H, W, 3) uint8."""
        if self.mirror:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        height, width = self._resized(image.height, image.width)
        resample = INTERPOLATIONS[self.interpolation]
        if self.crop is not None and height * width > _LARGEST_RESIZED * self.crop[0] * self.crop[1]:
            image = self._resize_to_crop(image, (height, width), self.crop, resample)
        elif (image.height, image.width) != (height, width):
            image = image.resize((width, height), resample)
        if self.crop is not None and self.crop != (image.height, image.width):
            top, left = self._offset(height, self.crop[0]), self._offset(width, self.crop[1])
            image = image.crop((left, top, left + self.crop[1], top + self.crop[0]))
        out[...] = np.asarray(image)[..., ::-1] if self.bgr else image

    def _offset(self, length: int, kept: int) -> int:
        return round((length - kept) / 2) if self.rounded_crop else (length - kept) // 2

    def _resize_to_crop(
        self, image: Image.Image, resized: tuple[int, int], crop: tuple[int, int], resample: Image.Resampling
    ) -> Image.Image:
        """Return the centre crop of the resized picture, from the pixels that it needs.

        Where the shorter side is enlarged, the longer side of a narrow picture has millions of pixels.
        """
        spans, parts = [], []
        for length, whole, kept in zip((image.height, image.width), resized, crop, strict=True):
            start = self._offset(whole, kept)
            first, last = start * length / whole, (start + kept) * length / whole
            margin = _SUPPORT * max(1, math.ceil(length / whole))
            begin, end = max(0, math.floor(first) - margin), min(length, math.ceil(last) + margin)
            parts.append((begin, end))
            spans.append((first - begin, last - begin))
        (top, bottom), (left, right) = parts
        (y, y_end), (x, x_end) = spans
        part = image.crop((left, top, right, bottom))
        return part.resize((crop[1], crop[0]), resample, box=(x, y, x_end, y_end))

    def prepared(self, image: Image.Image) -> np.ndarray:
        """Return the pixels of the model's input for a picture, (H, W, 3) uint8."""
        pixels = np.empty((*self.size, 3), np.uint8)
        self.prepare(image, pixels)
        return pixels

    def _resized(self, height: int, width: int) -> tuple[int, int]:
        if len(self.resize) == 2:
            return self.resize[0], self.resize[1]
        edge = self.resize[0]
        if width <= height:
            return int(edge * height / width), edge
        return edge, int(edge * width / height)

    def normalise(self, pixels: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """``(B, H, W, 3)`` uint8 -> ``(B, 3, H, W)`` of ``dtype``; the arithmetic is float32."""
        mean, std = torch.tensor(self.mean), torch.tensor(self.std)
        # By whole rows of pixels: an axis of three channels is too short for vector instructions.
        rows = torch.stack([self.scale / std, mean / std]).repeat(1, pixels.shape[2])
        factor, shift = to_device(rows, pixels.device)
        normalised = pixels.flatten(2).to(torch.float32).mul_(factor).sub_(shift).view(pixels.shape)
        return normalised.permute(0, 3, 1, 2).to(dtype)


def read_preprocessing(
    folder: Path,
    model_size: tuple[int, int],
    image_size: int | None = None,
    interpolation: str | None = None,
    mirror: bool = False,
) -> tuple[Preprocessing, str | None]:
    """Return the preprocessing of the checkpoint in ``folder``, with the changes of the configuration.

    Args:
        model_size: height and width in the model's configuration; used if the processor has no size.
        image_size: side in pixels instead of the checkpoint's; a resize before a crop changes in proportion.

    Returns:
        The preprocessing, and a line for the user if something is assumed.
    """
    content, path = _described(folder, model_size)
    note = None
    if content is None:
        content = {**_ALL, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
        shape = f"{model_size[0]} x {model_size[1]}"
        note = f"no preprocessor_config.json in {folder}: pictures are stretched to {shape}, mean 0.5, std 0.5"
    stated = _parse(content, model_size, path)
    interpolation = interpolation or stated.interpolation
    changed = replace(stated, mirror=mirror, interpolation=interpolation)
    if image_size is not None:
        square, crop = (image_size, image_size), stated.crop
        resize = square if crop is None else tuple(round(edge * image_size / crop[0]) for edge in stated.resize)
        changed = replace(changed, resize=resize, crop=crop and square)
    return changed, note


def _described(folder: Path, model_size: tuple[int, int]) -> tuple[Mapping[str, Any] | None, Path]:
    """Return the preprocessing that the checkpoint states, in transformers' words, or None, and the file of it."""
    kind, config = image_kind(folder), folder / "config.json"
    path = next((folder / name for name in PROCESSORS if (folder / name).is_file()), None)
    if path is None and kind == "open-clip":
        return _read_open_clip({"size": model_size[0], **open_clip_config(folder)[1]}), folder / OPEN_CLIP_CONFIG
    if path is None:
        return (_read_timm(read_model_config(folder)["pretrained_cfg"]) if kind == "timm" else None), config
    from transformers import AutoImageProcessor

    try:
        with quiet_loading():
            content = AutoImageProcessor.from_pretrained(folder, backend="pil", **LOCAL).to_dict()
    except Exception:  # It has this processor for torchvision alone, or not at all, or the file is damaged.
        with reading(path, "a description of an image processor", "fetch the checkpoint again"):
            stated = read_json(path)
            content = {**_ALL, **stated.get("image_processor", stated)}
    if steps := [name for name in content if name.startswith("do_") and content[name] and name not in _STEPS]:
        raise UserError(f"the step '{steps[0]}' of the processor is not read", where=path, remedy="set it to false")
    return content, path


def _read_timm(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Timm's evaluation: resize to the model's size over ``crop_pct``, then crop the centre."""
    size, mode = stated["input_size"][1:], stated.get("crop_mode") or "center"
    edges = [math.floor(length / (stated.get("crop_pct") or _TIMM_SHARE)) for length in size]
    resize = {"center": {"shortest_edge": edges[0]}, "squash": _sides(edges)}.get(mode, {mode: edges})
    return {"size": resize, "crop_size": _sides(size), **_read_torchvision(stated, IMAGENET_STATISTICS)}


def _read_open_clip(stated: Mapping[str, Any]) -> dict[str, Any]:
    size, mode = stated["size"], stated.get("resize_mode", "shortest")
    size = [size, size] if isinstance(size, int) else size
    resize = {"shortest": {"shortest_edge": min(size)}, "squash": _sides(size)}.get(mode, {mode: size})
    return {"size": resize, "crop_size": _sides(size), **_read_torchvision(stated, CLIP_STATISTICS)}


def _sides(size: Sequence[int]) -> dict[str, int]:
    return dict(zip(("height", "width"), size, strict=True))


def _read_torchvision(stated: Mapping[str, Any], usual: Sequence[Sequence[float]]) -> dict[str, Any]:
    mean, std = (list(stated.get(name) or value) for name, value in zip(("mean", "std"), usual, strict=True))
    resample = INTERPOLATIONS.get(stated.get("interpolation") or "bicubic", Image.Resampling.BICUBIC)
    crop = {**_ALL, "do_center_crop": True, "rounded_crop": True}
    return {"image_mean": mean, "image_std": std, "resample": int(resample), **crop}


def _parse(content: Mapping[str, Any], model_size: tuple[int, int], where: Path) -> Preprocessing:
    size = content.get("size") if content.get("do_resize") else None
    resize: tuple[int, ...] = _size(size, where) if size else model_size
    crop: Any = _size(content["crop_size"], where) if content.get("do_center_crop") else None
    if str(content.get("image_processor_type")).startswith("ConvNext") and len(resize) == 1:
        # ResNet and RegNet use it too. It stretches large images, and cuts a share out of others.
        edge, share = resize[0], content.get("crop_pct") or _CROPPED_SHARE
        resize, crop = ((edge, edge), None) if edge >= _UNCROPPED_FROM else ((int(edge / share),), (edge, edge))
    if crop is None and len(resize) == 1:
        raise UserError(
            "the processor keeps each picture's shape (shortest_edge without a crop), so pictures make no batch",
            where=where,
            remedy="give crop_size and do_center_crop there",
        )
    if crop is not None and min(resize) < max(crop):
        raise UserError(f"the crop {crop} is larger than the resized picture ({min(resize)})", where=where)
    resample = content.get("resample", Image.Resampling.BILINEAR)
    names = {int(value): name for name, value in INTERPOLATIONS.items()}
    if resample not in names:
        raise UserError(
            f"interpolation {resample} is not known", where=where, remedy=f"one of {', '.join(INTERPOLATIONS)}"
        )
    normalised = content.get("do_normalize")
    stated: list[Any] = [content.get("image_mean"), content.get("image_std")]
    mean, std = stated if normalised else [[0.0] * 3, [1.0] * 3]
    if not all(isinstance(each, list | tuple) and len(each) == 3 for each in (mean, std)):
        raise UserError("image_mean and image_std must each be three numbers", where=where)
    if content.get("rescale_offset"):  # EfficientNet's pixels, from -1 on,
        mean = [value + 1 for value in mean]
    if content.get("include_top"):  # and divided by std twice.
        std = [value**2 for value in std]
    scale = float(content.get("rescale_factor", 1 / 255)) if content.get("do_rescale") else 1.0
    triples: list[Any] = [tuple(map(float, each)) for each in (mean, std)]
    rounded, bgr = bool(content.get("rounded_crop")), bool(content.get("do_flip_channel_order"))
    return Preprocessing(resize, crop, names[resample], scale, triples[0], triples[1], rounded_crop=rounded, bgr=bgr)


def _size(value: Any, where: Path) -> tuple[int, ...]:
    """``{"height", "width"}`` or ``{"shortest_edge"}``."""
    keys = value.keys() if isinstance(value, dict) else set()
    if {"height", "width"} <= keys:
        return int(value["height"]), int(value["width"])
    if keys == {"shortest_edge"}:
        return (int(value["shortest_edge"]),)
    raise UserError(f"size {value} is not understood", where=where, remedy="give height and width")
