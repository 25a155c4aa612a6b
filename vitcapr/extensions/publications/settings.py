"""Publication of results: the key that allows it, and the line of the first page."""

from collections.abc import Iterator
from pathlib import Path
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


def _comments(folder: Path) -> Iterator[str]:
    """Yield the digest of the last publication of results, if their summary is still the published one."""
    from vitcapr.experiment.copies import read_copies
    from vitcapr.extensions.publications.publication import SUMMARY
    from vitcapr.files import sha256_file

    for copy in [copy for copy in read_copies(folder) if copy.file == SUMMARY][-1:]:
        if copy.sha256 == sha256_file(folder / SUMMARY):
            yield f"vitcapr publication {copy.digest}"


HOOKS = Hooks(facts=_badge, table_comments=_comments)
