from collections.abc import Callable
from typing import Any

from vitcapr.config.base import StageSettings
from vitcapr.config.training import Layer
from vitcapr.extensions.papers.settings import followed_paper
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import MANIFEST, Drawing, Pictures


class SpaceSettings(StageSettings):
    layer: Layer = None
    """The hidden layer that the retriever reads."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "SpaceSettings":
        retriever = config.retrievers.get(wildcards.retriever)
        return cls(layer=None if retriever is None else retriever.layer)


def _before_training(experiment: Any, folder: str) -> Callable[..., list[str]]:
    """Return the features of images or captions that a retriever reads, if it reads features of both."""

    def sealed(wildcards: Any) -> list[str]:
        retriever = experiment.config.retrievers.get(wildcards.retriever)
        if retriever is None or retriever.text.text_encoder is None:
            return []
        name = retriever.backbone if folder == "features" else retriever.text.text_encoder
        return [f"results/{wildcards.experiment}/{folder}/{name}/manifest.json"]

    return sealed


@Drawing(
    files=lambda _: ["embeddings/{retriever}/{split}/pca"],
    inputs=lambda experiment: {
        "embeddings": "results/{experiment}/embeddings/{retriever}/{split}/embeddings.npz",
        "manifest": MANIFEST,
        "image_features": _before_training(experiment, "features"),
        "text_features": _before_training(experiment, "text_features"),
    },
    # Two of many components show little: PCA is drawn for the papers, which print it.
    each=lambda experiment: experiment.retrieval.retrievals if followed_paper(experiment.config) else [],
    caption="The images and captions of the {split} split on the two main directions of the space of {retriever}; "
    "where the retriever reads features of both, these as well, as they were before training.",
    category="Retrieval",
    labels={"figure": "the shared space, PCA", "split": "{split}"},
)
def draw_pca(
    embeddings: In[kinds.EmbeddingsFile],
    manifest: In[kinds.ManifestFile],
    settings: SpaceSettings,
    image_features: In[kinds.FeaturesFile] | None = None,
    text_features: In[kinds.TextFeaturesFile] | None = None,
) -> Pictures:
    """Draw the embedding space as PCA, with features also as it was before training: figure 17 of ViTCap-R."""
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.embeddings import principal_components
    from vitcapr.store.reader import open_features

    embedded = read_embeddings(embeddings, read_manifest(manifest))
    before = None
    if image_features is not None and text_features is not None:
        images = open_features(image_features).at_layer(settings.layer)["cls"].gather(embedded.image_row)
        before = images, open_features(text_features)["text"].gather(embedded.caption_row)
    return principal_components(embedded, before)
