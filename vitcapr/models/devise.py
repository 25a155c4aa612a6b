"""DeViSE (Frome et al. 2013): image features mapped linearly into a space of word vectors."""

from torch import Tensor, nn

from vitcapr.models.dual_encoder import on_sphere


class Devise(nn.Module):
    """The matrix M of Frome et al. 2013, equation 1. (B, D) -> (B, W); word vectors are not changed."""

    def __init__(self, feature_dim: int, word_dim: int) -> None:
        super().__init__()
        self.map = nn.Linear(feature_dim, word_dim, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        return self.map(features)  # type: ignore[no-any-return]

    def embed_images(self, features: Tensor) -> Tensor:
        """(B, W) float32, unit length."""
        return on_sphere(self.map(features))
