"""Kind of a checkpoint, from its ``config.json`` and the names of its files, without weights or torch.

An output of an image encoder:

- ``hidden``: the last layer: a vector ``cls`` and a vector for each patch, or for each position of a feature map.
- ``aligned``: the vector in the space shared with captions, of models like CLIP, or of BLIP-2's image-text contrastive
  head (J. Li et al. 2023, section 3.1).
- ``qformer``: BLIP-2's query tokens before any projection.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from vitcapr.errors import UserError
from vitcapr.loader import parts

Kind = str
"""``auto``, a key of :data:`OUTPUTS`, or the name of a plugin."""
Output = Literal["hidden", "aligned", "qformer"]
Pool = Literal["mean", "max", "first"]
Patches = Literal["all", "none"] | int

OUTPUTS: Mapping[str, tuple[Output, ...]] = {
    "vit": ("hidden",),
    "cnn": ("hidden",),
    "timm": ("hidden",),
    "image-text": ("hidden", "aligned"),
    "blip-2": ("hidden", "aligned", "qformer"),
    "open-clip": ("aligned",),
}
"""``vit``: a network on patches of one size; ``cnn``: one with stages, convolutional or not."""
OPEN_CLIP_CONFIG = "open_clip_config.json"
MODULES = "modules.json"
"""The file by which sentence-transformers knows its checkpoints."""
T5 = ("t5", "mt5", "umt5")
"""Model types of encoders with a decoder; only the encoder is loaded."""
_STAGES = {"depths", "hidden_sizes", "num_block_repeats", "layer_depths", "depth_multiplier"}
_WITHOUT_CLS = ("siglip", "aimv2", "ijepa", "pixtral", "radio")
ADAPTER = "adapter_config.json"
WEIGHTS = ["model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors"]
PROCESSORS = ("preprocessor_config.json", "processor_config.json")
"""Files of the preprocessing of a checkpoint; the newer file has it under ``image_processor``."""
OPEN_CLIP_WEIGHTS = "open_clip_model.safetensors"
TOKENIZER = [
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "*.model"),
]
SENTENCE_MODULES = [
    *(MODULES, "sentence_bert_config.json", "config_sentence_transformers.json"),
    *("[0-9]*_*/config.json", "[0-9]*_*/model.safetensors"),
]
"""Files that sentence-transformers reads in addition to the weights and the tokenizer."""
_ALIGNED = "use output: hidden, or a checkpoint like CLIP, SigLIP or BLIP-2"
VIT_REMEDY = "use a ViT, DeiT, DINOv2 or CLIP checkpoint"
ITC_REMEDY = "output: aligned needs a checkpoint with contrastive projections, such as Salesforce/blip2-itm-vit-g"


def read_model_config(folder: Path) -> dict[str, Any]:
    """Return the content of ``config.json``; empty if there is none."""
    try:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def open_clip_config(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the configuration of a model of open_clip and of its preprocessing."""
    content = json.loads((folder / OPEN_CLIP_CONFIG).read_text(encoding="utf-8"))
    return content["model_cfg"], content.get("preprocess_cfg", {})


def image_kind(folder: Path) -> str:
    """Return the kind of a checkpoint, a key of :data:`OUTPUTS`; by default ``vit``."""
    config = read_model_config(folder)
    if not config and (folder / OPEN_CLIP_CONFIG).is_file():
        return "open-clip"
    if config.get("model_type") == "blip-2":
        return "blip-2"
    if "text_config" in config:
        return "image-text"
    return "timm" if "architecture" in config else "cnn" if config.keys() & _STAGES else "vit"


def library(folder: Path, pooled: bool = True) -> str | None:
    """Return the optional library that reads a checkpoint, with its version; None if transformers reads it.

    Features may change with that version. ``pooled`` says whether ``modules.json`` counts.
    """
    name = {"timm": "timm", "open-clip": "open-clip-torch"}.get(image_kind(folder))
    if name is None and pooled and (folder / MODULES).is_file():
        name = "sentence-transformers"
    return name and installed(name)


def installed(distribution: str) -> str:
    """Return the name of a distribution, with its version if it is installed."""
    with suppress(PackageNotFoundError):
        return f"{distribution} {version(distribution)}"
    return distribution


def is_checkpoint(path: Path) -> bool:
    """Return whether a path is the folder of a checkpoint, by the files of its configuration."""
    return any((path / name).is_file() for name in ("config.json", OPEN_CLIP_CONFIG, MODULES))


def has_cls_token(folder: Path, kind: Kind) -> bool:
    """Return whether a network has a CLS token, as far as its configuration says."""
    model = str(read_model_config(folder).get("model_type"))
    known = image_kind(folder) if kind == "auto" else kind
    if "timm:" in str(folder):
        return False
    return known in ("vit", "image-text", "blip-2") and not model.startswith(_WITHOUT_CLS)


