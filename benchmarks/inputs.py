"""What several benchmarks are made of: rendered pictures, a ViT with random weights, and commands that print JSON."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import ViTConfig, ViTModel

VIT_TINY = {"hidden_size": 192, "num_hidden_layers": 12, "num_attention_heads": 3, "intermediate_size": 768}
VIT_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
PROCESSOR = {
    "image_processor_type": "ViTImageProcessor",
    "do_resize": True,
    "do_rescale": True,
    "do_normalize": True,
    "rescale_factor": 1 / 255,
    "resample": 3,
    "size": {"height": 224, "width": 224},
    "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3,
}


def measured(*arguments: str) -> Any:
    """What a command prints as JSON."""
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def render(folder: Path, pictures: int, size: int) -> Path:
    """Render pictures of ``size`` x ``size`` into ``folder``. Returns their manifest."""
    settings = json.dumps({"scenes": {"images": pictures, "size": size}})
    command = [sys.executable, "-m", "vitcapr", "stage", "data_scenes", "--settings", settings, "--folder", str(folder)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return folder / "manifest.json"


def write_vit(folder: Path, shape: dict[str, int]) -> Path:
    """A checkpoint of patches of 16 pixels in pictures of 224, with random weights."""
    torch.manual_seed(0)
    ViTModel(ViTConfig(**shape), add_pooling_layer=False).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR), encoding="utf-8")
    return folder
