"""What a published sentence encoder does besides its transformer: its pooling, dense layers, normalisation and prompts.

sentence-transformers (Reimers and Gurevych 2019) lists them in ``modules.json``; its own modules compute them here. The
transformer and its tokenizer are loaded like any other, so that missing weights are an error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vitcapr.encoders.kinds import MODULES
from vitcapr.errors import UserError
from vitcapr.files import read_json

_READ = ("Pooling", "Dense", "Normalize", "LayerNorm")


@dataclass(frozen=True)
class Published:
    """How sentences are meant to be encoded.

    Attributes:
        lowercase: whether sentences are put into lower case.
        prompts: texts that precede sentences, by name.
        default: the prompt that is used by default.
    """

    lowercase: bool
    prompts: dict[str, str]
    default: str

    def prompt(self, choice: str | None) -> str:
        """The prompt of a choice in the configuration: None, the name of a prompt, or a text."""
        return self.default if choice is None else self.prompts.get(choice, choice)


def read_published(folder: Path) -> Published:
    """What the files of sentence-transformers in ``folder`` say; nothing if there are none."""
    transformer, whole = (
        read_json(folder / name) if (folder / name).is_file() else {}
        for name in ("sentence_bert_config.json", "config_sentence_transformers.json")
    )
    prompts = {name: str(text) for name, text in (whole.get("prompts") or {}).items() if text}
    default = prompts.get(str(whole.get("default_prompt_name")), "")
    return Published(bool(transformer.get("do_lower_case")), prompts, default)


def load_modules(
    folder: Path, dtype: torch.dtype, device: torch.device, prompt_length: int
) -> Callable[[Tensor, Tensor], Tensor]:
    """A function from hidden states (B, T, D) and their mask to the vectors of sentences (B, E).

    Args:
        prompt_length: number of tokens of the prompt, which some poolings leave out.

    Raises:
        UserError: sentence-transformers is not installed, or there are other modules than those of ``_READ``.
    """
    remedy = "set pool to mean, cls or last, which leaves out the modules of the checkpoint"
    try:
        from sentence_transformers.sentence_transformer import modules as library
    except ImportError as error:
        what = f"{MODULES} says how sentences are pooled, and sentence-transformers is not installed"
        remedy = f"pip install 'vitcapr[sentence-transformers]', or {remedy}"
        raise UserError(what, where=folder, remedy=remedy) from error
    modules: list[Any] = []
    for listed in read_json(folder / MODULES)[1:]:
        name, path = str(listed.get("type")).rpartition(".")[2], str(listed.get("path"))
        place = folder / path
        if name not in _READ or Path(path).name != path or (name == "Dense" and not any(place.glob("*.safetensors"))):
            what = f"the module '{listed.get('type')}' in '{path}' is not read, or has no safetensors"
            raise UserError(what, where=folder / MODULES, remedy=remedy)
        module_class = getattr(library, name)
        module = module_class() if name == "Normalize" else module_class.load(str(place))
        modules.append(module.to(device, dtype).eval())

    def vectors(hidden: Tensor, mask: Tensor) -> Tensor:
        features: dict[str, Any] = {
            "token_embeddings": hidden.to(dtype),
            "attention_mask": mask,
            "prompt_length": prompt_length,
        }
        for module in modules:
            features = module(features)
        sentences: Tensor = features["sentence_embedding"].float()
        return sentences

    return vectors
