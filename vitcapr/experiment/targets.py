"""The files that an experiment asks for, and the lists of them that its tables and its first page read."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitcapr.config.base import from_here
from vitcapr.config.experiment import RANKED
from vitcapr.experiment.models import TEST, Part
from vitcapr.files import canonical_json
from vitcapr.loader import ask
from vitcapr.pipeline.rule import list_files

if TYPE_CHECKING:
    from vitcapr.experiment.experiment import Experiment


@dataclass(frozen=True)
class Targets(Part):
    """The targets of the rules ``all``, ``captions``, ``metrics`` and others.

    Attributes:
        experiment: whose other files these are; extensions are asked about it.
    """

    experiment: "Experiment"

    def weights(self, section: str, names: Iterable[str]) -> list[str]:
        return [f"{self.root}/{section}/{name}/best.safetensors" for name in names]

    @property
    def metrics(self) -> list[str]:
        """The scores that ``summary.csv`` joins."""
        models, captions, scores = self.models, self.experiment.captioning, self.experiment.retrieval.model_files
        encoders, folder = self.config.finetuned_dual_encoders, "metrics/retrieval"
        polyglots = [name for name in models.finetuned_dual_encoders if len(encoders[name].languages) > 1]
        pooled = models.scored if self.config.run.pools else []
        return [
            *captions.caption_files("metrics", "metrics.json"),
            *ask("scores", self.experiment),
            *(captions.caption_files("metrics", "similarity.json") if models.scoring_encoders else []),
            *scores(folder, models.ranked, "metrics.json"),
            *(f"{self.root}/{folder}/{name}/pools/metrics.json" for name in pooled),
            *scores("metrics/languages", polyglots, "metrics.json"),
            *scores(folder, models.querybank_scores, "metrics.json"),
        ]

    @property
    def cards(self) -> list[str]:
        models = self.models
        trained = [f"captioners/{name}" for name in models.trained_captioners]
        trained += [f"retrievers/{name}" for name in models.needed_retrievers]
        trained += [f"finetuned_dual_encoders/{name}" for name in models.needed_dual_encoders]
        return [f"{self.root}/{model}/card.json" for model in trained]

    @property
    def comparisons(self) -> list[str]:
        """The comparisons: each reranking with its decoding, and each captioner with the one that it starts from."""
        models, captioners = self.models, self.models.captioners
        started = [name for name in captioners if self.config.captioners[name].start_from in captioners]
        pairs = [*product(captioners, models.rerankings), *product(started, models.decodings)]
        return [
            f"{self.root}/comparisons/{captioner}/{source}/{split}/comparison.json"
            for (captioner, source), split in product(pairs, models.splits)
        ]

    @property
    def spreads(self) -> list[str]:
        """The table of scores over seeds, where models differ in their seed."""
        groups = [(model.of, model.vary) for model in self.models.seeded.values()]
        return [f"{self.root}/tables/spread.md"] if len(set(groups)) < len(groups) else []

    @property
    def tables(self) -> list[str]:
        """Everything but metrics and figures."""
        root, run, stores = self.root, self.config.run, self.experiment.features.sealed_stores
        if self.models.data_alone:
            return [f"{root}/data/manifest.json"]
        return [
            *(f"{root}/{file}" for file in ("summary.csv", "tables/scores.md", "index.html")),
            *self.comparisons,
            *(path.replace(".csv", ".md") for path in self.differences),
            *self.spreads,
            *([f"{root}/tables/ablations.md"] if run.ablations else []),
            *ask("tables", self.experiment),
            *([f"{root}/text/tags/tags.npz"] if run.tags else []),
            *([f"{root}/tables/feature_statistics.md"] if stores else []),
        ]

    @property
    def page_files(self) -> dict[str, dict[str, str]]:
        """The files of the first page with names, by the stage's parameters."""
        root, split, models, captioning = self.root, self.page_split, self.models, self.experiment.captioning
        captions = captioning.captions(models.needed_decodings)
        ranked, retrievers = models.representatives(models.ranked, *RANKED), self.config.retrievers
        trained = {
            "captioners": models.trained("captioners"),
            "retrievers": [name for name in models.trained("retrievers") if retrievers[name].training.phases],
            "finetuned_dual_encoders": models.representatives(models.finetuned_dual_encoders, RANKED[1]),
            "backbones": models.trained("backbones"),
        }
        histories = [f"{section}/{name}" for section, names in trained.items() for name in names]
        attention = [f"{each['captioner']}/{each['decoding']}" for each in captioning.attention]
        return {
            "captions": {name: path.format(split=split) for name, path in captions.items()},
            "claims": {name: path.format(split=split) for name, path in captioning.claims(captions).items()},
            "attention": {name: f"{root}/captions/{name}/{split}/attention.npz" for name in attention[:1]},
            "embeddings": {name: self.experiment.retrieval.embeddings(name, split) for name in ranked},
            "ranks": self.compared_ranks,
            "cards": {m: f"{root}/{m}/card.json" for m in histories if not m.startswith("backbones/")},
            "histories": {model: f"{root}/{model}/history.csv" for model in histories},
        }

    @property
    def compared_ranks(self) -> dict[str, str]:
        """The ranks of the retrieval models of the first page."""
        ranked = self.models.representatives(self.models.ranked, *RANKED)
        return {name: f"{self.root}/metrics/retrieval/{name}/{self.page_split}/ranks.npz" for name in ranked}

    @property
    def differences(self) -> list[str]:
        """The paired differences, where there are any."""
        return (
            [f"{self.root}/tables/differences.csv"]
            if self.compared["comparisons"] or len(self.compared_ranks) > 1
            else []
        )

    @property
    def compared(self) -> dict[str, list[str]]:
        """The files of the paired differences, by the stage's parameters."""
        comparisons = [path for path in self.comparisons if f"/{self.page_split}/" in path]
        return {"comparisons": comparisons, "ranks": list(self.compared_ranks.values())}

    @property
    def page_split(self) -> str:
        """The split that the first page shows."""
        return TEST if TEST in self.models.splits else self.models.splits[0]

    @property
    def page_inputs(self) -> dict[str, list[str]]:
        """The inputs of the first page, by the stage's parameters."""
        files = {name: list_files(each) for name, each in self.page_files.items()}
        return files | {"differences": self.differences, "sections": list(ask("page", self.experiment))}


def run_again(configfiles: list[Path], changes: Mapping[str, Any]) -> str:
    """Return the command that runs an experiment.

    >>> run_again([Path("experiments/bert-vit.yaml")], {"seed": 3})
    'snakemake --cores all --configfile experiments/bert-vit.yaml --config seed=3'
    """
    words = ["snakemake", "--cores", "all"]
    if configfiles:
        words += ["--configfile", *map(from_here, configfiles)]
    if changes:
        words.append("--config")
        words += [f"{key}={each if isinstance(each, str) else canonical_json(each)}" for key, each in changes.items()]
    return shlex.join(words)
