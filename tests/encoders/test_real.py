"""The real ViT-Ti on real photographs; needs VITCAPR_DATA and VITCAPR_BACKBONES."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import ViTModel
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

from vitcapr.encoders.checkpoints import locate
from vitcapr.encoders.image_towers import Backbone, model_image_size
from vitcapr.encoders.preprocess import read_preprocessing

NAME = "vit-tiny-patch16-224-augreg"


@pytest.mark.data
def test_photographs_give_what_transformers_gives() -> None:
    photographs = Path(os.environ.get("VITCAPR_DATA", "/absent")) / "flickr8k" / "Flicker8k_Dataset"
    if not photographs.is_dir() or "VITCAPR_BACKBONES" not in os.environ:
        pytest.skip(f"set VITCAPR_DATA (with flickr8k/Flicker8k_Dataset) and VITCAPR_BACKBONES (with {NAME})")
    folder = locate(NAME, "main").folder
    preprocessing, _ = read_preprocessing(folder, model_image_size(folder))
    exact = Backbone(folder, preprocessing.size, torch.float32)
    fast = Backbone(folder, preprocessing.size, torch.bfloat16)
    images = [Image.open(path).convert("RGB") for path in sorted(photographs.glob("*.jpg"))[:3]]
    pixels = np.empty((3, *preprocessing.size, 3), np.uint8)
    for image, out in zip(images, pixels, strict=True):
        preprocessing.prepare(image, out)
    cls, patches = exact(preprocessing.normalise(torch.from_numpy(pixels), torch.float32))

    processed = ViTImageProcessorPil.from_pretrained(folder)(images, return_tensors="pt")["pixel_values"]
    model = ViTModel.from_pretrained(folder, add_pooling_layer=False).eval()
    with torch.inference_mode():
        hidden = model(processed).last_hidden_state
    torch.testing.assert_close(cls, hidden[:, 0], rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(patches, hidden[:, 1:], rtol=1e-4, atol=1e-3)

    rounded = fast(preprocessing.normalise(torch.from_numpy(pixels), torch.bfloat16))[1].float()
    assert torch.nn.functional.cosine_similarity(rounded, patches, dim=-1).mean() > 0.99
