"""What the papers' experiment files read: data sets in their own formats and random checkpoints under their own names.

A checkpoint has the architecture, the picture size and the patches of the real one, and a few dimensions and layers.
"""

import base64
import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image
from transformers import ResNetConfig, ResNetModel
from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil

from tests.checkpoints import save_bert, save_checkpoint, tiny_vit
from tests.data_sets import coco_captions, encoded
from tests.encoders.two_towers import WORDS as T5_WORDS
from tests.encoders.two_towers import blip2_t5
from tests.end_to_end import inputs

PROCESSOR = inputs.PROCESSOR | {"size": {"height": 224, "width": 224}}
EACH = 5
"""Captions of an image."""
ENGLISH = ("little", "arms", "people", "street", "dog", "boy", "girl", "runs", "sits", "red", "blue", "water", "grass")
CHINESE = ("一个男孩在街上奔跑", "两只狗在草地上", "女孩坐在水边", "人们走过红色的街道", "小狗跳进蓝色的水里")


class Source:
    """Random pictures and captions, the same for the same seed."""

    def __init__(self) -> None:
        self._draw = np.random.default_rng(0)

    def jpeg(self) -> bytes:
        return encoded(Image.fromarray(self._draw.integers(0, 256, (30, 36, 3), dtype=np.uint8)), "JPEG")

    def caption(self, words: tuple[str, ...] = ENGLISH) -> str:
        return " ".join(self._draw.choice(words, 6)) + " ."


def write_vit(backbones: Path) -> None:
    vit = tiny_vit(**inputs.SHAPE, image_size=224, patch_size=16, initializer_range=0.02)
    save_checkpoint(vit, backbones / "google" / "vit-base-patch16-224-in21k", PROCESSOR)


def write_vectors(path: Path, dimension: int) -> None:
    draw = np.random.default_rng(1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(f"{word} {' '.join(f'{x:.3f}' for x in draw.normal(size=dimension))}\n" for word in ENGLISH)
    )


def flickr8k(data: Path, backbones: Path) -> None:
    """36 photographs in the official text files."""
    source, splits = Source(), {"train": 24, "dev": 6, "test": 6}
    images, text = data / "flickr8k" / "Flicker8k_Dataset", data / "flickr8k" / "Flickr8k_text"
    images.mkdir(parents=True)
    text.mkdir()
    names = [f"{1000 + number}_photo.jpg" for number in range(sum(splits.values()))]
    for name in names:
        (images / name).write_bytes(source.jpeg())
    lines = [f"{name}#{number}\t{source.caption()}\n" for name in names for number in range(EACH)]
    (text / "Flickr8k.token.txt").write_text("".join(lines))
    left = iter(names)
    for split, count in splits.items():
        (text / f"Flickr_8k.{split}Images.txt").write_text("".join(f"{next(left)}\n" for _ in range(count)))
    write_vectors(data / "glove" / "glove.6B.50d.txt", 50)
    write_vit(backbones)


def coco(data: Path, backbones: Path) -> None:
    """24 photographs of train2014 and 8 of val2014."""
    source = Source()
    for split, first, count in (("train2014", 1, 24), ("val2014", 100, 8)):
        folder = data / "coco" / split
        folder.mkdir(parents=True)
        images = {number: f"COCO_{split}_{number:012d}.jpg" for number in range(first, first + count)}
        for name in images.values():
            (folder / name).write_bytes(source.jpeg())
        captions = {image: [source.caption() for _ in range(EACH)] for image in images}
        path = data / "coco" / "annotations" / f"captions_{split}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(coco_captions(images, captions)))
    write_vit(backbones)


def flickr30k(data: Path, backbones: Path) -> None:
    """The columns of lmms-lab/flickr30k, the list of the official splits, and a BLIP-2 with a T5."""
    source, splits = Source(), {"train": 40, "val": 12, "test": 12}
    names = [f"{1000 + number}.jpg" for number in range(sum(splits.values()))]
    captions = [[source.caption(tuple(T5_WORDS[:-1])) for _ in range(EACH)] for _ in names]
    row = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = {
        "image": pa.array([{"bytes": source.jpeg(), "path": name} for name in names], row),
        "caption": captions,
        "sentids": [[str(EACH * image + number) for number in range(EACH)] for image in range(len(names))],
        "img_id": [str(image) for image in range(len(names))],
        "filename": names,
    }
    folder = data / "flickr30k"
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "test-00000-of-00009.parquet")
    split_names = [split for split, count in splits.items() for _ in range(count)]
    images = [
        {"filename": name, "split": split, "sentences": [{"raw": text, "sentid": 0} for text in texts]}
        for name, split, texts in zip(names, split_names, captions, strict=True)
    ]
    (folder / "dataset_flickr30k.json").write_text(json.dumps({"images": images, "dataset": "flickr30k"}))
    blip2_t5(backbones / "Salesforce" / "blip2-flan-t5-xl")


def pairs(data: Path, backbones: Path) -> None:
    """36 pictures in Base64, each with an English and a Chinese text, a ResNet, a ViT and a BERT of both languages."""
    source = Source()
    path = data / "pairs" / "pairs.tsv"
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream, delimiter="\t")
        table.writerow(["image", "text"])
        for number in range(36):
            picture = base64.b64encode(source.jpeg()).decode()
            table.writerows([picture, text] for text in (source.caption(), CHINESE[number % len(CHINESE)]))
    write_vectors(data / "glove" / "glove.6B.300d.txt", 300)
    write_vit(backbones)
    torch.manual_seed(0)
    resnet = backbones / "microsoft" / "resnet-50"
    ResNetModel(ResNetConfig(hidden_sizes=[8, 16], depths=[1, 1], embedding_size=8)).save_pretrained(resnet)
    ConvNextImageProcessorPil(size={"shortest_edge": 224}).save_pretrained(resnet)
    bert = backbones / "google-bert" / "bert-base-multilingual-cased"
    save_bert(bert, [".", *ENGLISH, *sorted(set("".join(CHINESE)))], **inputs.SHAPE, max_position_embeddings=64)
