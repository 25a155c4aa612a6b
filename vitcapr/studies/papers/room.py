"""Papers: their published numbers beside the scores, and their figures."""

from typing import Any

from vitcapr.rooms import Room


def _information(experiment: Any) -> list[str]:
    models = [*experiment.retrievers, *experiment.finetuned_dual_encoders] if experiment.config.run.information else []
    splits = [split for split in experiment.splits if split != "train"]
    return [
        f"{experiment.root}/metrics/information/{model}/{split}/metrics.json" for model in models for split in splits
    ]


def _tables(file: str) -> Any:
    def name(experiment: Any) -> list[str]:
        paper = experiment.config.run.paper
        return [f"{experiment.root}/tables/{paper}/{file.format(paper=paper)}"] if paper else []

    return name


ROOM = Room(scores=_information, tables=_tables("{paper}.md"), page=_tables("page_section.json"))
