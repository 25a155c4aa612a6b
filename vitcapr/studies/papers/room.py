"""Papers: their published numbers beside the scores, and their figures."""

from typing import Any

from vitcapr.rooms import Room


def _information(experiment: Any) -> list[str]:
    used, folder = experiment.models, f"{experiment.root}/metrics/information"
    models = [*used.retrievers, *used.finetuned_dual_encoders] if experiment.config.run.information else []
    splits = [split for split in used.splits if split != "train"]
    return [f"{folder}/{model}/{split}/metrics.json" for model in models for split in splits]


def _tables(file: str) -> Any:
    def name(experiment: Any) -> list[str]:
        paper = experiment.config.run.paper
        return [f"{experiment.root}/tables/{paper}/{file.format(paper=paper)}"] if paper else []

    return name


ROOM = Room(scores=_information, tables=_tables("{paper}.md"), page=_tables("page_section.json"))
