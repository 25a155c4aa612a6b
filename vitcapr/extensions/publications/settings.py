"""Publication of results: the key that allows it, and the line of the first page."""

from typing import Any

from vitcapr.config.base import Section
from vitcapr.loader import Hooks


class PublicationsConfig(Section):
    share_data: bool = False
    """Publish references, captions and features of a data set whose licence does not say that everybody may. Read the
    licence first."""


class Experiment(Section):
    publications: PublicationsConfig = PublicationsConfig()
    """Publication of results with vitcapr publish; no result depends on it."""


def _badge(config: Any) -> list[tuple[str, list[str]]]:
    return [("verify this table", [f"vitcapr publish results/{config.experiment} DIR; vitcapr verify DIR"])]


HOOKS = Hooks(facts=_badge)
