from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def draw_gpu(
    uses: dict[str, In[kinds.GpuUseFile]],
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw GPU use and memory during training, of the models that trained on a GPU: figure 4 of ViTCap-R."""
    from vitcapr.extensions.figures.gpu import gpu_use
    from vitcapr.formats.training_files import read_gpu_use
    from vitcapr.report.figures.style import save_pictures

    save_pictures(gpu_use({name: read_gpu_use(path) for name, path in uses.items()}), pictures, report)
