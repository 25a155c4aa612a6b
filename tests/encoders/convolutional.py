"""Random convolutional classifiers, saved with their real processors, as they would lie on the hub."""

from pathlib import Path
from typing import Any

import torch
from transformers import (
    BitConfig,
    BitForImageClassification,
    ConvNextConfig,
    ConvNextForImageClassification,
    ConvNextV2Config,
    ConvNextV2ForImageClassification,
    MobileNetV1Config,
    MobileNetV1ForImageClassification,
    MobileNetV2Config,
    MobileNetV2ForImageClassification,
    PreTrainedModel,
    RegNetConfig,
    RegNetForImageClassification,
    ResNetConfig,
    ResNetForImageClassification,
)
from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil
from transformers.models.mobilenet_v2.image_processing_pil_mobilenet_v2 import MobileNetV2ImageProcessorPil

SIZE = 42
STAGES = {"hidden_sizes": [8, 16], "depths": [1, 2]}
BY_SHARE = ConvNextImageProcessorPil(size={"shortest_edge": SIZE})
BY_EDGE = {"size": {"shortest_edge": SIZE + 6}, "crop_size": {"height": SIZE, "width": SIZE}}
LAYER_SCALE = {"num_stages": 2, "layer_scale_init_value": 0.5}

FAMILIES: dict[str, tuple[Any, Any, Any]] = {
    "resnet": (ResNetForImageClassification, ResNetConfig(**STAGES, embedding_size=8), BY_SHARE),
    "regnet": (RegNetForImageClassification, RegNetConfig(**STAGES, embedding_size=8, groups_width=8), BY_SHARE),
    "convnext": (ConvNextForImageClassification, ConvNextConfig(**STAGES, **LAYER_SCALE), BY_SHARE),
    "convnextv2": (ConvNextV2ForImageClassification, ConvNextV2Config(**STAGES, num_stages=2), BY_SHARE),
    "mobilenet_v1": (
        MobileNetV1ForImageClassification,
        MobileNetV1Config(depth_multiplier=0.1),
        MobileNetV2ImageProcessorPil(**BY_EDGE),
    ),
    "mobilenet_v2": (
        MobileNetV2ForImageClassification,
        MobileNetV2Config(depth_multiplier=0.1),
        MobileNetV2ImageProcessorPil(**BY_EDGE),
    ),
    "bit": (
        BitForImageClassification,
        BitConfig(**STAGES, embedding_size=8, num_groups=4),
        BitImageProcessorPil(**BY_EDGE),
    ),
}


def save(family: str, folder: Path) -> PreTrainedModel:
    """The classifier, in evaluation mode; its statistics of batches are those of some pictures, not 0 and 1."""
    make, config, processor = FAMILIES[family]
    torch.manual_seed(0)
    model: PreTrainedModel = make(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
        for _ in range(5):
            model.train()(torch.randn(8, 3, SIZE, SIZE) + 0.3)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return model.eval()
