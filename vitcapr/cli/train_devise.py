"""Train DeViSE: a linear map from image features into a space of word vectors."""

import numpy as np
import torch

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import Features, Log, ManifestFile, ModelFolder, Settings, TrainingCode, VectorsFile
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.devise import TrainDeviseSettings
from vitcapr.errors import UserError
from vitcapr.features.batches.memory import MemoryArray
from vitcapr.features.batches.pairs import FeatureTexts
from vitcapr.features.encoders.precision import resolve_device
from vitcapr.features.store.reader import open_features
from vitcapr.files import sha256_bytes, sha256_file
from vitcapr.models.devise import Devise
from vitcapr.progress import Reporter
from vitcapr.text.mean_vectors import caption_vectors
from vitcapr.text.word_vectors import VectorFile
from vitcapr.training.devise import DeviseTask
from vitcapr.training.loop import Recipe
from vitcapr.training.outcome import train_into
from vitcapr.training.schedule import Phase


def main(
    settings: Settings,
    features: Features,
    manifest: ManifestFile,
    vectors: VectorsFile,
    output_dir: ModelFolder,
    code: TrainingCode = "",
    log: Log = None,
) -> None:
    """Train DeViSE; stopped by a signal, the same command continues it bit for bit."""
    chosen = parse_settings(TrainDeviseSettings, settings)
    devise = chosen.devise
    with Reporter(log) as reporter:
        data, store = read_manifest(manifest), open_features(features)
        captions = data.captions_of(language=devise.language)
        if captions.empty:
            raise UserError(f"the data set {data.dataset} has no caption in '{devise.language}'", where=manifest)
        found = caption_vectors(captions["text"].tolist(), VectorFile(vectors, chosen.dimension))
        reporter.line(
            f"{100 * found.words_found:.1f} % of the words have a vector; {int((~found.known).sum())} of "
            f"{len(captions)} captions have none and are left out"
        )
        device = resolve_device(devise.device)
        torch.manual_seed(devise.seed_in(chosen.seed))
        architecture = {"feature_dim": store["cls"].shape[-1], "word_dim": chosen.dimension}
        known = np.flatnonzero(found.known)
        task = DeviseTask(
            Devise(**architecture),
            store,
            FeatureTexts(MemoryArray(found.vectors), known, captions["image_row"].to_numpy()[known]),
            train=data.rows("train"),
            validation=data.rows("validation"),
            batch_images=devise.batch_images,
            captions_per_image=devise.captions_per_image,
            margin=devise.margin,
            seed=devise.seed_in(chosen.seed),
            device=device,
        )
        train_into(
            output_dir,
            task,
            Recipe(
                (Phase(devise.epochs, devise.learning_rate, "cosine"),),
                weight_decay=devise.weight_decay,
                select_by="validation_rsum",
            ),
            card={
                "architecture": architecture,
                "backbone": devise.backbone,
                "code": code,
                "inputs": {
                    "captions": sha256_bytes("\n".join(captions["text"]).encode()),
                    "features": store.fingerprint,
                    "images": sha256_bytes("\n".join(data.images["split"]).encode()),
                    "word_vectors": sha256_file(vectors),
                },
                "settings": chosen.canonical(),
                "words_found": round(found.words_found, 6),
            },
            device=device,
            dtype=torch.float32,
            reporter=reporter,
        )


if __name__ == "__main__":
    launch(main, shelve=["output_dir"])
