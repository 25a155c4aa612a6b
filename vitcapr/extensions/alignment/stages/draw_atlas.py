from typing import Annotated

from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def draw_atlas(
    intervals: dict[str, In[kinds.TableFile]],
    similarity: dict[str, In[kinds.TableFile]],
    seconds: dict[str, In[kinds.TableFile]],
    table: Annotated[list[Out[kinds.TableFile]], "atlas.md, atlas.html: every input with intervals, for people"],
    numbers: Annotated[Out[kinds.TableFile], "atlas.csv: the same numbers, a row for each input and family"],
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
    metrics: dict[str, In[kinds.MetricsFile]] | None = None,
) -> None:
    """Compare every layer, token and encoder that the alignments read: a heat map, and tables."""
    from vitcapr.extensions.alignment.alignment_figures import heat_map
    from vitcapr.extensions.alignment.atlas import atlas_page, read_atlas, read_captioners
    from vitcapr.files import write_text
    from vitcapr.formats.containers import frame_to_csv
    from vitcapr.formats.page import write_page
    from vitcapr.report.figures.style import save_pictures

    atlas, captioners = read_atlas(intervals, similarity, seconds), read_captioners(metrics or {})
    write_text(numbers, frame_to_csv(atlas))
    shown = next((each.name for each in pictures if each.suffix in (".svg", ".png")), "")
    picture = (
        f"\n![Every input; a shade goes from the lowest to the highest number of its column]({shown})\n"
        if shown
        else ""
    )
    write_page(table, atlas_page(atlas, captioners) + picture, home="../../index.html")
    save_pictures(heat_map(atlas, captioners), pictures, report)
