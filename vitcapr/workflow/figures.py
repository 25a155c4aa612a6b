"""The stages that draw, and the files that they draw."""

from dataclasses import dataclass
from functools import cached_property

from vitcapr.config.figures import FigureSettings
from vitcapr.config.rollout import RolloutSettings
from vitcapr.workflow.captioning import CaptioningStages
from vitcapr.workflow.features import FeatureStages
from vitcapr.workflow.matching import MatchingStages
from vitcapr.workflow.retrieval import RetrievalStages
from vitcapr.workflow.selection import TRAINED, Selection, options, unique
from vitcapr.workflow.stage import Stage, Wildcards


@dataclass(frozen=True)
class FigureStages:
    """Results -> figures."""

    chosen: Selection
    features: FeatureStages
    captioning: CaptioningStages
    retrieval: RetrievalStages
    matching: MatchingStages

    def draw(self, figure: str) -> Stage:
        """The stage ``draw_<figure>``."""
        return Stage(f"draw_{figure}", lambda _: FigureSettings(figures=self.chosen.config.figures))

    @cached_property
    def draw_rollout(self) -> Stage:
        config = self.chosen.config
        return Stage(
            "draw_rollout",
            lambda w: RolloutSettings(
                figures=config.figures, backbone=config.backbones[config.captioners[w.captioner].backbone]
            ),
            sources=lambda w: self.features.backbone_files(self._backbone_of(w)),
        )

    def _backbone_of(self, wildcards: Wildcards) -> str:
        return self.chosen.config.captioners[wildcards.captioner].backbone

    def trained_backbone_of(self, wildcards: Wildcards) -> list[str]:
        """The weights that the DAG trains, where the captioner looks through these."""
        return self.features.trained_backbone(self._backbone_of(wildcards))

    def backbone_source(self, wildcards: Wildcards) -> str:
        """What ``draw_rollout --source`` is given."""
        return self.features.source_of(self._backbone_of(wildcards))

    def gpu_uses(self, _: Wildcards) -> list[str]:
        """What every training left of its use of the GPU."""
        return list(self._gpu_uses.values())

    def gpu_uses_option(self, _: Wildcards) -> str:
        return options("use", (f"{name}={path}" for name, path in self._gpu_uses.items()))

    @property
    def _gpu_uses(self) -> dict[str, str]:
        models = {
            "captioners": self.chosen.trained_captioners,
            "retrievers": self.chosen.needed_retrievers,
            "matchers": self.chosen.needed_matchers,
        }
        return {
            f"{kind}/{name}": f"{self.chosen.root}/{kind}/{name}/gpu.csv"
            for kind, names in models.items()
            for name in names
        }

    @property
    def files(self) -> list[str]:
        root = self.chosen.root
        return [
            *self.curves(root),
            *self.pictures(f"{root}/figures/gpu/gpu"),
            *self.pictures(f"{root}/figures/text/vocabulary"),
            *self.pictures(f"{root}/figures/text/lengths"),
            *self.captioned,
            *self.captioning.attentive_files("figures/attention", *self.attention("")),
            *self.captioning.attentive_files("figures/rollout", *self.pictures("rollout")),
            *self.reranked,
            *self.recall,
            *self.matching.losses,
            *self.retrieval.files("figures/embeddings", *self.embeddings("")),
            *self.retrieval.files("figures/retrieved", *self.retrieved("")),
        ]

    @property
    def captioned(self) -> list[str]:
        """Captions of every captioner, side by side."""
        splits = self.chosen.splits if self.chosen.captioners else []
        root = self.chosen.root
        return [picture for split in splits for picture in self.pictures(f"{root}/figures/captions/{split}/captions")]

    @property
    def reranked(self) -> list[str]:
        """Captions before and after every reranking that is no ceiling."""
        return [
            picture
            for captioner in self.chosen.captioners
            for reranking in self.chosen.tuned_rerankings
            for split in self.chosen.splits
            for picture in self.pictures(
                f"{self.chosen.root}/figures/reranked/{captioner}/{reranking}/{split}/reranked"
            )
        ]

    @property
    def recall(self) -> list[str]:
        """All retrievers side by side."""
        splits = self.chosen.splits if self.chosen.ranked else []
        root = self.chosen.root
        return [picture for split in splits for picture in self.pictures(f"{root}/figures/recall/{split}/recall")]

    def embeddings(self, folder: str) -> list[str]:
        return [picture for name in ("pca", "tsne", "cosines") for picture in self.pictures(f"{folder}{name}")]

    def retrieved(self, folder: str) -> list[str]:
        return [picture for name in ("image_to_text", "text_to_image") for picture in self.pictures(f"{folder}{name}")]

    def pictures(self, pattern: str) -> list[str]:
        """``pattern`` once for every figure format."""
        return [f"{pattern}.{suffix}" for suffix in unique(self.chosen.config.figures.formats)]

    def attention(self, folder: str) -> list[str]:
        """The files of ``draw_attention``: one for every attended image and format."""
        numbers = range(1, self.chosen.config.figures.attended + 1)
        return [picture for number in numbers for picture in self.pictures(f"{folder}attention-{number}")]

    def curves(self, root: str) -> list[str]:
        """The files of ``draw_curves``: of captioners, retrievers and the backbone, where the DAG trains any."""
        trained = {
            "curves": self.chosen.captioners,
            "retrievers": self.chosen.needed_retrievers,
            "backbone": self.chosen.trains_backbone,
        }
        names = [name for name, any_of_them in trained.items() if any_of_them]
        return [picture for name in names for picture in self.pictures(f"{root}/figures/curves/{name}")]

    def backbone_history(self, _: Wildcards) -> list[str]:
        return [f"{self.chosen.root}/backbones/{TRAINED}/history.csv"] if self.chosen.trains_backbone else []

    def backbone_history_option(self, wildcards: Wildcards) -> str:
        return options("backbone", self.backbone_history(wildcards))
