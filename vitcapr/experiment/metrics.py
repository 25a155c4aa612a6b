"""Scores, and the tables of the scores."""

from dataclasses import dataclass
from pathlib import Path

from vitcapr.experiment.captioning import CaptioningStages
from vitcapr.experiment.finetuning import FinetuningStages
from vitcapr.experiment.names import unique
from vitcapr.experiment.retrieval import RetrievalStages
from vitcapr.experiment.selection import TRAIN, Selection
from vitcapr.pipeline.rule import Wildcards
from vitcapr.studies.papers.numbers import published_files


@dataclass(frozen=True)
class MetricStages:
    """Captions -> scores -> one tidy table."""

    selection: Selection
    captioning: CaptioningStages
    retrieval: RetrievalStages
    finetuning: FinetuningStages

    @property
    def files(self) -> list[str]:
        grounded = self.captioning.attentive_files("metrics", "grounding.json") if self.selection.has_objects else []
        checked = self.captioning.files("metrics", "claims.json") if self.selection.checks_claims else []
        return [
            *self.captioning.files("metrics", "metrics.json"),
            *grounded,
            *checked,
            *(self.captioning.files("metrics", "similarity.json") if self.encoders else []),
            *self.retrieval.files("metrics/retrieval", "metrics.json"),
            *self.pools,
            *self.finetuning.files,
            *self.information,
            *self.retrieval.rescored("metrics/retrieval", "metrics.json"),
        ]

    def paraphrases_of(self, wildcards: Wildcards) -> list[str]:
        """METEOR's paraphrases of the split, where METEOR is wanted."""
        if "meteor" not in self.selection.config.metrics.metrics:
            return []
        folder = f"{self.selection.root}/text/paraphrases/{wildcards.split}"
        return [f"{folder}/card.json", f"{folder}/table.gz"]

    def instance_files(self, _: Wildcards) -> dict[str, Path]:
        """The instance annotations that the metric chair reads."""
        files = self.selection.config.metrics.located().instances
        return {f"metrics.instances.{place}": Path(path) for place, path in enumerate(files)}

    @property
    def encoders(self) -> list[str]:
        """The text encoders that score captions."""
        metrics = self.selection.config.metrics
        wanted = (metrics.clip_score, metrics.sentence_similarity, metrics.bert_score)
        return [each.text_encoder for each in wanted if each is not None]

    def clip_features(self, _: Wildcards) -> list[str]:
        """The sealed image features of CLIPScore, where it is wanted."""
        clip = self.selection.config.metrics.clip_score
        return [] if clip is None else [self.retrieval.features.sealed_of(clip.backbone)]

    def encoder_files(self, _: Wildcards) -> dict[str, Path]:
        """The folders of local text encoders that score captions."""
        return self.retrieval.files_of_encoders(self.encoders)

    @property
    def pools(self) -> list[str]:
        """The scores on the held-out queries of pairs, if the experiment asks for them."""
        names = self.selection.scored if self.selection.config.run.pools else []
        return [f"{self.selection.root}/metrics/retrieval/{name}/pools/metrics.json" for name in names]

    @property
    def information(self) -> list[str]:
        """Entropy and mutual information of embeddings, if the experiment asks for them."""
        names = [*self.selection.retrievers, *self.selection.finetuned_dual_encoders]
        return [
            f"{self.selection.root}/metrics/information/{name}/{split}/metrics.json"
            for name in (names if self.selection.config.run.information else [])
            for split in self.selection.splits
            if split != TRAIN
        ]

    @property
    def ablations(self) -> list[str]:
        return [f"{self.selection.root}/tables/ablations.md"] if self.selection.config.run.ablations else []

    @property
    def ablated(self) -> list[str]:
        """The ranks of the models of ablations."""
        names = unique(name for pair in self.selection.ablations for name in pair)
        root = f"{self.selection.root}/metrics/retrieval"
        return [f"{root}/{name}/{split}/ranks.npz" for name in names for split in self.selection.splits]

    @property
    def comparisons(self) -> list[str]:
        """The comparisons: each reranking with its decoding, and each captioner with the one that it starts from."""
        config = self.selection.config
        started = [
            name
            for name in self.selection.captioners
            if config.captioners[name].start_from in self.selection.captioners
        ]
        pairs = [
            *((captioner, way) for captioner in self.selection.captioners for way in self.selection.rerankings),
            *((captioner, way) for captioner in started for way in self.selection.decodings),
        ]
        return [
            f"{self.selection.root}/comparisons/{captioner}/{way}/{split}/comparison.json"
            for captioner, way in pairs
            for split in self.selection.splits
        ]

    def before(self, wildcards: Wildcards) -> str:
        """The scores of the baseline of a comparison."""
        return f"{self._before(wildcards)}/metrics.json"

    def before_images(self, wildcards: Wildcards) -> str:
        return f"{self._before(wildcards)}/per_image.parquet"

    def _before(self, wildcards: Wildcards) -> str:
        captioner, way = wildcards.captioner, wildcards.decoding
        if way in self.selection.rerankings:
            way = self.selection.config.rerankings[way].decoding
        else:
            captioner = self.selection.config.captioners[captioner].start_from
        return f"{self.selection.root}/metrics/{captioner}/{way}/{wildcards.split}"

    def published(self, wildcards: Wildcards) -> dict[str, Path]:
        """The files of a paper's numbers."""
        return {path.name: path for path in published_files(wildcards.paper)}

    @property
    def paper_pages(self) -> list[str]:
        """The tables that compare with a paper's numbers, if the experiment names a paper."""
        paper = self.selection.config.run.paper
        return [] if paper is None else [f"{self.selection.root}/tables/{paper}/{paper}.md"]

    @property
    def cards(self) -> list[str]:
        captioners = [
            f"{self.selection.root}/captioners/{name}/card.json" for name in self.selection.trained_captioners
        ]
        return captioners + [
            f"{self.selection.root}/retrievers/{name}/card.json" for name in self.selection.needed_retrievers
        ]

    @property
    def ranks(self) -> list[str]:
        return self.retrieval.files("metrics/retrieval", "ranks.npz")

    @property
    def spreads(self) -> list[str]:
        """The table of scores over seeds, where any models differ in their seed."""
        groups = [(model.of, model.vary) for model in self.selection.seeded.values()]
        return [f"{self.selection.root}/tables/spread.md"] if len(set(groups)) < len(groups) else []
