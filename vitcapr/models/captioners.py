"""The captioners by the names of their architectures."""

from typing import Any

from vitcapr.models.interface import Captioner
from vitcapr.models.language_model_captioner import LanguageModelCaptioner
from vitcapr.models.lstm_captioners import BaselineCaptioner, PatchAttentionCaptioner
from vitcapr.models.transformer_captioner import TransformerCaptioner

CAPTIONERS: dict[str, type[Captioner]] = {
    "baseline": BaselineCaptioner,
    "patch_attention": PatchAttentionCaptioner,
    "transformer": TransformerCaptioner,
    "language_model": LanguageModelCaptioner,
}
"""By the ``architecture`` of ``vitcapr.config.captioner``, which has the defaults of their arguments."""


def build_captioner(architecture: dict[str, Any], **network: Any) -> Captioner:
    """The untrained captioner that a card's ``architecture`` describes: ``kind`` and the arguments of its class.

    Args:
        network: the ``network`` of a captioner with a pretrained language model.
    """
    arguments = dict(architecture)
    return CAPTIONERS[arguments.pop("kind")](**arguments, **network)
