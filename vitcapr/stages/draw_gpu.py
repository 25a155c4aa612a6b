from pathlib import Path

from vitcapr.formats import kinds
from vitcapr.pipeline.paths import gpu_exists
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import Drawing, Experiment, Pictures


def _trained(experiment: Experiment) -> list[str]:
    """Return the folders of all trained models, such as ``captioners/plain``."""
    sections = ("captioners", "retrievers", "finetuned_dual_encoders")
    return [f"{section}/{name}" for section in sections for name in experiment.models.trained(section)]


def _on_gpu(experiment: Experiment) -> bool:
    """Return whether models train on a GPU: on a cluster, on this machine, or in a run whose results are here."""
    uses = [Path(experiment.root) / model / "gpu.csv" for model in _trained(experiment)]
    here = experiment.on_cluster or gpu_exists() or any(path.is_file() and _has_samples(path) for path in uses)
    return here and experiment.config.device != "cpu"


def _has_samples(path: Path) -> bool:
    return path.read_text(encoding="utf-8").count("\n") > 2  # The device and the names of the columns.


@Drawing(
    files=lambda _: ["gpu/gpu"],
    inputs=lambda experiment: {
        "uses": {model: f"results/{{experiment}}/{model}/gpu.csv" for model in _trained(experiment)},
    },
    each=lambda experiment: [{}] if _on_gpu(experiment) and _trained(experiment) else [],
    caption="GPU use and GPU memory while each model trained, sampled every two seconds; a training that was "
    "continued goes on where it stopped. Trainings on a CPU are left out.",
    category="Training",
    labels={"figure": "GPU use and memory"},
)
def draw_gpu(uses: dict[str, In[kinds.GpuUseFile]]) -> Pictures:
    """Draw GPU use and memory during training, of the models that trained on a GPU: figure 4 of ViTCap-R."""
    from vitcapr.formats.training import read_gpu_use
    from vitcapr.report.figures.gpu import gpu_use

    return gpu_use({name: read_gpu_use(path) for name, path in uses.items()})
