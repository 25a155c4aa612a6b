"""The demo: rendered scenes, the ViT that is trained on them, and what is known of every picture."""

from collections.abc import Iterator
from typing import Any

from vitcapr.rooms import Room


def _is_on(config: Any) -> bool:
    return bool(config.data.dataset == "scenes")


def _checks_claims(config: Any) -> list[bool]:
    return [_is_on(config) and config.text.language == "en"]


def _scores(experiment: Any) -> Iterator[str]:
    if _is_on(experiment.config):
        for one in experiment.captioning.attention:
            yield f"{experiment.root}/metrics/{one['captioner']}/{one['decoding']}/{one['split']}/grounding.json"
    if any(_checks_claims(experiment.config)):
        yield from experiment.captioning.caption_files("metrics", "claims.json")


def _trained_backbone(config: Any) -> list[tuple[str, Any]]:
    return [*config.trained_backbone.model_dump().items(), ("image_size", config.data.scenes.size)]


ROOM = Room(scores=_scores, checks_claims=_checks_claims, trained_backbone=_trained_backbone)
