"""Other programs at the same task on the same numbers, in one run: ``make bench-peers``.

- CLIP_benchmark's ``zeroshot_retrieval.evaluate`` against our ranks: recalls of 1, 5 and 10 in both directions; the
  recalls must be equal.
- A WebDataset of the same features against our store: batches of 64 images in random order. WebDataset draws from a
  buffer of 1,000 images that follow one another; a store draws from all.
- clip-retrieval's reader and mapper against our extraction: JPEG files to the vectors of one CLIP ViT-B/32 with random
  weights; the vectors must agree. Ours also writes a sealed store. clip-retrieval asks for numpy below 2 and pyarrow
  below 16, and its loader of models in transformers' format does not know transformers 5. So its two modules are taken
  from the package and get the model from here.
- The method of ImageCaptioning.pytorch's beam search, in our words, against ours: one captioner, captions of at most 20
  words, 5 hypotheses.

All have one thread. Prints JSON with the versions: processor seconds of the best turn.

    pip install --no-deps --target .peers \\
      clip-benchmark==1.6.2 webdataset==1.0.2 braceexpand==0.1.7 clip-retrieval==2.45.0
    PYTHONPATH=.peers python -m benchmarks.peers
"""

import argparse
import hashlib
import json
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import webdataset
from clip_benchmark.metrics import zeroshot_retrieval
from PIL import Image
from torch import Tensor
from transformers import CLIPConfig, CLIPModel, CLIPVisionConfig
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

from benchmarks.decoding import BATCH, END, PAD, PATCHES, START, UNKNOWN, WIDTH, captioner, kept_aside_beam
from benchmarks.extraction import whole_extraction
from benchmarks.loader import make
from benchmarks.retrieval import embeddings
from vitcapr.data.photographs import open_image
from vitcapr.decoding.beam import beam_search
from vitcapr.encoders.image_encoders import load_image_encoder
from vitcapr.encoders.preprocess import read_preprocessing
from vitcapr.formats.manifest import Manifest, read_manifest, write_manifest
from vitcapr.metrics.ranks import CaptionOwners, rank_matches
from vitcapr.metrics.retrieval_measures import recall
from vitcapr.store.reader import FeatureArray

BUFFER = 1000


def processor_seconds(call: Callable[[], Any], turns: int) -> float:
    """Of the best turn, after one that warms up."""
    seconds = []
    for _ in range(turns + 1):
        begin = time.process_time()
        call()
        seconds.append(time.process_time() - begin)
    return round(min(seconds[1:]), 3)


class Embedded:
    """What CLIP_benchmark takes for a model: the images are their embeddings, the words are numbers of captions."""

    def __init__(self, captions: Tensor) -> None:
        self._captions = captions

    def encode_image(self, images: Tensor) -> Tensor:
        return images

    def encode_text(self, numbers: Tensor) -> Tensor:
        return self._captions[numbers]


def retrieval(images: int, captions_each: int, turns: int) -> dict[str, Any]:
    left, right, owner = embeddings(images, captions_each, noise=0.3)
    numbers = torch.arange(len(right)).view(images, captions_each)
    batches = [
        (torch.from_numpy(left[at : at + BATCH]), numbers[at : at + BATCH].tolist()) for at in range(0, images, BATCH)
    ]
    model, cutoffs = Embedded(torch.from_numpy(right)), [1, 5, 10]

    def theirs() -> dict[str, float]:
        return dict(zeroshot_retrieval.evaluate(model, batches, torch.tensor, "cpu", False, cutoffs))

    def ours() -> dict[str, float]:
        measures = recall(rank_matches(left, right, owner), CaptionOwners.of(owner, images))
        return {name: float(measure.value) for name, measure in measures.items()}

    found, expected = ours(), theirs()
    for cutoff in cutoffs:
        for ways, name in (("i2t", "text"), ("t2i", "image")):
            value = expected[f"{name}_retrieval_recall@{cutoff}"]
            assert abs(found[f"{ways}_recall_{cutoff}"] - value) < 1e-6, (ways, cutoff)
    return {
        "images": images,
        "captions": len(right),
        "clip_benchmark": processor_seconds(theirs, turns),
        "vitcapr": processor_seconds(ours, turns),
    }


def written(folder: Path, array: np.ndarray) -> str:
    """The rows as a WebDataset of 1,000 images a shard. Returns its URL."""
    with webdataset.ShardWriter(str(folder / "%06d.tar"), maxcount=1000, verbose=0) as shards:
        for number, row in enumerate(array):
            shards.write({"__key__": f"{number:08d}", "npy": row})
    return str(folder / f"{{000000..{(len(array) - 1) // 1000:06d}}}.tar")


