from vitcapr.config.data import DataSettings, Withdrawn
from vitcapr.extensions.demo.settings import ScenesConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Out, stage
from vitcapr.progress import Reporter
from vitcapr.workers import usable_cores


class ScenesSettings(Withdrawn, DataSettings):
    scenes: ScenesConfig = ScenesConfig()


@stage()
def data_scenes(settings: ScenesSettings, report: Reporter, folder: Out[kinds.DataFolder]) -> None:
    """Render pictures with captions and masks. Picture i depends on the seed, not on the number of pictures."""
    from vitcapr.data.withdrawn import read_withdrawn
    from vitcapr.extensions.demo.dataset import write_scenes

    processes, withdrawn = usable_cores(), read_withdrawn(settings.withdrawn)
    write_scenes(folder, settings.scenes, processes=processes, reporter=report, withdrawn=withdrawn)
