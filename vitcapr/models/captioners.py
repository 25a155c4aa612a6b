"""The captioners by the names of their architectures."""

from typing import Any

from vitcapr.errors import UserError
from vitcapr.models.interface import Captioner
from vitcapr.models.language_model_captioner import LanguageModelCaptioner
from vitcapr.models.lstm_captioners import BaselineCaptioner, PatchAttentionCaptioner
from vitcapr.models.transformer_captioner import TransformerCaptioner
from vitcapr.plugins import FOLDER, plugins

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

    Raises:
        UserError: it is of a plugin that is not here.
    """
    arguments = dict(architecture)
    kind = arguments.pop("kind")
    if kind in CAPTIONERS:
        return CAPTIONERS[kind](**arguments, **network)
    if kind not in plugins("CAPTIONER"):
        remedy = f"run in the folder of the study that has {FOLDER}/{kind}.py, or install the plugin"
        raise UserError(f"no captioner has the architecture '{kind}'", remedy=remedy)
    captioner: Captioner = plugins("CAPTIONER")[kind].load()(**arguments)
    return captioner