def loading(images: int, patches: int, width: int, turns: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        store, plain = make(Path(folder), (images, patches, width), 64)
        shards = Path(folder) / "shards"
        shards.mkdir()
        url = written(shards, plain)
        theirs = webdataset.WebDataset(url, shardshuffle=False).shuffle(BUFFER).decode().to_tuple("npy").batched(BATCH)
        result = {
            "images": images,
            "bytes_an_image": store.row_bytes,
            "webdataset": processor_seconds(lambda: sum(len(batch) for (batch,) in theirs), turns),
            "vitcapr": processor_seconds(lambda: sum(len(batch) for batch in random_batches(store)), turns),
        }
        store.close()
    return result


def random_batches(store: FeatureArray) -> Iterator[np.ndarray]:
    order = np.random.default_rng(0).permutation(len(store))
    return (store.gather(order[at : at + BATCH]) for at in range(0, len(store), BATCH))


def clip_retrieval(name: str) -> Any:
    """A module of clip-retrieval alone: the package imports a server, an index and loaders of models."""
    folder = Path(str(distribution("clip_retrieval").locate_file("clip_retrieval")))
    for package, path in (("clip_retrieval", folder), ("clip_retrieval.clip_inference", folder / "clip_inference")):
        sys.modules.setdefault(package, types.ModuleType(package)).__path__ = [str(path)]
    for unused, contents in (("all_clip", "load_clip"), ("sentence_transformers", "SentenceTransformer")):
        setattr(sys.modules.setdefault(unused, types.ModuleType(unused)), contents, None)
    return import_module(f"clip_retrieval.clip_inference.{name}")


def photographs(folder: Path, images: int) -> Manifest:
    """JPEG files of the size of Flickr's, smooth noise, and a data set of them."""
    draw = np.random.default_rng(0)
    pictures = folder / "pictures"
    pictures.mkdir()
    rows = []
    for number in range(images):
        coarse = Image.fromarray(draw.integers(0, 256, (38, 50, 3), dtype=np.uint8))
        path = pictures / f"{number:04d}.jpg"
        coarse.resize((500, 375), Image.Resampling.BICUBIC).save(path, quality=90)
        rows.append((path.stem, path.name, "train", 500, 375, hashlib.sha256(path.read_bytes()).hexdigest()))
    table = pd.DataFrame(rows, columns=["image_id", "path", "split", "width", "height", "sha256"])
    captions = pd.DataFrame({"caption_id": table["image_id"], "image_row": table.index, "language": "en"})
    captions = captions.assign(text="noise")
    written = write_manifest(folder, dataset="noise", image_root=pictures, images=table, captions=captions, rejected=[])
    return read_manifest(written)


def extracting(images: int, turns: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        data, checkpoint = photographs(Path(folder), images), Path(folder) / "clip"
        torch.manual_seed(0)
        vision = CLIPVisionConfig(
            hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, projection_dim=512
        )
        clip = CLIPModel(CLIPConfig(vision_config=vision.to_dict(), projection_dim=512)).eval()
        processor = CLIPImageProcessorPil()
        clip.save_pretrained(checkpoint)
        processor.save_pretrained(checkpoint)

        mapper_of = clip_retrieval("mapper").ClipMapper
        mapper = mapper_of.__new__(mapper_of)  # Its constructor loads a model by name.
        mapper.enable_image, mapper.enable_text, mapper.enable_metadata = True, False, False
        mapper.device, mapper.use_mclip = "cpu", False
        mapper.model_img = lambda pixels: clip.get_image_features(pixels).pooler_output

        def theirs() -> np.ndarray:
            reader = clip_retrieval("reader").FilesReader(
                lambda keys: keys,
                lambda picture: processor(picture, return_tensors="pt").pixel_values[0],
                None,
                str(data.image_root),
                batch_size=32,
                num_prepro_workers=0,
                enable_text=False,
            )
            return np.concatenate([mapper(batch)["image_embs"] for batch in reader])

        preprocessing, _ = read_preprocessing(checkpoint, (224, 224))
        settings = {"size": preprocessing.size, "dtype": torch.float32, "device": torch.device("cpu")}
        backbone = load_image_encoder(checkpoint, output="aligned", **settings)

        def ours() -> float:
            return whole_extraction(data, backbone, preprocessing, images, 32, 64)

        pictures = [open_image(data.image_root / path) for path in data.images["path"][:32]]
        pixels = torch.from_numpy(np.stack([preprocessing.prepared(picture) for picture in pictures]))
        found = backbone.features(preprocessing.normalise(pixels, torch.float32))["cls"]
        apart = torch.cdist(torch.nn.functional.normalize(found), torch.from_numpy(theirs()[:32]).float())
        others = apart + torch.diag(torch.full((len(apart),), torch.inf))
        assert (apart.diagonal() < others.amin(1) / 10).all(), "the vectors of a picture differ"
        return {
            "images": images,
            "clip_retrieval": processor_seconds(theirs, turns),
            "vitcapr": processor_seconds(ours, turns),
        }


@torch.inference_mode()
def beams(images: int, turns: int) -> dict[str, Any]:
    model = captioner()
    parts = torch.randn(images, PATCHES, WIDTH, generator=torch.Generator().manual_seed(1)).split(BATCH)
    common: dict[str, Any] = {"start": START, "end": END, "pad": PAD, "forbidden": [UNKNOWN], "max_length": 20}

    def theirs() -> list[list[int]]:
        return [caption for part in parts for caption in kept_aside_beam(model, part, 20, 5)]

    def ours() -> list[list[int]]:
        found = (beam_search(model, model.encode({"patches": part}), **common, beam_size=5) for part in parts)
        return [list(hypotheses[0].tokens) for each in found for hypotheses in each]

    same = sum(one == other for one, other in zip(theirs(), ours(), strict=True))
    assert same > 0.95 * images, "the two searches write other captions"
    return {
        "images": images,
        "same_captions": same,
        "method_of_imagecaptioning_pytorch": processor_seconds(theirs, turns),
        "vitcapr": processor_seconds(ours, turns),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    turns = parser.parse_args().turns
    torch.set_num_threads(1)
    report = {
        "versions": {
            name: version(name) for name in ("clip_benchmark", "clip_retrieval", "webdataset", "torch", "numpy")
        },
        "recalls": retrieval(1000, 5, turns),
        "random_batches": loading(2048, 196, 192, turns),
        "extraction": extracting(64, turns),
        "beam_5": beams(256, turns),
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
