import os

from vitcapr.config.data import DataSettings
from vitcapr.extensions.demo.settings import ScenesConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Out, stage
from vitcapr.progress import Reporter


class ScenesSettings(DataSettings):
    scenes: ScenesConfig = ScenesConfig()


@stage()
def data_scenes(settings: ScenesSettings, report: Reporter, folder: Out[kinds.DataFolder]) -> None:
    """Render pictures with captions and masks. Picture i depends on the seed, not on the number of pictures."""
    from vitcapr.extensions.demo.dataset import write_scenes

    write_scenes(folder, settings.scenes, processes=len(os.sched_getaffinity(0)), reporter=report)
