"""Checkpoints on disk: where they are, the digest of their weights, their tokenizer, and one part of them in memory.

transformers builds the part on the meta device, maps the safetensors, and reads each tensor of the part in the dtype of
the arithmetic. So the peak of memory is the part and one more tensor, for a checkpoint of any size. Only the functions
that load import transformers, which takes seconds.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from vitcapr.encoders.checkpoint_kinds import (
    ADAPTER,
    OPEN_CLIP_CONFIG,
    OPEN_CLIP_WEIGHTS,
    PROCESSORS,
    SENTENCE_MODULES,
    TOKENIZER,
    WEIGHTS,
    open_clip_config,
    weight_files,
)
from vitcapr.encoders.loading import quiet_loading
from vitcapr.errors import UserError
from vitcapr.files import read_json, sha256_bytes, sha256_file

if TYPE_CHECKING:
    import torch

MODEL_CARD = "README.md"
_NAMES = {"image": ("vision", "visual", "image"), "text": ("text",)}
"""How the names of the parts of a model of images and texts begin."""
_OPTIONAL = ("pooler", "mask_token", "position_ids")
LOCAL = {"trust_remote_code": False, "local_files_only": True}


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk; ``revision`` is the commit of a hub id, None for a folder."""

    folder: Path
    revision: str | None


def locate(source: str, revision: str) -> Checkpoint:
    """Find ``source``: under ``VITCAPR_BACKBONES``, as a folder, or on the hub (its cache first if offline).

    Raises:
        UserError: it is not found.
    """
    source, root = _timm_repository(source), os.environ.get("VITCAPR_BACKBONES")
    places = [Path(root).expanduser() / source] if root and not Path(source).is_absolute() else []
    places.append(Path(source).expanduser())
    for place in places:
        if any((place / name).is_file() for name in ("config.json", OPEN_CLIP_CONFIG)):
            return Checkpoint(place.resolve(), None)
        if place.is_dir():
            raise UserError(f"the folder of backbone '{source}' has no config.json", where=place)
    remedy = "put the checkpoint's folder under VITCAPR_BACKBONES, or run where the hub can be reached"
    if Path(source).is_absolute() or source.startswith((".", "~")) or source.count("/") > 1:
        raise UserError(f"backbone '{source}' is not a folder", where=places[-1], remedy="check the path")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        fetch = partial(snapshot_download, source, revision=revision)
        described = [MODEL_CARD, "config.json", ADAPTER, OPEN_CLIP_CONFIG, *PROCESSORS, *TOKENIZER, *SENTENCE_MODULES]
        folder = fetch(allow_patterns=[*described, *WEIGHTS])
        if not (Path(folder) / "config.json").is_file():
            folder = fetch(allow_patterns=[OPEN_CLIP_WEIGHTS])
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
        looked = ", ".join(str(place) for place in places)
        what = f"backbone '{source}' (revision {revision}) was not found locally or on the hub"
        raise UserError(what, where=f"looked in {looked}", remedy=remedy) from error
    return Checkpoint(Path(folder).resolve(), Path(folder).name)


def _timm_repository(source: str) -> str:
    """``timm:NAME`` as a hub id, with the weights that timm loads by default."""
    _, timm, name = source.rpartition("timm:")
    if not timm:
        return source
    try:
        from timm import get_pretrained_cfg
    except ImportError as error:
        remedy = "pip install 'vitcapr[timm]'"
        raise UserError("timm, which knows this name, is not installed", where=source, remedy=remedy) from error
    published = get_pretrained_cfg(name)
    if published is None or not published.hf_hub_id:
        raise UserError("timm has no weights of this name on the hub", where=source, remedy="give a hub id, timm/...")
    return str(published.hf_hub_id)


def source_name(source: str) -> str:
    """Return the name of a checkpoint: the same on every machine, so never an absolute path."""
    return Path(source).name if Path(source).expanduser().is_absolute() else source


