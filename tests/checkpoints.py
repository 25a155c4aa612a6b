"""Small data sets and random checkpoints of the real model classes, made on the spot."""

import json
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from transformers import BertConfig, BertModel, BertTokenizer, PreTrainedModel, ViTConfig, ViTModel
from typer.testing import CliRunner

import vitcapr
from tests.data_sets import write_data_set, write_noise
from vitcapr.extensions.exchange.commands import features
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.extract import extract
from vitcapr.stages.seal import seal
from vitcapr.store.reader import FeatureStore, open_features

PROCESSOR = {
    "image_processor_type": "ViTImageProcessor",
    "size": {"height": 16, "width": 16},
    "resample": 2,
    "image_mean": [0.4, 0.5, 0.6],
    "image_std": [0.2, 0.3, 0.4],
}


def save_checkpoint(model: PreTrainedModel, folder: Path, processor: dict[str, object] | None = None) -> Path:
    """Save a model and a processor configuration to a folder, as a hub checkpoint has them."""
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor or PROCESSOR))
    return folder


def tiny_vit(**changes: object) -> ViTModel:
    """A random ViT: 8 channels, 2 layers, pictures of 16 pixels in patches of 8."""
    torch.manual_seed(0)
    settings = {
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "image_size": 16,
        "patch_size": 8,
        "initializer_range": 0.5,
    }
    return ViTModel(ViTConfig(**{**settings, **changes}), add_pooling_layer=False).eval()


def save_bert(folder: Path, words: list[str], width: int = 8, **changes: object) -> Path:
    """A random BERT that knows some words, with its tokenizer."""
    torch.manual_seed(0)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    BertTokenizer(vocab={word: number for number, word in enumerate(vocabulary)}).save_pretrained(folder)
    shape = {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": 1, "num_attention_heads": 2}
    shape |= {"initializer_range": 0.5, **changes}  # type: ignore[dict-item]
    BertModel(BertConfig(vocab_size=len(vocabulary), **shape)).save_pretrained(folder)
    return folder


def flip_bit(path: Path, at: int = 5) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too, with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def printed_by(app: typer.Typer, *arguments: object) -> str:
    """What a command prints, which ends well."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


run_features = partial(printed_by, features.app)


def make_dataset(folder: Path, images: int) -> Path:
    """A manifest of ``images`` noisy pictures of several sizes, one caption each."""
    pictures, names, file = folder / "pictures", [f"{number}_ä" for number in range(images)], "bild_{}.png".format
    write_noise(pictures, [*map(file, names)])
    captions = [(name, "en", "noise") for name in names]
    return write_data_set(folder, dict.fromkeys(names, "train"), captions, "noise", pictures, file)


@dataclass(frozen=True)
class Experiment:
    """A data set and a backbone, and the two stages run on them as the rules do."""

    root: Path
    manifest: Path
    backbone: Path

    def settings(
        self, chunk: int = 4, batch: int = 2, reuse: bool = True, licence: str | None = None, **backbone: object
    ) -> dict[str, Any]:
        return {
            "backbone": {"source": "noise-vit", "dtype": "float32", **backbone},
            "features": {"chunk": chunk, "batch": batch, "reuse": reuse},
            "terms": {"licence": licence},
        }

    def part(self, name: str, task: int) -> Path:
        return self.root / "results" / name / "features" / "vit" / "parts" / f"{task}.json"

    def extract(
        self, name: str = "a", task: int = 0, tasks: int = 1, stores: str = "stores", **settings: object
    ) -> Path:
        part = self.part(name, task)
        run_stage(
            extract,
            self.root / "extract.log",
            manifest=self.manifest,
            backbone=self.backbone,
            task=task,
            tasks=tasks,
            device="cpu",
            stores=str(self.root / "results" / stores),
            part=part,
            settings=self.settings(**settings),  # type: ignore[arg-type]
        )
        return part

    def seal(self, parts: list[Path], name: str = "a", stores: str = "stores") -> Path:
        output = self.root / "results" / name / "features" / "vit" / "manifest.json"
        run_stage(seal, parts=parts, manifest=self.manifest, stores=str(self.root / "results" / stores), sealed=output)
        return output

    def run(self, name: str = "a", **settings: object) -> FeatureStore:
        return open_features(self.seal([self.extract(name, **settings)], name))  # type: ignore[arg-type]


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    backbone = save_checkpoint(tiny_vit(), tmp_path / "noise-vit")
    return Experiment(tmp_path, make_dataset(tmp_path / "data", 11), backbone)


def extract_text(manifest: Path, encoder: str, output: Path, **settings: object) -> Path:
    """Extract the features of every caption to the folder ``output``; the store lies in a folder beside its."""
    stores = os.environ.get("VITCAPR_STORES") or output.parent / "stores"
    files = {"manifest": manifest, "stores": str(stores), "sealed": output / "manifest.json"}
    vitcapr.run("extract_text", {"text_encoder": {"source": encoder, **settings}}, **files, device="cpu")
    return output
