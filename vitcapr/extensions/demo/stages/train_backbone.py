from vitcapr.config.base import StageSettings
from vitcapr.errors import UserError
from vitcapr.extensions.demo.settings import TrainedBackboneConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Device, In, Out, stage
from vitcapr.progress import Reporter


class TrainBackboneSettings(StageSettings):
    trained_backbone: TrainedBackboneConfig = TrainedBackboneConfig()


@stage(cached=True)
def train_backbone(
    manifest: In[kinds.ManifestFile],
    settings: TrainBackboneSettings,
    report: Reporter,
    backbone: Out[kinds.TrainedBackboneFolder],
    device: Device = "auto",
) -> None:
    """Train a ViT on the training split and save it in transformers' format.

    history.csv holds the validation accuracies.
    """
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.extensions.demo.backbone import save_backbone, train_vit
    from vitcapr.extensions.demo.backbone_targets import names_of_train, read_split, size_of_pictures
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.training_files import write_history

    training = settings.trained_backbone
    data = read_manifest(manifest)
    names = names_of_train(data, manifest)
    size = size_of_pictures(data, manifest)
    if size % training.patch_size:
        raise UserError(
            f"the patch size {training.patch_size} does not divide the picture size {size}",
            where=manifest,
            remedy="change trained_backbone.patch_size",
        )
    grid = size // training.patch_size
    train, validation = (read_split(data, split, names, grid, size) for split in ("train", "validation"))
    vit, history = train_vit(train, validation, names, training, report, resolve_device(device))
    save_backbone(vit, backbone)
    rows = [{name: f"{value:.6g}" for name, value in row.items()} for row in history]
    write_history(backbone / "history.csv", rows)
    last = ", ".join(f"{name} {value:.3f}" for name, value in history[-1].items() if name != "epoch")
    report.line(f"after {training.epochs} epochs: {last}")
