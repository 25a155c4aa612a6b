"""Parts of text encoders: the model of a checkpoint, its input format, further layers, and word vectors.

Outputs of a model:

- ``hidden``: the last layer of the text transformer, which the caller pools.
- ``aligned``: the vector in the space shared with images: ``get_text_features``, or of BLIP-2's Q-Former.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForTextEncoding, Blip2TextModelWithProjection

from vitcapr.encoders.checkpoint_kinds import ITC_REMEDY, MODULES, T5
from vitcapr.encoders.checkpoints import load_half, load_part, open_clip_checkpoint, read_config
from vitcapr.errors import UserError
from vitcapr.files import read_json
from vitcapr.text.normalise import words_of
from vitcapr.text.vector_files import read_dimension, read_vectors

Output = Literal["hidden", "aligned"]
_LANGUAGE_REMEDY = "output: hidden needs a checkpoint with its language model; an itm checkpoint has output: aligned"
_READ = ("Pooling", "Dense", "Normalize", "LayerNorm")
"""Modules of sentence-transformers."""


@dataclass(frozen=True)
class TextModel:
    """A loaded text encoder.

    Attributes:
        run: from token ids (B, T) and mask, by name, to hidden states (B, T, D) or vectors of captions (B, E).
        room: maximum number of tokens; None: no limit.
        padded_to: every caption is padded to this number of tokens, and the model attends to the padding, as in its
            training (SigLIP). None: a batch is padded to its longest caption, and the padding is masked.
    """

    model: torch.nn.Module
    run: Callable[..., Tensor]
    room: int | None
    padded_to: int | None = None


def load_text_model(folder: Path, output: Output, dtype: torch.dtype, device: torch.device) -> TextModel:
    """Load only the text encoder of the checkpoint in ``folder``.

    Args:
        output: one that the checkpoint has; see :func:`vitcapr.encoders.checkpoint_kinds.check_text_encoder`.
            ``aligned`` is the vector of ``get_text_features``. Only BLIP-2's has length 1.
        dtype: dtype of the weights.

    Raises:
        UserError: the checkpoint lacks weights, or its model has no such output.
    """
    config = read_config(folder)
    kind, text = config.model_type, getattr(config, "text_config", config)
    room = getattr(text, "max_position_embeddings", None)
    padded_to = room if kind.startswith("siglip") else None
    if kind == "blip-2" and output == "aligned":
        # The Q-Former read as a BERT: the vector is the projection of its first token.
        model = load_part(Blip2TextModelWithProjection, folder, config=config, dtype=dtype, remedy=ITC_REMEDY).to(
            device
        )
        room = config.qformer_config.max_position_embeddings
        return TextModel(model, lambda **tokens: model(**tokens).text_embeds[:, 0], room)
    if kind == "blip-2":
        options: dict[str, Any] = {"strip": "language_model", "optional": ("pooler",), "remedy": _LANGUAGE_REMEDY}
        model = load_part(AutoModelForTextEncoding, folder, dtype=dtype, config=text, **options)
        room = None
    elif kind in T5:
        model = load_part(AutoModelForTextEncoding, folder, dtype=dtype)
    else:
        if kind == "aimv2":  # Its fast attention sees the padding, or with none what follows.
            config._attn_implementation = "eager"
        model = load_half(folder, config, dtype, "text")
    if output == "aligned":
        if not hasattr(model, "get_text_features"):
            remedy = "use output: hidden, or a checkpoint like CLIP or SigLIP"
            raise UserError(f"a {kind} has no output 'aligned'", where=folder, remedy=remedy)
        return TextModel(model.to(device), lambda **tokens: _pooled(model.get_text_features(**tokens)), room, padded_to)
    encoder = model.get_encoder() if model.config.is_encoder_decoder else getattr(model, "text_model", model)
    return TextModel(encoder.to(device), lambda **tokens: encoder(**tokens).last_hidden_state, room, padded_to)


def _pooled(output: Any) -> Tensor:
    vectors: Tensor = output if isinstance(output, Tensor) else output.pooler_output
    return vectors


def open_clip_texts(folder: Path, dtype: torch.dtype, device: torch.device) -> tuple[Any, TextModel]:
    """Return the tokenizer and the text half of a checkpoint of open_clip; see :func:`open_clip_checkpoint`."""
    model, tokenizer = open_clip_checkpoint(folder, dtype, device)
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


@dataclass(frozen=True)
class Published:
    """Encoding of sentences that a published checkpoint asks for.

    Attributes:
        lowercase: whether sentences are put into lower case.
        prompts: texts that precede sentences, by name.
        default: the prompt that is used by default.
    """

    lowercase: bool
    prompts: dict[str, str]
    default: str

    def prompt(self, choice: str | None) -> str:
        """Return the prompt of a choice in the configuration: None, the name of a prompt, or a text."""
        return self.default if choice is None else self.prompts.get(choice, choice)


def read_published(folder: Path) -> Published:
    """Return the encoding that the files of sentence-transformers in ``folder`` ask for, if there are any."""
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
    """Return a function from hidden states (B, T, D) and their mask to the vectors of sentences (B, E).

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


class WordVectorEncoder:
    """Published word vectors, used as a :class:`TextEncoder`: a sentence is the mean of the vectors of its words.

    It knows all words of the file, for any vocabulary. If a word occurs twice in the file, the first vector is used.
    """

    dtype, device, longest = torch.float32, torch.device("cpu"), None

    def __init__(self, path: Path) -> None:
        self.dim = read_dimension(path)
        self._rows: dict[str, int] = {}
        vectors: list[np.ndarray] = []
        for word, vector in read_vectors(path, self.dim, []):
            if word not in self._rows:
                self._rows[word] = len(vectors)
                vectors.append(np.asarray(vector, np.float32))
        if not vectors:
            raise UserError("the file holds no word vectors", where=path, remedy="name a file in GloVe's format")
        self.model = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(np.stack(vectors)), mode="mean")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vector of each sentence, (n, D) float32: :meth:`tokenize`, then :meth:`encode_tokens`."""
        vectors: np.ndarray = self.encode_tokens(self.tokenize(texts)).numpy()
        return vectors

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the rows of the known words of each sentence, with repetitions."""
        return [[self._rows[word] for word in words_of(text) if word in self._rows] for text in texts]

    def encode_tokens(self, tokens: Sequence[list[int]]) -> Tensor:
        """Return the mean over each sentence, (n, D) float32; zero for a sentence without a known word."""
        lengths = [len(of_sentence) for of_sentence in tokens]
        offsets = torch.from_numpy(np.cumsum([0, *lengths])[:-1])
        words = torch.tensor([row for of_sentence in tokens for row in of_sentence], dtype=torch.int64)
        with torch.inference_mode():
            means: Tensor = self.model(words, offsets)
        return means
