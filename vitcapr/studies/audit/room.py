"""Audits of data sets: captions that are probably wrong, leaks and odd rows."""

from typing import Any

from vitcapr.rooms import Room
from vitcapr.studies.audit.config import run_audits

ROOM = Room(
    facts=lambda config: [("audits", list(config.run.audits))],
    backbones=lambda config: [each.image for each in run_audits(config).values()],
    text_encoders=lambda config: [each.text for each in run_audits(config).values()],
    arrays=lambda experiment: [
        (f"audits.{name}", [each.image], ["cls"]) for name, each in run_audits(experiment.config).items()
    ],
    tables=lambda experiment: _files(experiment, "tables.md"),
    page=lambda experiment: _files(experiment, "page_section.json"),
)


def _files(experiment: Any, file: str) -> list[str]:
    return [f"{experiment.root}/audits/{name}/{file}" for name in run_audits(experiment.config)]
