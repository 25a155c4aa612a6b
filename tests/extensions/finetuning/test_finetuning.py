"""A fine-tuned dual encoder trained on real pictures by its stages: resumption, chunks, tokens, embeddings."""

import copy
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from safetensors.torch import load_file

from tests.checkpoints import make_dataset, save_bert, save_checkpoint, tiny_vit
from tests.data_sets import write_data_set
from vitcapr.errors import UserError
from vitcapr.extensions.finetuning.stages.embed_finetuned import embed_finetuned
from vitcapr.extensions.finetuning.stages.extract_pixels import extract_pixels
from vitcapr.extensions.finetuning.stages.finetune import finetune
from vitcapr.extensions.finetuning.stages.train_tokenizer import train_tokenizer
from vitcapr.extensions.finetuning.text_files import TAGS, TagTable
from vitcapr.extensions.finetuning.tokenised import TowerCaptions, TowerReader
from vitcapr.extensions.finetuning.wordpiece import train_wordpiece
from vitcapr.formats.manifest import read_manifest
from vitcapr.metrics.ranks import rank_matches
from vitcapr.pipeline.run import run_stage

IMAGES = 17
TEXT = {"languages": ["en", "zh"], "tokenizer": "both", "layers": 1, "hidden_dim": 8, "heads": 2, "max_length": 12}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen pictures with a caption in each of two languages, one with a German one, their pixels, a tokenizer and a
    random ViT."""
    folder = tmp_path_factory.mktemp("finetuned")
    make_dataset(folder / "raw", IMAGES)
    splits = {f"{number}_ä": "train" if number < 11 else "validation" for number in range(IMAGES)}
    captions = [
        (name, language, text)
        for number, name in enumerate(splits)
        for language, text in (("en", f"picture number {number} of many"), ("zh", f"第{number}张图片"))
        if number < IMAGES - 1
    ]
    captions.append((f"{IMAGES - 1}_ä", "de", "ein Bild"))
    write_data_set(folder / "data", splits, captions, "pairs", folder / "raw/pictures", "bild_{}.png".format)
    save_checkpoint(tiny_vit(initializer_range=0.02), folder / "vit")
    manifest = folder / "data" / "manifest.json"
    run_stage(
        extract_pixels,
        manifest=manifest,
        stores=str(folder / "stores"),
        sealed=folder / "pixels.json",
        settings={"backbone": {"source": str(folder / "vit")}, "features": {"chunk": 4}},
    )
    run_stage(
        train_tokenizer,
        manifest=manifest,
        tokenizer=folder / "tokenizer.json",
        settings={"tokenizer": {"languages": ["en", "zh"], "vocab_size": 100}},
    )
    return folder


def settings(**training: object) -> dict[str, Any]:
    return {
        "finetuned": {
            "image": {"backbone": "vit"},
            "text": {"both": TEXT},
            "training": {
                "phases": [{"epochs": 2, "batch_images": 4, "captions_per_image": None, "learning_rate": 0.003}],
                "precision": "float32",
                **training,
            },
        }
    }


def train(folder: Path, output: Path, values: dict[str, Any]) -> Path:
    run_stage(
        finetune,
        settings=values,
        pixels=folder / "pixels.json",
        manifest=folder / "data" / "manifest.json",
        source=str(folder / "vit"),
        finetuned=output,
        tokenizers={"both": folder / "tokenizer.json"},
    )
    return output


def embed(
    folder: Path, embeddings: Path, values: dict[str, Any], split: str, finetuned: Path | None, **settings: Any
) -> dict[str, np.ndarray]:
    of_untrained = {"source": str(folder / "vit"), "tokenizers": {"both": folder / "tokenizer.json"}}
    run_stage(
        embed_finetuned,
        settings={"training": values, **settings},
        pixels=folder / "pixels.json",
        manifest=folder / "data" / "manifest.json",
        split=split,
        embeddings=embeddings,
        finetuned=finetuned,
        **({} if finetuned else of_untrained),
    )
    with np.load(embeddings) as found:
        return dict(found)


def test_it_learns_and_leaves_what_embedding_needs(folder: Path, tmp_path: Path) -> None:
    values = settings(phases=[{"epochs": 8, "batch_images": 11, "captions_per_image": None, "learning_rate": 0.003}])
    output = train(folder, tmp_path / "finetuned", values)
    with (output / "history.csv").open(newline="") as stream:
        losses = [float(row["train_loss"]) for row in csv.DictReader(stream)]
    assert losses[-1] < 0.9 * losses[0]
    found = embed(folder, tmp_path / "embeddings.npz", values, "validation", output)
    assert found["images"].shape == (5, 8)
    assert found["captions"].shape == (10, 8)
    assert found["image_row"].tolist() == list(range(11, 16))
    assert found["caption_image"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    np.testing.assert_allclose(np.linalg.norm(found["captions"], axis=1), 1, rtol=1e-5)
    ranks = rank_matches(found["images"], found["captions"], found["caption_image"])
    card = json.loads((output / "card.json").read_text())
    best = card["best_score"]["validation_rsum"]
    recalled = 100 * sum(float(np.mean(part <= k)) for part in (ranks.i2t, ranks.t2i) for k in (1, 5, 10))
    assert recalled == pytest.approx(best)


def test_an_untrained_matcher_is_where_training_starts(folder: Path, tmp_path: Path) -> None:
    values = settings(phases=[{"epochs": 1, "batch_images": 4, "learning_rate": 1e-12}])
    output = train(folder, tmp_path / "finetuned", values)
    untrained, trained = (
        embed(folder, tmp_path / f"{of}.npz", values, "train", of)["captions"] for of in (None, output)
    )
    np.testing.assert_allclose(untrained, trained, atol=1e-4)


def test_chunks_change_nothing(folder: Path, tmp_path: Path) -> None:
    text = {**TEXT, "dropout": 0.0}
    weights = []
    for name, training in (("whole", {}), ("chunks", {"chunk": 3})):
        values = settings(phases={"epochs": 1, "batch_images": 4, "learning_rate": 0.003}, **training)
        values["finetuned"]["text"] = {"both": text}
        weights.append(load_file(train(folder, tmp_path / name, values) / "best.safetensors"))
    for other in weights[1:]:
        for key, tensor in weights[0].items():
            torch.testing.assert_close(other[key], tensor, atol=2e-4, rtol=1e-3)


def test_the_same_seed_gives_the_same_bytes_with_augmentation(folder: Path, tmp_path: Path) -> None:
    rates = {"learning_rate": [1e-12, 0.003]}
    phase = {"epochs": 2, "batch_images": 4, "objective": "sigmoid", "hard_negatives": "hardest"}
    options = {"epoch_batches": 2, "optimizer": "sgd", "layer_decay": 0.8, "select_by": "loss", "pairs": 20}
    values = settings(augmentation={}, sweep=rates, phases=phase, **options)
    first, again = (train(folder, tmp_path / name, values) for name in ("first", "again"))
    for name in ("best.safetensors", "card.json", "history.csv", "readers.json", "sweep.csv"):
        assert (first / name).read_bytes() == (again / name).read_bytes(), name
    assert [row.split(",")[0] for row in (first / "sweep.csv").read_text().splitlines()[1:]] == ["1e-12", "0.003"]


def captions(*rows: tuple[Any, ...]) -> pd.DataFrame:
    """Captions of one image: ``caption_row``, ``language``, ``text`` and perhaps ``raw``."""
    return pd.DataFrame(
        [dict(zip(("caption_row", "language", "text", "raw"), row, strict=False)) for row in rows]
    ).assign(image_row=0)


def test_captions_go_to_the_tower_of_their_language() -> None:
    tokenizer = train_wordpiece(["a dog", "一只狗"], 100, 1)
    readers = {name: TowerReader(tokenizer, (name,), 0, 4) for name in ("en", "zh")}
    tokens = TowerCaptions(captions((7, "zh", "一只狗"), (9, "en", "a dog"), (12, "zh", "狗")), readers)
    english, chinese = tokens.of(np.array([2, 1, 0]))
    assert (english.tower, english.at.tolist()) == ("en", [1])
    assert (chinese.tower, chinese.at.tolist()) == ("zh", [0, 2])
    assert chinese.inputs["mask"].tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]  # cut to four, special ones included
    with pytest.raises(UserError, match="no text tower reads captions in 'fr'"):
        TowerCaptions(captions((0, "fr", "un chien")), readers)


def test_a_reader_comes_back_from_its_description() -> None:
    reader = TowerReader(train_wordpiece(["a dog"], 50, 1), ("en",), 0, 5)
    again = TowerReader.from_description(json.loads(json.dumps(reader.describe())))
    texts = ["a dog and more of it"]
    assert again.read(texts, texts) == reader.read(texts, texts)
    ((ids, _, starts),) = again.read(["a dog a dog a dog"], [""])
    assert len(ids) == 5
    assert starts == [-1, 0, 2, 6, -1]


def test_a_second_clause_is_a_second_segment() -> None:
    tokenizer = train_wordpiece(["a dog runs on"], 50, 1)
    table = captions((0, "en", "a dog runs", "a dog, runs!"), (1, "en", "a dog runs", "a dog runs."))
    tags = TagTable.of([[(6, 10, "VERB")], []])
    (part,) = TowerCaptions(table, {"en": TowerReader(tokenizer, ("en",), 0, 9, segments=True)}, tags).read([0, 1])
    names = [[tokenizer.id_to_token(token) for token in row] for row in part.inputs["ids"].tolist()]
    assert names == [["[CLS]", "a", "dog", "[SEP]", "runs", "[SEP]"], ["[CLS]", "a", "dog", "runs", "[SEP]", "[PAD]"]]
    assert part.inputs["types"].tolist() == [[0, 0, 0, 0, 1, 1], [0] * 6]
    assert part.inputs["tags"][0].tolist() == [0, 0, 0, 0, TAGS.index("VERB") + 1, 0]
    (whole,) = TowerCaptions(table, {"en": TowerReader(tokenizer, ("en",), 0, 9)}).read([0, 1])
    assert whole.inputs["types"].sum() == 0
    assert whole.inputs["ids"][0].tolist() == whole.inputs["ids"][1].tolist()


def test_titles_are_known_by_their_tokens() -> None:
    tokenizer = train_wordpiece(["他在看《三体》"], 50, 1)
    table = captions((0, "zh", "他在看《三体》吗"))
    (part,) = TowerCaptions(table, {"zh": TowerReader(tokenizer, ("zh",), 0, 12)}).read([0])
    assert part.inputs["titles"].tolist() == [[0, 0, 0, 0, 1, 1, 1, 1, 0, 0]]


def test_the_papers_own_model_trains_on_tiny_encoders(folder: Path, tmp_path: Path) -> None:
    """experiments/bert-vit.yaml as it stands, with other checkpoints: equation 4, tags, segments, augmentation."""
    experiments = Path(__file__).parents[3] / "experiments"
    wanted = copy.deepcopy(
        yaml.safe_load((experiments / "bert-vit.yaml").read_text())["finetuned_dual_encoders"]["fine_tuned"]
    )
    letters = sorted(set("picturenumberofmany0123456789第张图片"))
    pieces = [*letters, *(f"##{letter}" for letter in letters)]
    bert = save_bert(tmp_path / "bert", pieces, num_hidden_layers=2, initializer_range=0.02)
    wanted["text"]["both"]["source"] = str(bert)
    wanted["training"]["phases"][0]["epochs"] = 2
    data = read_manifest(folder / "data" / "manifest.json")
    english = [[(0, 7, "NOUN")] if language == "en" else [] for language in data.captions["language"]]
    TagTable.of(english).write(tmp_path / "tags.npz")
    raw = data.captions["text"].str.replace(" of", ", of").tolist()
    names = data.captions["caption_id"].tolist()
    pq.write_table(pa.table({"caption_id": names, "raw": raw, "category": [""] * len(raw)}), tmp_path / "pairs.parquet")
    output = tmp_path / "finetuned"
    run_stage(
        finetune,
        settings={"finetuned": wanted},
        pixels=folder / "pixels.json",
        manifest=folder / "data" / "manifest.json",
        source=str(folder / "vit"),
        tags=tmp_path / "tags.npz",
        pairs=tmp_path / "pairs.parquet",
        finetuned=output,
    )
    with (output / "history.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2
    assert all(float(row["train_loss"]) > 0 for row in rows), "the shift keeps equation 4 positive"
    weights = load_file(output / "best.safetensors")
    types = "embeddings.token_type_embeddings.weight"
    start = load_file(tmp_path / "bert" / "model.safetensors")[types]
    assert (weights[f"text.both.encoder.{types}"] - start).abs().sum(1).gt(0).all(), (
        "English captions have two segments"
    )
    tagged = {name: tensor for name, tensor in weights.items() if "tag" in name}
    assert tagged
    for tensor in tagged.values():
        moved = tensor.abs().sum(-1).nonzero().flatten().tolist()
        assert moved == [0, TAGS.index("NOUN") + 1], "it starts at zero; nouns and words without a tag were seen"
