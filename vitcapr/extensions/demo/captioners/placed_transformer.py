"""A Transformer decoder that knows where each patch is.

The other captioners read the patches as a set. They know a place only as far as the ViT has left it in the patch, and a
ViT that was trained with mirrored photographs hardly tells left from right.
"""

from typing import Any, Literal

from pydantic import Field

from vitcapr.config.captioner import TransformerConfig
from vitcapr.errors import UserError


class Config(TransformerConfig):
    architecture: Literal["placed_transformer"] = "placed_transformer"  # type: ignore[assignment]
    places: int = Field(ge=1)
    """Number of patches of an image."""

    def check_patches(self, patches: int) -> None:
        if patches != self.places:
            raise UserError(f"places: {self.places}, but {patches} patches are stored", remedy=f"set it to {patches}")


def CAPTIONER(**arguments: Any) -> Any:  # noqa: N802
    """Return the network. It loads torch, which the configuration does not need."""
    from ._network import PlacedTransformer

    return PlacedTransformer(**arguments)
