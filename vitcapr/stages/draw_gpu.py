"""Draw GPU use and memory during training: figure 4 of ViTCap-R."""

from vitcapr.formats.kinds import FigureFile, GpuUseFile
from vitcapr.pipeline.figure import Experiment, Figure
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


def _trained(experiment: Experiment) -> list[str]:
    """The folders of all trained models, such as ``captioners/plain``."""
    sections = ("captioners", "retrievers", "finetuned_dual_encoders")
    return [f"{section}/{name}" for section in sections for name in experiment.trained(section)]


@stage(
    figure=Figure(
        files=lambda _: ["gpu/gpu"],
        inputs=lambda experiment: {
            "uses": [f"results/{{experiment}}/{model}/gpu.csv" for model in _trained(experiment)],
        },
        bound=lambda experiment: {"uses": _trained(experiment)},
        each=lambda experiment: [{}] if _trained(experiment) else [],
        caption="GPU use and GPU memory while each model trained, sampled every two seconds; a training that was "
        "continued goes on where it stopped. A training without a GPU has no samples: words say what it ran on.",
        category="Training",
        labels={"figure": "GPU use and memory"},
    )
)
def draw_gpu(
    uses: dict[str, In[GpuUseFile]],
    report: Reporter,
    pictures: list[Out[FigureFile]],
) -> None:
    """Draw GPU use and memory during training. For a training without a GPU, name the device instead."""
    from vitcapr.formats.training import read_gpu_use
    from vitcapr.report.figures.gpu import gpu_use
    from vitcapr.report.figures.style import save_pictures

    figure = gpu_use({name: read_gpu_use(path) for name, path in uses.items()})
    save_pictures({"gpu": figure}, pictures, report)
