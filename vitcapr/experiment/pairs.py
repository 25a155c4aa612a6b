"""The files of text-image pairs, and of models whose backbone is fine-tuned."""

from dataclasses import dataclass

from vitcapr.experiment.selection import Selection


@dataclass(frozen=True)
class PairStages:
    """Pictures -> decoded pixels; pairs -> tags and tables."""

    selection: Selection

    @property
    def files(self) -> list[str]:
        """The files made of pairs independently of any model, and the tags if ``run.tags`` asks for them."""
        root = self.selection.root
        tags = [f"{root}/text/tags/tags.npz"] if self.selection.config.run.tags else []
        if self.selection.config.data.dataset != "pairs":
            return tags
        return [*tags, f"{root}/tables/claims.md"]
