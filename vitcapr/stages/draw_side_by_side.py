from typing import Annotated, Any

from vitcapr.config.report import FigureSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out
from vitcapr.stages._drawing import MANIFEST, Drawing, Experiment, Pictures, example_choice

POOLS = "pools"
"""In place of a split: the queries set apart, and their candidates."""


def _each(experiment: Experiment) -> list[dict[str, str]]:
    places = [*experiment.models.splits, *([POOLS] if experiment.config.run.pools else [])]
    return [{"language": language, "split": place} for language in experiment.retrieval.compared for place in places]


def _embeddings(experiment: Experiment, wildcards: Any) -> dict[str, list[str]]:
    """Return the embeddings of each model: of pools, those of each split that candidates come from."""
    splits = experiment.models.pooled_splits if wildcards.split == POOLS else [wildcards.split]
    return {
        model: [f"results/{wildcards.experiment}/embeddings/{name}/{split}/embeddings.npz" for split in splits]
        for model, name in experiment.retrieval.compared[wildcards.language].items()
    }


@Drawing(
    files=lambda _: [
        f"side_by_side/{{language}}/{{split}}/{name}" for name in ("top_captions", "top_images", "spaces")
    ],
    tables={"found": "side_by_side/{language}/{split}/found.md"},
    inputs=lambda experiment: {
        "embeddings": lambda wildcards: _embeddings(experiment, wildcards),
        "manifest": MANIFEST,
        "pools": lambda wildcards: (
            [f"results/{wildcards.experiment}/data/pools.npz"] if wildcards.split == POOLS else []
        ),
    },
    each=_each,
    caption="Models side by side on the {split} split, with captions in the language {language}. "
    "`top_captions`: the first five captions that each retrieves for one image. `top_images`: the first five "
    "images that each retrieves for one caption. Correct matches are marked; queries are random. `spaces`: the "
    "images and captions on the two main directions of each model's space, on the same axes. `found.md` has the "
    "same matches as text, for languages that no font of the machine can show.",
    category="Retrieval",
    labels={"figure": "models side by side", "language": "{language}", "split": "{split}"},
)
def draw_side_by_side(
    embeddings: dict[str, list[In[kinds.EmbeddingsFile]]],
    manifest: In[kinds.ManifestFile],
    split: Annotated[str, "train, validation, test or pools"],
    settings: FigureSettings,
    found: Out[kinds.TableFile],
    pools: In[kinds.PoolsFile] | None = None,
) -> Pictures:
    """Draw the first results of each model for one image and one caption, and the embedding space of each model.

    All captions are in one language. With pools, the query is one that was set apart.
    """
    from vitcapr.files import write_text
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.examples import Choice
    from vitcapr.report.figures.side_by_side import draw_systems, read_searched

    data = read_manifest(manifest)
    systems = {name: read_searched(paths, data, split, pools) for name, paths in embeddings.items()}
    place = f"of the {split} split" if pools is None else "of the pools"
    figures, table = draw_systems(data, systems, place, Choice(**example_choice(settings.figures, 1)))
    write_text(found, table)
    return figures
