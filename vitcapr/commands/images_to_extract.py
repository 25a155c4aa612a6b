"""Counts the images that an extraction would compute."""

from pathlib import Path

from vitcapr.building.image_recipe import image_recipe
from vitcapr.encoders.precision import resolve_device
from vitcapr.experiment.experiment import Experiment
from vitcapr.formats.manifest import read_manifest
from vitcapr.pipeline.code import code_hash, stage_code
from vitcapr.pipeline.paths import stores_root
from vitcapr.pipeline.records import CODE_DIGESTS
from vitcapr.store.known_rows import KnownRows


def images_to_extract(experiment: Experiment, backbone: str) -> str | None:
    """``100 of 600 images to extract``; None if the backbone is not in a local folder.

    The manifest of the data set has to be up to date.

    Raises:
        UserError: the manifest or the backbone is damaged.
    """
    config, results = experiment.config, experiment.results
    if not experiment.selection.is_trained(backbone) and not experiment.features.backbone_files(backbone):
        return None
    device = resolve_device(config.features.device)
    recipe = image_recipe(config.backbones[backbone], experiment.features.source_of(backbone), device)
    code = code_hash(stage_code("vitcapr.stages.extract", remembered=results / CODE_DIGESTS))
    digests = read_manifest(Path(experiment.manifest)).images["sha256"].tolist()
    known = KnownRows.none(len(digests), config.features.chunk)
    if config.features.reuse:
        wanted = {**recipe.attributes, "code": code}
        known = KnownRows.find(stores_root(results), wanted, digests, config.features.chunk)
    return f"{int((known.source < 0).sum())} of {len(digests)} images to extract"
