from typing import Any

from vitcapr.config.base import StageSettings
from vitcapr.config.training import Layer
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


class SpaceSettings(StageSettings):
    layer: Layer = None
    """The hidden layer that the retriever reads."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "SpaceSettings":
        retriever = config.retrievers.get(wildcards.retriever)
        return cls(layer=None if retriever is None else retriever.layer)


@stage()
def draw_pca(
    embeddings: In[kinds.EmbeddingsFile],
    manifest: In[kinds.ManifestFile],
    settings: SpaceSettings,
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
    image_features: In[kinds.FeaturesFile] | None = None,
    text_features: In[kinds.TextFeaturesFile] | None = None,
) -> None:
    """Draw the embedding space as PCA, with features also as it was before training: figure 17 of ViTCap-R."""
    from vitcapr.extensions.papers.paper_figures import principal_components
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.style import save_pictures
    from vitcapr.store.reader import open_features

    embedded = read_embeddings(embeddings, read_manifest(manifest))
    before = None
    if image_features is not None and text_features is not None:
        images = open_features(image_features).at_layer(settings.layer)["cls"].gather(embedded.image_row)
        before = images, open_features(text_features)["text"].gather(embedded.caption_row)
    save_pictures(principal_components(embedded, before), pictures, report)
