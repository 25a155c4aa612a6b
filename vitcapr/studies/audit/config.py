"""Configuration of audits."""

from collections.abc import Mapping
from typing import Annotated, Any

from vitcapr.config.base import Entry, Name, Section


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


def run_audits(config: Any) -> Mapping[str, AuditConfig]:
    """The audits that an experiment runs, by name."""
    return {name: config.audits[name] for name in config.run.audits}
