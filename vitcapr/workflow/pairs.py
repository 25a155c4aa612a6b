"""The stages of pairs in two languages, and of models that are trained through their backbone."""

from dataclasses import dataclass

from vitcapr.workflow.selection import Selection


@dataclass(frozen=True)
class PairStages:
    """Pictures -> decoded pixels; pairs -> tags and tables."""

    selection: Selection

    @property
    def files(self) -> list[str]:
        """What is made of pairs whatever is trained on them, and tags where they are wanted for themselves."""
        root = self.selection.root
        tags = [f"{root}/text/tags/tags.npz"] if self.selection.config.run.tags else []
        if self.selection.config.data.dataset != "pairs":
            return tags
        return [*tags, f"{root}/tables/claims.md"]
