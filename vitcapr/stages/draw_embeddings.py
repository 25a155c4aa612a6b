from collections.abc import Callable
from typing import Any

from vitcapr.config.figures import FigureSettings
from vitcapr.config.training import Layer
from vitcapr.formats import kinds
from vitcapr.pipeline.figure import MANIFEST, Experiment
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import Drawing, Pictures


class EmbeddingFigureSettings(FigureSettings):
    layer: Layer = None
    """The hidden layer that the retriever reads."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "EmbeddingFigureSettings":
        retriever = config.retrievers.get(wildcards.retriever)
        return cls(figures=config.figures, layer=None if retriever is None else retriever.layer)


def _before_training(experiment: Experiment, folder: str) -> Callable[..., list[str]]:
    """The features of images or captions that a retriever reads, if it reads features of both. PCA alone shows them."""

    def sealed(wildcards: Any) -> list[str]:
        retriever = experiment.config.retrievers.get(wildcards.retriever)
        if retriever is None or retriever.text.text_encoder is None or not experiment.config.run.paper:
            return []
        name = retriever.backbone if folder == "features" else retriever.text.text_encoder
        return [f"results/{wildcards.experiment}/{folder}/{name}/manifest.json"]

    return sealed


@Drawing(
    # Two of many components show little: PCA is drawn for the papers, which print it.
    files=lambda experiment: [
        f"embeddings/{{retriever}}/{{split}}/{name}"
        for name in [*(["pca"] if experiment.config.run.paper else []), "tsne", "cosines"]
    ],
    inputs=lambda experiment: {
        "embeddings": "results/{experiment}/embeddings/{retriever}/{split}/embeddings.npz",
        "manifest": MANIFEST,
        "image_features": _before_training(experiment, "features"),
        "text_features": _before_training(experiment, "text_features"),
    },
    each=lambda experiment: experiment.retrievals,
    caption="The space of {retriever} with the images and captions of the {split} split. `pca`, for an experiment "
    "that follows a paper: all of them on its two main directions; where the retriever reads features of both, "
    "these as well, as they were before training. `tsne`: the first 300 images, each joined to its first caption "
    "by a line. `cosines`: positive pairs against the hardest wrong caption of each image and against random "
    "wrong pairs, with the share of area that they have in common.",
    category="Retrieval",
    subcategory="{retriever}",
    labels={"figure": "the shared space", "split": "{split}"},
    runtime=30,
)
def draw_embeddings(
    embeddings: In[kinds.EmbeddingsFile],
    manifest: In[kinds.ManifestFile],
    settings: EmbeddingFigureSettings,
    image_features: In[kinds.FeaturesFile] | None = None,
    text_features: In[kinds.TextFeaturesFile] | None = None,
) -> Pictures:
    """Draw the embedding space as PCA, t-SNE and a histogram of cosines: figures 17 to 19 of ViTCap-R. With
    features, the PCA figure also shows the space before training."""
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.embeddings import draw_space
    from vitcapr.store.reader import open_features

    embedded = read_embeddings(embeddings, read_manifest(manifest))
    before = None
    if image_features is not None and text_features is not None:
        images = open_features(image_features).at_layer(settings.layer)["cls"].gather(embedded.image_row)
        before = images, open_features(text_features)["text"].gather(embedded.caption_row)
    return draw_space(embedded, before, settings.figures.seed)
