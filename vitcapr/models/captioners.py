"""The captioners by the names of their architectures: modules of ``vitcapr.models.architectures``, and plugins."""

from typing import Any

from vitcapr.loader import load_part
from vitcapr.models.interface import Captioner


def build_captioner(architecture: dict[str, Any], **network: Any) -> Captioner:
    """Return the untrained captioner that a card's ``architecture`` describes: ``kind`` and the arguments of its class.

    Args:
        network: the ``network`` of a captioner with a pretrained language model.

    Raises:
        UserError: there is no such architecture, or it is of a plugin that is not here.
    """
    arguments = dict(architecture)
    captioner: Captioner = load_part("CAPTIONER", arguments.pop("kind"))(**arguments, **network)
    return captioner
