"""The stages that draw, and the files that they draw."""

from dataclasses import dataclass

from vitcapr.config.figures import FigureSettings
from vitcapr.workflow.captioning import CaptioningStages
from vitcapr.workflow.selection import TRAINED, Selection, options, unique
from vitcapr.workflow.stage import Stage, Wildcards


@dataclass(frozen=True)
class FigureStages:
    """Results -> figures."""

    chosen: Selection
    captioning: CaptioningStages

    def draw(self, figure: str) -> Stage:
        """The stage ``draw_<figure>``."""
        return Stage(f"draw_{figure}", lambda _: FigureSettings(figures=self.chosen.config.figures))

    @property
    def files(self) -> list[str]:
        root = self.chosen.root
        return [
            *self.curves(root),
            *self.pictures(f"{root}/figures/text/vocabulary"),
            *self.pictures(f"{root}/figures/text/lengths"),
            *(
                picture
                for split in self.chosen.splits
                for picture in self.pictures(f"{root}/figures/captions/{split}/captions")
            ),
            *self.captioning.attentive_files("figures/attention", *self.attention("")),
        ]

    def pictures(self, pattern: str) -> list[str]:
        """``pattern`` once for every figure format."""
        return [f"{pattern}.{suffix}" for suffix in unique(self.chosen.config.figures.formats)]

    def attention(self, folder: str) -> list[str]:
        """The files of ``draw_attention``: one for every attended image and format."""
        numbers = range(1, self.chosen.config.figures.attended + 1)
        return [picture for number in numbers for picture in self.pictures(f"{folder}attention-{number}")]

    def curves(self, root: str) -> list[str]:
        """The files of ``draw_curves``: the captioners', and the backbone's where the DAG trains one."""
        names = ("curves", "backbone") if self.chosen.trains_backbone else ("curves",)
        return [picture for name in names for picture in self.pictures(f"{root}/figures/curves/{name}")]

    def backbone_history(self, _: Wildcards) -> list[str]:
        return [f"{self.chosen.root}/backbones/{TRAINED}/history.csv"] if self.chosen.trains_backbone else []

    def backbone_history_option(self, wildcards: Wildcards) -> str:
        return options("backbone", self.backbone_history(wildcards))
