"""Inputs of the toy experiments other than rendered scenes: a random ViT, text encoder, language model and word
vectors."""

import random
from pathlib import Path

from tests import checkpoints
from tests.checkpoints import save_bert, save_checkpoint, tiny_vit
from tests.encoders.two_towers import clip
from tests.models.networks import save_language_model

SHAPE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
EVEN = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
PROCESSOR = {**checkpoints.PROCESSOR, **EVEN, "size": {"height": 56, "width": 56}}
WORDS = (
    "a an the and of in on at to is are with left right above below under over beside between near large small big "
    "tiny red green blue yellow orange purple pink black white grey gray brown circle square triangle star cross ring "
    "diamond ball box shape object picture photo there two three one four"
)
LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]


def write_inputs(folder: Path) -> None:
    """Write the folders ``vit``, ``bert``, ``clip``, ``llama``, and ``vectors.txt`` in GloVe's format, 8 numbers."""
    vit = tiny_vit(**SHAPE, image_size=56, patch_size=14, initializer_range=0.02)
    save_checkpoint(vit, folder / "vit", PROCESSOR)
    pieces = dict.fromkeys([*WORDS.split(), *LETTERS, *(f"##{letter}" for letter in LETTERS)])
    save_bert(folder / "bert", list(pieces), **SHAPE, max_position_embeddings=64)
    clip(folder / "clip")
    save_language_model(folder / "llama", [WORDS, WORDS])
    numbers = random.Random(0)
    lines = (f"{word} {' '.join(f'{numbers.gauss(0, 1):.4f}' for _ in range(8))}\n" for word in WORDS.split())
    (folder / "vectors.txt").write_text("".join(lines), encoding="utf-8")
