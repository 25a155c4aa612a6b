"""The stages that draw, and the files that they draw."""

from dataclasses import dataclass
from functools import cached_property

from vitcapr.config.figures import FigureSettings
from vitcapr.config.rollout import RolloutSettings
from vitcapr.workflow.captioning import CaptioningStages
from vitcapr.workflow.features import FeatureStages
from vitcapr.workflow.matching import MatchingStages
from vitcapr.workflow.names import options, unique
from vitcapr.workflow.retrieval import RetrievalStages
from vitcapr.workflow.selection import TRAINED, Selection
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
            "captioners": self.chosen.drawn(self.chosen.trained_captioners, "captioners"),
            "retrievers": self.chosen.drawn(self.chosen.needed_retrievers, "retrievers"),
            "matchers": self.chosen.drawn(self.chosen.needed_matchers, "matchers"),
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
            *self.captioning.attentive_files("figures/attention", *self.attention("")),
            *self.captioning.looked_through_files("figures/rollout", *self.pictures("rollout")),
            *self.reranked,
            *self.recall,
            *self.side_by_side,
            *self.learning_curve,
            *self.matching.losses,
            *self.retrieval.drawn_files("figures/embeddings", *self.embeddings("")),
            *self.retrieval.drawn_files("figures/retrieved", *self.retrieved("")),
        ]

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

    @property
    def side_by_side(self) -> list[str]:
        """What the compared models find first, and their spaces."""
        root = f"{self.chosen.root}/figures/side_by_side"
        folders = [f"{root}/{language}/{split}/" for language in self.chosen.compared for split in self.chosen.splits]
        return [picture for folder in folders for picture in self.compared(folder)]

    def compared(self, folder: str) -> list[str]:
        """The files of ``draw_side_by_side``."""
        names = ("top_captions", "top_images", "spaces")
        return [*(picture for name in names for picture in self.pictures(f"{folder}{name}")), f"{folder}found.md"]

    def compared_embeddings(self, wildcards: Wildcards) -> list[str]:
        return list(self._compared(wildcards).values())

    def compared_option(self, wildcards: Wildcards) -> str:
        return options("embeddings", (f"{name}={path}" for name, path in self._compared(wildcards).items()))

    def _compared(self, wildcards: Wildcards) -> dict[str, str]:
        named = self.chosen.compared[wildcards.language]
        return {name: self.chosen.embeddings(model, wildcards.split) for name, model in named.items()}

    @property
    def learning_curve(self) -> list[str]:
        """Recall over the training pairs, where a grid varies their number."""
        splits = self.chosen.splits if self.chosen.pair_families else []
        folders = [f"{self.chosen.root}/figures/learning_curve/{split}" for split in splits]
        return [picture for folder in folders for picture in self.pictures(f"{folder}/learning_curve")]

    def trainings(self, wildcards: Wildcards) -> list[str]:
        """Card and scores of every training on the curve."""
        return [path for _, *paths in self._trainings(wildcards.split) for path in paths]

    def trainings_option(self, wildcards: Wildcards) -> str:
        return options("trained", ("=".join(parts) for parts in self._trainings(wildcards.split)))

    def _trainings(self, split: str) -> list[tuple[str, str, str]]:
        root = self.chosen.root
        return [
            (family, f"{root}/retrievers/{name}/card.json", f"{root}/metrics/retrieval/{name}/{split}/metrics.json")
            for family, names in self.chosen.pair_families.items()
            for name in names
        ]

    def features_before(self, wildcards: Wildcards) -> list[str]:
        """What a retriever was given of images and of captions, where it reads features of both."""
        if wildcards.retriever not in self.chosen.config.retrievers:
            return []
        text = self.retrieval.text_features_of(wildcards)
        return [self.retrieval.features_of(wildcards), *text] if text else []

    def features_before_option(self, wildcards: Wildcards) -> str:
        given = self.features_before(wildcards)
        return " ".join([options("image-features", given[:1]), options("text-features", given[1:])]).strip()

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
            "retrievers": self.chosen.drawn_retrievers,
            "backbone": self.chosen.trains_backbone,
        }
        names = [name for name, any_of_them in trained.items() if any_of_them]
        return [picture for name in names for picture in self.pictures(f"{root}/figures/curves/{name}")]

    def backbone_history(self, _: Wildcards) -> list[str]:
        return [f"{self.chosen.root}/backbones/{TRAINED}/history.csv"] if self.chosen.trains_backbone else []

    def backbone_history_option(self, wildcards: Wildcards) -> str:
        return options("backbone", self.backbone_history(wildcards))
