from typing import Annotated

from vitcapr.config.report import FigureSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def draw_side_by_side(
    embeddings: dict[str, list[In[kinds.EmbeddingsFile]]],
    manifest: In[kinds.ManifestFile],
    split: Annotated[str, "train, validation, test or pools"],
    settings: FigureSettings,
    found: Out[kinds.TableFile],
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
    pools: In[kinds.PoolsFile] | None = None,
) -> None:
    """Draw the first results of each model for one image and one caption, and the embedding space of each model.

    All captions are in one language. With pools, the query is one that was set apart.
    """
    from vitcapr.extensions.figures.compared import draw_systems, read_searched
    from vitcapr.files import write_text
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.examples import Choice
    from vitcapr.report.figures.style import save_pictures

    data = read_manifest(manifest)
    systems = {name: read_searched(paths, data, split, pools) for name, paths in embeddings.items()}
    place = f"of the {split} split" if pools is None else "of the pools"
    figures, table = draw_systems(data, systems, place, Choice(**settings.figures.examples_of(1)))
    write_text(found, table)
    save_pictures(figures, pictures, report)
