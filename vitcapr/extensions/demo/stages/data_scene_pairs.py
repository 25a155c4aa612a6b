from vitcapr.config.data import DataSettings, PictureChecks, Withdrawn
from vitcapr.extensions.demo.settings import ScenePairsConfig, ScenesConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Out, stage
from vitcapr.progress import Reporter
from vitcapr.stages.data_pairs import write_cleaned_pairs
from vitcapr.workers import usable_cores


class ScenePairsSettings(Withdrawn, PictureChecks, DataSettings):
    pairs: ScenePairsConfig = ScenePairsConfig()
    scenes: ScenesConfig = ScenesConfig()


@stage(execution_only={"max_rejected"})
def data_scene_pairs(settings: ScenePairsSettings, report: Reporter, folder: Out[kinds.PairsFolder]) -> None:
    """Render scenes, clean their captions and split the pairs into training, validation and test sets."""
    from vitcapr.data.bilingual_pairs import manifest_pairs
    from vitcapr.data.withdrawn import read_withdrawn
    from vitcapr.extensions.demo.dataset import write_scenes
    from vitcapr.formats.manifest import read_manifest

    # Pairs are split anew: a near duplicate for validation could have its original in training.
    processes, withdrawn = usable_cores(), read_withdrawn(settings.withdrawn)
    manifest = write_scenes(folder, settings.scenes, processes, report, near_duplicates=False, withdrawn=withdrawn)
    listing = manifest_pairs(read_manifest(manifest))
    write_cleaned_pairs(folder, listing, folder, settings.pairs, settings, report)
