"""Random convolutional classifiers, saved with their real processors, as they would lie on the hub."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForImageClassification, PreTrainedModel
from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil
from transformers.models.mobilenet_v2.image_processing_pil_mobilenet_v2 import MobileNetV2ImageProcessorPil

SIZE = 42
STAGES = {"hidden_sizes": [8, 16], "depths": [1, 2]}
BY_SHARE = ConvNextImageProcessorPil(size={"shortest_edge": SIZE})
BY_EDGE = {"size": {"shortest_edge": SIZE + 6}, "crop_size": {"height": SIZE, "width": SIZE}}

FAMILIES: dict[str, tuple[dict[str, Any], Any]] = {
    "resnet": ({**STAGES, "embedding_size": 8}, BY_SHARE),
    "regnet": ({**STAGES, "embedding_size": 8, "groups_width": 8}, BY_SHARE),
    "convnext": ({**STAGES, "num_stages": 2, "layer_scale_init_value": 0.5}, BY_SHARE),
    "convnextv2": ({**STAGES, "num_stages": 2}, BY_SHARE),
    "mobilenet_v1": ({"depth_multiplier": 0.1}, MobileNetV2ImageProcessorPil(**BY_EDGE)),
    "mobilenet_v2": ({"depth_multiplier": 0.1}, MobileNetV2ImageProcessorPil(**BY_EDGE)),
    "bit": ({**STAGES, "embedding_size": 8, "num_groups": 4}, BitImageProcessorPil(**BY_EDGE)),
}


def save(family: str, folder: Path) -> PreTrainedModel:
    """The classifier, in evaluation mode; its statistics of batches are those of some pictures, not 0 and 1."""
    shape, processor = FAMILIES[family]
    torch.manual_seed(0)
    model: PreTrainedModel = AutoModelForImageClassification.from_config(AutoConfig.for_model(family, **shape))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
        for _ in range(5):
            model.train()(torch.randn(8, 3, SIZE, SIZE) + 0.3)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return model.eval()
