"""The files of an experiment's first page."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitcapr.experiment.captioning import CaptioningStages
from vitcapr.experiment.finetuning import FinetuningStages
from vitcapr.experiment.retrieval import RetrievalStages
from vitcapr.experiment.selection import TEST, Selection
from vitcapr.files import canonical_json
from vitcapr.report.first_page import TEMPLATE
from vitcapr.studies.papers.numbers import published_files


@dataclass(frozen=True)
class FirstPageStages:
    """Scores, captions and embeddings of one split -> index.html.

    Attributes:
        trains_backbone: whether the experiment trains the backbone.
    """

    selection: Selection
    captioning: CaptioningStages
    retrieval: RetrievalStages
    finetuning: FinetuningStages
    trains_backbone: bool

    @property
    def page(self) -> str:
        return f"{self.selection.root}/index.html"

    @property
    def split(self) -> str:
        """The split that is shown."""
        return TEST if TEST in self.selection.splits else self.selection.splits[0]

    @property
    def captions(self) -> dict[str, str]:
        """The captions of every system, by its name: those that rerankings reorder among them."""
        return {
            f"{captioner}/{way}": f"{self.selection.root}/captions/{captioner}/{way}/{self.split}/captions.json"
            for captioner in self.selection.representatives(self.selection.captioners, "captioners")
            for way in (*self.selection.needed_decodings, *self.selection.rerankings)
        }

    @property
    def ranked(self) -> list[str]:
        """The models whose retrieval may be shown."""
        return [each["retriever"] for each in self.retrieval.drawn if each["split"] == self.split]

    @property
    def embeddings(self) -> list[str]:
        return [self.selection.embeddings(name, self.split) for name in self.ranked]

    @property
    def ranks(self) -> list[str]:
        return [f"{self.selection.root}/metrics/retrieval/{name}/{self.split}/ranks.npz" for name in self.ranked]

    @property
    def histories(self) -> dict[str, dict[str, str]]:
        """The histories of the models whose training is shown, by kind and name."""
        selection = self.selection
        names = {
            "captioners": selection.representatives(selection.trained_captioners, "captioners"),
            "retrievers": self.retrieval.drawn_retrievers,
            "finetuned_dual_encoders": selection.representatives(
                selection.finetuned_dual_encoders, "finetuned_dual_encoders"
            ),
        }
        return {
            kind: {name: f"{selection.root}/{kind}/{name}/history.csv" for name in each} for kind, each in names.items()
        }

    @property
    def backbone(self) -> list[str]:
        """The history of the backbone that the experiment trains."""
        return [f"{self.selection.root}/backbones/trained/history.csv"] if self.trains_backbone else []

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs of the rule, by the stage's parameters."""
        histories = self.histories
        return {
            "captions": list(self.captions.values()),
            "embeddings": self.embeddings,
            "ranks": self.ranks,
            "captioners": list(histories["captioners"].values()),
            "retrievers": list(histories["retrievers"].values()),
            "dual_encoders": list(histories["finetuned_dual_encoders"].values()),
            "backbone": self.backbone,
        }

    def bound(self, configfiles: list[Path], changes: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the stage that are no wildcards, and the names of its files.

        Args:
            configfiles: those that replace config.yaml; changes: the values of ``--config``.
        """
        histories = self.histories
        return {
            "split": self.split,
            "language": self.selection.config.text.language,
            "captions": list(self.captions),
            "embeddings": self.ranked,
            "ranks": self.ranked,
            "captioners": list(histories["captioners"]),
            "retrievers": list(histories["retrievers"]),
            "dual_encoders": list(histories["finetuned_dual_encoders"]),
            "command": again(configfiles, changes),
        }

    def sources(self, _: Any) -> dict[str, Path]:
        """The template, and the files of a paper's numbers."""
        paper = self.selection.config.run.paper
        published = published_files(paper) if paper else ()
        return {path.name: path for path in (TEMPLATE, *published)}


def again(configfiles: list[Path], changes: Mapping[str, Any]) -> str:
    """The command that runs the experiment.

    >>> again([Path("experiments/bert-vit.yaml")], {"seed": 3})
    'snakemake --cores all --configfile experiments/bert-vit.yaml --config seed=3'
    """
    words = ["snakemake", "--cores", "all"]
    here = Path.cwd()
    if configfiles:
        words.append("--configfile")
        words += [str(path.relative_to(here) if path.is_relative_to(here) else path) for path in configfiles]
    if changes:
        words.append("--config")
        words += [
            f"{key}={value if isinstance(value, str) else canonical_json(value)}" for key, value in changes.items()
        ]
    return shlex.join(words)