def stated_licence(folder: Path) -> str | None:
    """Return the licence that a checkpoint states, None if it states none.

    The licence is ``license`` in the head of the model card or in ``config.json``.
    """
    from huggingface_hub import metadata_load

    config, head = folder / "config.json", None
    with suppress(OSError, ValueError, yaml.YAMLError):
        head = metadata_load(folder / MODEL_CARD)
    for stated in (head, read_json(config) if config.is_file() else None):
        if isinstance(stated, dict) and isinstance(stated.get("license"), str):
            name = stated.get("license_name") if stated["license"] == "other" else None
            return str(name or stated["license"])
    return None


def weights_digest(folder: Path) -> str:
    """sha256 of the configuration and of the weights: of each file's own sha256, in name order."""
    config = next(folder / name for name in ("config.json", OPEN_CLIP_CONFIG) if (folder / name).is_file())
    lines = [f"{path.name} {sha256_file(path)}" for path in [config, *weight_files(folder)]]
    return sha256_bytes("\n".join(lines).encode())


def read_config(folder: Path) -> Any:
    """Return the checkpoint's configuration.

    Raises:
        UserError: transformers does not know the model type. Code in the checkpoint is not run.
    """
    import transformers

    try:
        return transformers.AutoConfig.from_pretrained(folder, **LOCAL)
    except Exception as error:  # A damaged config.json fails in many ways.
        what = f"transformers {transformers.__version__} does not know this checkpoint: {str(error)[:120]}"
        raise UserError(
            what, where=folder / "config.json", remedy="use a checkpoint without code of its own"
        ) from error


def load_half(folder: Path, config: Any, dtype: "torch.dtype", half: Literal["image", "text"]) -> Any:
    """Return the model of a checkpoint; of a model of images and texts, without the other half.

    Raises:
        UserError: the model does not read ``half``, or the checkpoint lacks weights.
    """
    from transformers import MODEL_MAPPING, AutoModel

    model_class = MODEL_MAPPING.get(type(config), AutoModel)
    both = hasattr(model_class, "get_image_features") and hasattr(model_class, "get_text_features")
    remedy = "name the checkpoint of its image or text encoder, or one like CLIP, SigLIP, DINOv2 or BERT"
    if hasattr(config, "vision_config") and not both:
        what = (
            f"a {config.model_type} generates text from pictures and is not read; it gives no vectors of either alone"
        )
        raise UserError(what, where=folder, remedy=remedy)
    if not both and half == "image" and getattr(model_class, "main_input_name", "") != "pixel_values":
        raise UserError(f"a {config.model_type} does not read pictures", where=folder, remedy=remedy)
    load = partial(load_part, AutoModel, folder, dtype=dtype, config=config)
    if not both:
        return load(optional=_OPTIONAL)
    others = _NAMES["text" if half == "image" else "image"]
    for name in others:
        part: Any = getattr(config, f"{name}_config", None)
        if hasattr(part, "num_hidden_layers"):
            part.num_hidden_layers = 1  # Its other layers are neither made nor read.
    model = load(optional=(*_OPTIONAL, *others))
    for name, _ in list(model.named_children()):
        if name.startswith(others):
            delattr(model, name)
    return model


