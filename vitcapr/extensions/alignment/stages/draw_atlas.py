from typing import Annotated

from vitcapr.formats import kinds
from vitcapr.loader import run_entries
from vitcapr.pipeline.stage import In, Out
from vitcapr.stages._drawing import Drawing, Experiment, Pictures

_ROOT = "results/{experiment}"
_FILES = ("intervals", "similarity", "seconds")
_FEWEST = 3
"""Inputs for which there is something to compare."""


def _alignments(experiment: Experiment) -> dict[str, str]:
    """Return the alignments by their encoders, if no two have the same ones and they compare several inputs."""
    alignments = run_entries(experiment.config, "alignments")
    named = {f"{one.image}/{one.text}": name for name, one in alignments.items()}
    several = sum(len(one.inputs) for one in alignments.values()) >= _FEWEST
    return named if len(named) == len(alignments) and several else {}


def _captioners(experiment: Experiment) -> dict[str, str]:
    """Return the captioners by the input that they read; of those of one input, the first."""
    named: dict[str, str] = {}
    scored = "test" in experiment.models.splits and "cider" in experiment.config.metrics.caption
    for name in experiment.models.trained("captioners") if scored else ():
        one = experiment.config.captioners[name]
        layer = "" if one.layer is None else f"_{one.layer}"
        named.setdefault(f"{one.backbone}/{'patches' if one.attends else 'cls'}{layer}", name)
    return named


@Drawing(
    files=lambda _: ["atlas/atlas"],
    tables={"table": "atlas/atlas.md", "numbers": "atlas/atlas.csv"},
    inputs=lambda experiment: {
        **{
            kind: {read: f"{_ROOT}/alignments/{name}/{kind}.csv" for read, name in _alignments(experiment).items()}
            for kind in _FILES
        },
        "metrics": {
            read: f"{_ROOT}/metrics/{name}/{experiment.config.run.decodings[0]}/test/metrics.json"
            for read, name in _captioners(experiment).items()
        },
    },
    each=lambda experiment: [{}] if _alignments(experiment) else [],
    caption="What every input of the alignments gives: calibrated mutual kNN before training, Recall@1 on the test "
    "split after, and CIDEr of the captioners that read it.",
    category="Retrieval",
    labels={"figure": "atlas of the inputs"},
)
def draw_atlas(
    intervals: dict[str, In[kinds.TableFile]],
    similarity: dict[str, In[kinds.TableFile]],
    seconds: dict[str, In[kinds.TableFile]],
    table: Annotated[Out[kinds.TableFile], "atlas.md: every input with intervals and processor seconds, for people"],
    numbers: Annotated[Out[kinds.TableFile], "atlas.csv: the same numbers, a row for each input and family"],
    metrics: dict[str, In[kinds.MetricsFile]] | None = None,
) -> Pictures:
    """Compare every layer, token and encoder that the alignments read: a heat map, and tables."""
    from vitcapr.extensions.alignment.atlas import atlas_page, read_atlas, read_captioners
    from vitcapr.extensions.alignment.figures import heat_map
    from vitcapr.files import write_text
    from vitcapr.formats.containers import frame_to_csv

    atlas, captioners = read_atlas(intervals, similarity, seconds), read_captioners(metrics or {})
    write_text(numbers, frame_to_csv(atlas))
    write_text(table, atlas_page(atlas, captioners))
    return heat_map(atlas, captioners)
