"""The files that an experiment asks for, and the lists of them that its tables and its first page read."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitcapr.config.base import from_here
from vitcapr.config.scored import RANKED, unique
from vitcapr.experiment.selection import TEST, Selection
from vitcapr.files import canonical_json
from vitcapr.pipeline.rule import list_files
from vitcapr.rooms import ask


@dataclass(frozen=True)
class Targets(Selection):
    """The targets of the rules ``all``, ``captions``, ``metrics`` and others, from the values of their wildcards."""

    @property
    def captions_files(self) -> list[str]:
        return self.caption_files("captions", "captions.json")

    def weights(self, section: str, names: Iterable[str]) -> list[str]:
        return [f"{self.root}/{section}/{name}/best.safetensors" for name in names]

    @property
    def metrics(self) -> list[str]:
        """The scores that ``summary.csv`` joins."""
        root, run = self.root, self.config.run
        polyglots = [
            name
            for name in self.finetuned_dual_encoders
            if len(self.config.finetuned_dual_encoders[name].languages) > 1
        ]
        return [
            *self.caption_files("metrics", "metrics.json"),
            *ask("scores", self),
            *(self.caption_files("metrics", "similarity.json") if self.scoring_encoders else []),
            *self._model_files("metrics/retrieval", self.ranked, "metrics.json"),
            *(f"{root}/metrics/retrieval/{name}/pools/metrics.json" for name in (self.scored if run.pools else [])),
            *self._model_files("metrics/languages", polyglots, "metrics.json"),
            *self._model_files("metrics/retrieval", self.querybank_scores, "metrics.json"),
        ]

    @property
    def ranks(self) -> list[str]:
        return self._model_files("metrics/retrieval", self.ranked, "ranks.npz")

    @property
    def ablated_ranks(self) -> list[str]:
        """The ranks of the models of ablations."""
        names = unique(name for pair in self.ablations for name in pair)
        return self._model_files("metrics/retrieval", names, "ranks.npz")

    @property
    def cards(self) -> list[str]:
        models = [f"captioners/{name}" for name in self.trained_captioners]
        models += [f"retrievers/{name}" for name in self.needed_retrievers]
        models += [f"finetuned_dual_encoders/{name}" for name in self.needed_dual_encoders]
        return [f"{self.root}/{model}/card.json" for model in models]

    @property
    def comparisons(self) -> list[str]:
        """The comparisons: each reranking with its decoding, and each captioner with the one that it starts from."""
        captioners = self.config.captioners
        started = [name for name in self.captioners if captioners[name].start_from in self.captioners]
        pairs = [(captioner, source) for captioner in self.captioners for source in self.rerankings]
        pairs += [(captioner, source) for captioner in started for source in self.decodings]
        return [
            f"{self.root}/comparisons/{captioner}/{source}/{split}/comparison.json"
            for captioner, source in pairs
            for split in self.splits
        ]

    @property
    def sealed_stores(self) -> dict[str, str]:
        """The sealed feature stores of images and captions, by their folders below the experiment's."""
        folders = [f"features/{name}" for name in self.backbones]
        folders += [f"text_features/{name}" for name in self.text_encoders]
        return {folder: f"{self.root}/{folder}/manifest.json" for folder in folders}

    @property
    def spreads(self) -> list[str]:
        """The table of scores over seeds, where models differ in their seed."""
        groups = [(model.of, model.vary) for model in self.seeded.values()]
        return [f"{self.root}/tables/spread.md"] if len(set(groups)) < len(groups) else []

    @property
    def tables(self) -> list[str]:
        """Everything but metrics and figures."""
        root, run, stores = self.root, self.config.run, self.sealed_stores
        return [
            *(f"{root}/{file}" for file in ("data/croissant.json", "summary.csv", "tables/scores.md", "index.html")),
            *self.comparisons,
            *self.spreads,
            *([f"{root}/tables/ablations.md"] if run.ablations else []),
            *ask("tables", self),
            *([f"{root}/text/tags/tags.npz"] if run.tags else []),
            *([f"{root}/tables/claims.md"] if self.config.data.dataset == "pairs" else []),
            *([f"{root}/tables/feature_statistics.md"] if stores else []),
        ]

    @property
    def page_files(self) -> dict[str, dict[str, str]]:
        """The files of the first page with names, by the stage's parameters."""
        root, split = self.root, self.page_split
        captions = self.captions_by([*self.needed_decodings, *self.rerankings])
        ranked = self.representatives(self.ranked, *RANKED)
        trained = {
            "captioners": self.trained("captioners"),
            "retrievers": [name for name in self.trained("retrievers") if self.config.retrievers[name].training.phases],
            "finetuned_dual_encoders": self.representatives(self.finetuned_dual_encoders, "finetuned_dual_encoders"),
            "backbones": self.trained("backbones"),
        }
        models = [f"{section}/{name}" for section, names in trained.items() for name in names]
        attention = [f"{each['captioner']}/{each['decoding']}" for each in self.attention if each["split"] == split]
        return {
            "captions": {name: path.format(split=split) for name, path in captions.items()},
            "claims": {name: path.format(split=split) for name, path in self.claims(captions).items()},
            "attention": {name: f"{root}/captions/{name}/{split}/attention.npz" for name in attention[:1]},
            "embeddings": {name: self.embeddings(name, split) for name in ranked},
            "ranks": {name: f"{root}/metrics/retrieval/{name}/{split}/ranks.npz" for name in ranked},
            "histories": {model: f"{root}/{model}/history.csv" for model in models},
        }

    @property
    def page_split(self) -> str:
        """The split that the first page shows."""
        return TEST if TEST in self.splits else self.splits[0]

    @property
    def page_inputs(self) -> dict[str, list[str]]:
        """The inputs of the first page, by the stage's parameters."""
        comparisons = [path for path in self.comparisons if f"/{self.page_split}/" in path]
        return {name: list_files(files) for name, files in self.page_files.items()} | {
            "comparisons": comparisons,
            "sections": list(ask("page", self)),
        }

    def caption_files(self, folder: str, file: str) -> list[str]:
        """``file`` under ``folder`` for every captioner, decoding or reranking, and split."""
        return [
            f"{self.root}/{folder}/{captioner}/{source}/{split}/{file}"
            for captioner in self.captioners
            for source in self.caption_sources
            for split in self.splits
        ]

    def _model_files(self, folder: str, names: Iterable[str], file: str) -> list[str]:
        """``file`` under ``folder`` for every model and split."""
        return [f"{self.root}/{folder}/{name}/{split}/{file}" for name in names for split in self.splits]


def run_again(configfiles: list[Path], changes: Mapping[str, Any]) -> str:
    """The command that runs an experiment.

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