def load_part(
    part: Any,
    folder: Path,
    *,
    dtype: "torch.dtype",
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
    from safetensors import SafetensorError

    renamed: Mapping[str, str] | None = None if strip is None else {rf"^{strip}\.": ""}
    try:
        with quiet_loading():
            model, report = part.from_pretrained(
                folder,
                config=config,
                use_safetensors=True,
                dtype=dtype,
                key_mapping=renamed,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # They are reported, and refused below.
                **LOCAL,
            )
    except SafetensorError as error:
        raise UserError(f"the weights cannot be read: {error}", where=folder, remedy=remedy) from error
    for name, given, expected in report["mismatched_keys"]:
        what = f"'{name}' is {tuple(given)} in the weights, {tuple(expected)} by the configuration"
        raise UserError(what, where=folder, remedy=remedy)
    missing = []
    for key in report["missing_keys"]:
        owner, found, _ = key.rpartition("pooler.")
        if found and "pooler" in optional:
            model.get_submodule(owner.rstrip(".")).pooler = None  # Its weights would be random.
        elif not any(piece in key for piece in optional):
            missing.append(key)
    if missing:
        what = f"the weights lack {len(missing)} tensors of the model, '{sorted(missing)[0]}' among them"
        raise UserError(what, where=folder, remedy=remedy)
    return model.eval().requires_grad_(False)


def open_clip_checkpoint(folder: Path, dtype: "torch.dtype", device: "torch.device", **options: Any) -> tuple[Any, Any]:
    """Return the model and the tokenizer of a folder with ``open_clip_config.json`` and safetensors.

    Raises:
        UserError: open_clip is not installed or does not read the checkpoint.
    """
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
        with quiet_loading():
            model = open_clip.create_model(f"local-dir:{folder}", device="cpu", **options)
        tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    except Exception as error:  # A damaged checkpoint fails in many ways.
        what = f"open_clip {open_clip.__version__} does not read this checkpoint: {str(error)[:120]}"
        raise UserError(what, where=folder / OPEN_CLIP_CONFIG, remedy="fetch the checkpoint again") from error
    return model.to(device, dtype).eval().requires_grad_(False), tokenizer


def digest_with_tokenizer(folder: Path, more: Sequence[str] = ()) -> str:
    """sha256 of configuration, weights and tokenizer, and of the files of the patterns ``more``."""
    files = sorted({path for pattern in (*TOKENIZER, *more) for path in folder.glob(pattern)})
    lines = [weights_digest(folder), *(f"{path.relative_to(folder)} {sha256_file(path)}" for path in files)]
    return sha256_bytes("\n".join(lines).encode())


def open_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of a checkpoint, of transformers.

    Raises:
        UserError: there is none, or it is damaged.
    """
    from transformers import AutoTokenizer

    try:
        with quiet_loading():
            tokenizer = AutoTokenizer.from_pretrained(folder, **LOCAL)
            _add_stated_tokens(tokenizer, folder)
            return tokenizer
    except UserError:
        raise
    except Exception as error:  # Each tokenizer class has its own way to say that its files do not do.
        what = f"the tokenizer cannot be opened: {str(error)[:120]}"
        raise UserError(what, where=folder, remedy="fetch the checkpoint again") from error


def _add_stated_tokens(tokenizer: Any, folder: Path) -> None:
    """Let a tokenizer add the first and last token that its configuration states and transformers 5 leaves out.

    Raises:
        UserError: the tokenizer cannot be made to add them.
    """
    path = folder / "tokenizer_config.json"
    stated = read_json(path) if path.is_file() else {}
    if not any(stated.get(f"add_{name}_token") is True for name in ("bos", "eos")):
        return
    text = tokenizer("a", add_special_tokens=False)["input_ids"]
    begin, end, missing = list[int](), list[int](), False
    ids = tokenizer("a")["input_ids"]
    place = next((at for at in range(len(ids)) if text and ids[at : at + len(text)] == text), None)
    if place is not None:
        begin, end = ids[:place], ids[place + len(text) :]
    for name, tokens, at in (("bos", begin, 0), ("eos", end, -1)):
        identity = getattr(tokenizer, f"{name}_token_id")
        if stated.get(f"add_{name}_token") is True and identity is not None and identity not in tokens[at:][:1]:
            tokens.insert(0 if name == "bos" else len(tokens), identity)
            missing = True
    if not missing:
        return
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if place is None or backend is None:
        remedy = "save a tokenizer that adds them, or remove the statement"
        raise UserError("add_bos_token or add_eos_token is stated, and not done", where=path, remedy=remedy)
    from tokenizers.processors import TemplateProcessing

    before, after = map(tokenizer.convert_ids_to_tokens, (begin, end))
    known = dict(zip([*before, *after], [*begin, *end], strict=True))
    template = " ".join([*before, "$A", *after])
    backend.post_processor = TemplateProcessing(single=template, special_tokens=list(known.items()))


def by_length(tokens: Sequence[Sequence[int]], batch: int) -> Iterator[list[int]]:
    """Yield the places of sentences in batches of similar length, so that there is little padding."""
    order = sorted(range(len(tokens)), key=lambda index: len(tokens[index]))
    for first in range(0, len(order), batch):
        yield order[first : first + batch]
