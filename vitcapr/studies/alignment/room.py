"""Alignments of two frozen encoders, compared over the number of training pairs."""

from collections.abc import Iterator
from typing import Any

from vitcapr.config.contradictions import check_views
from vitcapr.rooms import Room
from vitcapr.studies.alignment.config import run_alignments


def _contradictions(config: Any) -> Iterator[str]:
    for name, alignment in run_alignments(config).items():
        yield from check_views(config, f"alignments.{name}.views", [alignment.image, *alignment.views])


def _facts(config: Any) -> Iterator[tuple[str, list[str]]]:
    yield "alignments", [f"{name} ({each.image} and {each.text})" for name, each in run_alignments(config).items()]


def _pairs(config: Any) -> Iterator[tuple[str, int]]:
    for name, alignment in run_alignments(config).items():
        yield f"alignments.{name}.sizes", max(filter(None, alignment.sizes), default=0)


def _files(file: str) -> Any:
    return lambda experiment: [
        f"{experiment.root}/alignments/{name}/{file}" for name in run_alignments(experiment.config)
    ]


def _notes(experiment: Any) -> Iterator[str]:
    files = [file.rpartition("/")[0] for file in _files("tables.md")(experiment)]
    if files and not (experiment.models.captioners or experiment.models.ranked):
        yield (
            "summary.csv gets no scores: there is no captioner or retriever; "
            f"those of alignments are in {', '.join(files)}"
        )


ROOM = Room(
    contradictions=_contradictions,
    facts=_facts,
    backbones=lambda config: [name for each in run_alignments(config).values() for name in (each.image, *each.views)],
    text_encoders=lambda config: [each.text for each in run_alignments(config).values()],
    arrays=lambda experiment: [
        (f"alignments.{name}", [each.image, *each.views], each.arrays)
        for name, each in run_alignments(experiment.config).items()
    ],
    pairs=_pairs,
    tables=_files("tables.md"),
    page=_files("page_section.json"),
    notes=_notes,
)