def check_image_encoder(
    folder: Path, kind: Kind, output: Output, layers: Sequence[int] = (), image_size: int | None = None
) -> str:
    """Check what is asked of an image encoder, and return its kind. A plugin checks its checkpoint itself.

    Args:
        layers: hidden layers, counted from 1, increasing.
        image_size: side of the images; None: the checkpoint's.

    Raises:
        UserError: the checkpoint is of another kind or no image encoder, its weights are no safetensors, or it has no
            such output, layer or size.
    """
    if kind in parts("ENCODER"):
        return kind
    config, actual = read_model_config(folder), image_kind(folder)
    model = config.get("model_type", "no model_type")
    if kind not in ("auto", actual):
        what = f"the backbone is of kind {actual} ({model}), not {kind}"
        raise UserError(what, where=folder, remedy="set kind: auto")
    if output not in OUTPUTS[actual]:
        what = f"a backbone of kind {actual} ({model}) has no output '{output}'"
        raise UserError(what, where=folder, remedy=f"set output to {' or '.join(OUTPUTS[actual])}")
    vision = config.get("vision_config", config)
    seen = {"vision_config", "image_size", "patch_size", "num_channels"}
    if config.keys() & {"vocab_size", "max_position_embeddings"} and not config.keys() & seen:
        raise UserError(f"a model of type {model} does not read pictures", where=folder, remedy=VIT_REMEDY)
    weight_files(folder)
    if layers and actual == "cnn":
        remedy = "leave out layers, or use a ViT"
        raise UserError("a network with stages has no layers of patches to choose from", where=folder, remedy=remedy)
    if layers and (count := vision.get("num_hidden_layers", layers[-1])) < layers[-1]:
        what = f"the network has {count} layers, and layer {layers[-1]} is to be stored"
        raise UserError(what, where=folder, remedy=f"set layers to numbers from 1 to {count}")
    patch = vision.get("patch_size")
    if actual not in ("cnn", "timm") and image_size and isinstance(patch, int) and image_size % patch:
        what = f"pictures of {image_size} x {image_size} do not divide into patches of {patch} x {patch}"
        raise UserError(what, where=folder, remedy=f"set image_size to a multiple of {patch}")
    return actual


def check_image_tower(folder: Path, image_size: int | None) -> None:
    """Check a ViT that is to be fine-tuned as the image tower of a dual encoder; see :func:`check_image_encoder`."""
    kind = check_image_encoder(folder, "auto", "hidden", image_size=image_size)
    if not has_cls_token(folder, kind):
        raise UserError(f"a network of kind {kind} has no CLS token to fine-tune", where=folder, remedy=VIT_REMEDY)


def check_text_encoder(folder: Path, output: str, max_length: int) -> None:
    """Check what is asked of a text encoder.

    Raises:
        UserError: its weights are no safetensors, it has no tokenizer or no such output, or it reads fewer tokens than
            ``max_length``.
    """
    weight_files(folder)
    if image_kind(folder) == "open-clip":
        if output != "aligned":
            raise UserError("an open_clip checkpoint has only output: aligned", where=folder, remedy="set it")
        return
    if not any(path for pattern in TOKENIZER for path in folder.glob(pattern)):
        what = "the text encoder has no tokenizer"
        raise UserError(what, where=folder, remedy="put its tokenizer.json beside the weights")
    config = read_model_config(folder)
    model = str(config.get("model_type"))
    if output == "aligned" and "aligned" not in OUTPUTS[image_kind(folder)]:
        raise UserError(f"a text encoder of kind {model} has no output 'aligned'", where=folder, remedy=_ALIGNED)
    language = str(config.get("text_config", {}).get("model_type"))
    if model == "blip-2" and output == "hidden" and language not in T5:
        what = f"the language model of this BLIP-2 ({language}) has no encoder of text"
        raise UserError(what, where=folder, remedy="use a flan-t5 checkpoint, or output: aligned of an itm checkpoint")
    part = "qformer_config" if model == "blip-2" and output == "aligned" else "text_config"
    room = config.get(part, config).get("max_position_embeddings")
    if isinstance(room, int):
        check_room(folder, max_length, room)


def check_room(folder: Path, max_length: int, room: int | None) -> None:
    """Check that an encoder reads ``max_length`` tokens; ``room`` None: any number."""
    if room is not None and max_length > room:
        what = f"max_length {max_length} is more than the {room} tokens that the text encoder reads"
        raise UserError(what, where=folder, remedy=f"set max_length to {room} or less")


def weight_files(folder: Path) -> list[Path]:
    """Return the files of the weights, in name order.

    Raises:
        UserError: there are no safetensors.
    """
    if (adapter := folder / ADAPTER).is_file():
        what = "an adapter lies beside the weights and would change them"
        raise UserError(what, where=adapter, remedy="merge it (merge_and_unload of peft) or take its files away")
    patterns = WEIGHTS if (folder / "config.json").is_file() else [OPEN_CLIP_WEIGHTS]
    weights = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    if not any(path.suffix == ".safetensors" for path in weights):
        pickled = any(folder.glob("*.bin"))
        raise UserError(
            "the checkpoint has no model.safetensors"
            + (", only pickled weights, which may run code" if pickled else ""),
            where=folder,
            remedy="save it again with model.save_pretrained(folder), which writes safetensors",
        )
    return weights
