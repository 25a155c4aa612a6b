"""What several benchmarks are made of: rendered pictures, a ViT with random weights, and commands that print JSON."""

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from transformers import ViTConfig, ViTModel

from vitcapr.formats.manifest import read_manifest, write_manifest

VIT_TINY = {"hidden_size": 192, "num_hidden_layers": 12, "num_attention_heads": 3, "intermediate_size": 768}
VIT_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
VIT_LARGE = {
    **{"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
    "patch_size": 14,
}
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
    job = json.dumps({"settings": {"scenes": {"images": pictures, "size": size}}, "folder": str(folder)})
    command = [sys.executable, "-m", "vitcapr", "stage", "data_scenes", "--job", job]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return folder / "manifest.json"


def render_jpegs(folder: Path, pictures: int, size: int) -> Path:
    """Like :func:`render`, as JPEG files. The folder can be moved."""
    root = folder / "photographs"
    root.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scenes:
        data = read_manifest(render(Path(scenes), pictures, size))
        images = data.images.copy()
        for row, path in enumerate(data.images["path"]):
            jpeg = root / f"{Path(path).stem}.jpg"
            with Image.open(data.image_root / path) as image:
                image.convert("RGB").save(jpeg, quality=85)
            images.loc[row, ["path", "sha256"]] = jpeg.name, hashlib.sha256(jpeg.read_bytes()).hexdigest()
        tables = {"images": images, "captions": data.captions}
    return write_manifest(folder, dataset="jpegs", image_root=root, rejected=[], **tables)


def peak_mb() -> int | None:
    """Most megabytes that torch has held on the GPU; None without one."""
    return round(torch.cuda.max_memory_allocated() / 1e6) if torch.cuda.is_available() else None


def write_vit(folder: Path, shape: dict[str, int]) -> Path:
    """A checkpoint of patches of 16 pixels in pictures of 224, with random weights."""
    torch.manual_seed(0)
    ViTModel(ViTConfig(**shape), add_pooling_layer=False).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR), encoding="utf-8")
    return folder
