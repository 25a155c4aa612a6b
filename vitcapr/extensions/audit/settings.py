"""Audits of data sets: captions that are probably wrong, leaks and odd rows."""

from typing import Annotated, Any

from vitcapr.config.base import Entry, Name, Section
from vitcapr.loader import Hooks, run_entries


class AuditConfig(Section):
    """An audit of the data set by the features of two encoders."""

    image: Annotated[str, Entry("backbones")]
    """Name of an entry of backbones."""
    text: Annotated[str, Entry("text_encoders")]
    """Name of an entry of text_encoders."""


class Experiment(Section):
    audits: dict[Name, AuditConfig] = {}


class Run(Section):
    audits: Annotated[list[str], Entry("audits")] = []
    """Audits of the data set: wrong captions, leaks and odd captions."""


def _files(experiment: Any, file: str) -> list[str]:
    return [f"{experiment.root}/audits/{name}/{file}" for name in experiment.config.run.audits]


HOOKS = Hooks(
    facts=lambda config: [("audits", list(config.run.audits))],
    arrays=lambda config: [
        (f"audits.{name}", [each.image], ["cls"]) for name, each in run_entries(config, "audits").items()
    ],
    tables=lambda experiment: _files(experiment, "tables.md"),
    page=lambda experiment: _files(experiment, "page_section.json"),
)
