"""Draw the first results of several models for one image and for one caption, side by side."""

from vitcapr.config.figures import FigureSettings
from vitcapr.formats.kinds import EmbeddingsFile, ManifestFile, TableFile
from vitcapr.pipeline.figure import MANIFEST, Experiment
from vitcapr.pipeline.stage import In, Out, Split
from vitcapr.stages._drawing import Drawing, Pictures


def _each(experiment: Experiment) -> list[dict[str, str]]:
    return [{"language": language, "split": split} for language in experiment.compared for split in experiment.splits]


@Drawing(
    files=lambda _: [
        f"side_by_side/{{language}}/{{split}}/{name}" for name in ("top_captions", "top_images", "spaces")
    ],
    tables={"found": "side_by_side/{language}/{split}/found.md"},
    inputs=lambda experiment: {
        "embeddings": lambda wildcards: [
            f"results/{wildcards.experiment}/embeddings/{name}/{wildcards.split}/embeddings.npz"
            for name in experiment.compared[wildcards.language].values()
        ],
        "manifest": MANIFEST,
    },
    bound=lambda experiment: {
        "embeddings": lambda wildcards: list(experiment.compared[wildcards.language]),
    },
    each=_each,
    caption="Models side by side on the {split} split, with captions in the language {language}. "
    "`top_captions`: the first five captions that each retrieves for one image. `top_images`: the first five "
    "images that each retrieves for one caption. Correct matches are marked; queries are random. `spaces`: the "
    "images and captions on the two main directions of each model's space, on the same axes. `found.md` has the "
    "same matches as text, for languages that no font of the machine can show.",
    category="Retrieval",
    labels={"figure": "models side by side", "language": "{language}", "split": "{split}"},
    mem_mb=4000,
)
def draw_side_by_side(
    embeddings: dict[str, In[EmbeddingsFile]],
    manifest: In[ManifestFile],
    split: Split,
    settings: FigureSettings,
    found: Out[TableFile],
) -> Pictures:
    """Draw the first results of each model for one image and one caption, and the embedding space of each model.

    All captions are in one language.
    """
    from vitcapr.files import write_text
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.examples import Choice
    from vitcapr.report.figures.side_by_side import draw_systems

    data = read_manifest(manifest)
    systems = {name: read_embeddings(path, data, split) for name, path in embeddings.items()}
    figures, table = draw_systems(data, systems, split, Choice(**settings.figures.choice(1)))
    write_text(found, table)
    return figures
