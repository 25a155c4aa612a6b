"""The audit of captions, measured on planted swaps, and its time and memory.

    python -m benchmarks.audit planted IMAGES TEXTS DATA   AUC, precision and estimated share of planted swaps
    python -m benchmarks.audit heads IMAGES TEXTS DATA     linear heads on clean, noisy (20 %, seed 1) and audited pairs
    python -m benchmarks.audit swap DATA SHARE SEED FILE   a table of captions, training ones exchanged
    python -m benchmarks.audit cost PAIRS...               synthetic pairs, beside an epoch of two linear heads

IMAGES and TEXTS are sealed stores, DATA is the folder of a data set. Prints a line of JSON for each measurement.
"""

import json
import resource
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from torch.nn.functional import cross_entropy, normalize

from benchmarks.inputs import measured
from vitcapr.api.retrieval_evaluation import evaluate_retrieval
from vitcapr.batches.sources import feature_dims
from vitcapr.batches.texts import FeatureTexts
from vitcapr.config.dual_encoder import RetrieverConfig
from vitcapr.extensions.alignment.pairing import pair_by_file
from vitcapr.extensions.audit.suspicion import PairedStores, measure, probability_wrong, wrong_share
from vitcapr.formats.manifest import read_manifest
from vitcapr.progress import Reporter
from vitcapr.retrieval.embedder import embed_texts, open_retriever, rows_of
from vitcapr.store.reader import open_features
from vitcapr.training.outcome import TrainingJob
from vitcapr.training.retriever import DualEncoderTrainer, architecture_of, describe_text_encoder

CAPTIONS, WIDTHS, BATCH = 5, (192, 384), 256
SHARES = 0.05, 0.1, 0.2
Integers = NDArray[np.int64]


class Reordered:
    """Rows of an array of features in another order."""

    def __init__(self, array: Any, rows: Integers) -> None:
        self.array, self.rows = array, rows

    def gather(self, places: Integers) -> Any:
        return self.array.gather(self.rows[places])


class Synthetic:
    """Rows that are made when they are read: a linear map of 16 numbers of their image, and noise."""

    def __init__(self, captions: int, width: int) -> None:
        self.captions = captions
        self.weights = np.random.default_rng(width).normal(size=(16, width)).astype(np.float32)

    def gather(self, rows: Integers) -> Any:
        draw = np.random.default_rng(rows[0])
        hidden = np.sin((rows[:, None] // self.captions + 1.0) * np.sqrt(np.arange(2, 18))).astype(np.float32)
        noise = draw.normal(size=(len(rows), self.weights.shape[1])).astype(np.float32)
        return (hidden @ self.weights + noise).astype(np.float16)


def swapped(owner: Integers, share: float, seed: int) -> Integers:
    """(M,) the caption that stands in the place of each: itself, or, for a share of them, one of another image."""
    draw, order = np.random.default_rng(seed), np.arange(len(owner))
    places = draw.choice(len(owner), round(share * len(owner)), replace=False)
    order[places] = draw.permutation(places)
    while len(same := places[owner[order[places]] == owner[places]]):
        for one, other in zip(same, draw.choice(places, len(same)), strict=True):
            order[one], order[other] = order[other], order[one]
    return order


class Training:
    """The captions of the training split and their stored vectors, in the order of the data set."""

    def __init__(self, images: str, texts: str, folder: str) -> None:
        self.data = read_manifest(folder)
        trained = np.flatnonzero(self.data.images["split"].to_numpy() == "train")
        self.captions = np.flatnonzero(np.isin(self.data.captions["image_row"], trained))
        self.owner = np.searchsorted(trained, self.data.captions["image_row"].to_numpy()[self.captions])
        self.cls, self.text = Reordered(open_features(images)["cls"], trained), open_features(texts)["text"]

    def audit(self, kept: Integers, order: Integers) -> tuple[Any, Any, Any]:
        """Of the captions ``kept`` in another order: suspicions, the estimated share, probabilities."""
        text, owner = Reordered(self.text, self.captions[kept][order]), self.owner[kept]
        suspicion, null, *_ = measure(PairedStores(self.cls, text, np.bincount(owner)))  # type: ignore[arg-type]
        estimate = wrong_share(suspicion, null, owner)
        return suspicion, estimate, probability_wrong(suspicion, null, estimate.value)


def quality(suspicion: NDArray[Any], wrong: NDArray[np.bool_]) -> dict[str, float]:
    """AUC, and precision at the number of the wrong ones."""
    auc = (rankdata(suspicion)[wrong].mean() - (wrong.sum() + 1) / 2) / (~wrong).sum()
    return {"auc": auc, "precision": wrong[np.argsort(-suspicion, kind="stable")[: wrong.sum()]].mean()}


def planted(images: str, texts: str, folder: str, *seeds: str) -> None:
    """Swaps within the training split, with all captions of an image and with its first one; seeds 1, 2 and 3."""
    training = Training(images, texts, folder)
    owner = training.owner
    chosen = np.arange(len(owner)), np.flatnonzero(np.diff(owner, prepend=-1))
    for kept, share, seed in product(chosen, SHARES, map(int, seeds or (1, 2, 3))):
        begin, order = time.process_time(), swapped(owner[kept], share, seed)
        suspicion, estimate, probability = training.audit(kept, order)
        wrong, out = order != np.arange(len(order)), probability >= 0.5
        line = {
            "captions": len(order),
            "planted": share,
            "seed": seed,
            **estimate._asdict(),
            **quality(suspicion, wrong),
        }
        line |= {"left_out": int(out.sum()), "of_them_wrong": wrong[out].mean() if out.any() else None}
        print(json.dumps({**line, "cpu_seconds": time.process_time() - begin}, default=float), flush=True)


def heads(images: str, texts: str, folder: str, share: str = "0.2", seed: str = "1") -> None:
    """R@1 of linear heads of five epochs, seeds 0 to 2; and how well a head on noisy pairs finds the wrong ones."""
    training = Training(images, texts, folder)
    data, captions, owner = training.data, training.captions, training.owner
    order = swapped(owner, float(share), int(seed))
    wrong, caption = order != np.arange(len(order)), np.arange(len(data.captions))
    suspicion, _, probability = training.audit(np.arange(len(order)), order)
    print(json.dumps({"by": "audit", **quality(suspicion, wrong)}, default=float), flush=True)
    rows = data.captions["image_row"].to_numpy()
    table = data.images.loc[rows, ["image_id", "split"]].reset_index(drop=True)
    exchanged = caption.copy()
    exchanged[captions] = captions[order]
    known = (table["split"] != "none").to_numpy()
    believed = known & ~np.isin(caption, captions[probability >= 0.5])
    tables = {"clean": (caption, known), "noisy": (exchanged, known), "audited": (exchanged, believed)}

    def train(name: str, epochs: int, seed: int) -> Path:
        out = Path(scratch) / f"{name}-{epochs}-{seed}"
        caption, kept = tables[name]
        ids = data.captions["caption_id"].to_numpy()[caption]
        table.assign(caption_id=ids)[kept].to_csv(out.with_suffix(".csv"), index=False)
        scores = linear_head(images, texts, out, epochs, seed)
        recalls = scores.set_index("metric")["value"].filter(regex="recall_1$")
        print(json.dumps({"pairs": name, "epochs": epochs, "seed": seed, **recalls}), flush=True)
        return out

    with tempfile.TemporaryDirectory() as scratch:
        for training_seed, name in product(range(3), tables):
            train(name, 5, training_seed)
        for epochs in (1, 5):
            retriever = open_retriever(train("noisy", epochs, 0), vocabulary=None, device=torch.device("cpu"))
            x = retriever.image_embedder(open_features(images)).embed(np.unique(rows[captions]))
            text_embedder = embed_texts(retriever.model, rows_of(open_features(texts)["text"]), retriever.device)
            y = text_embedder.embed(captions[order])
            for by, doubt in (("cosine", -(x[owner] * y).sum(1)), ("loss", losses(x, y, owner))):
                line = {"by": by, "epochs": epochs, **quality(doubt, wrong)}
                print(json.dumps(line, default=float), flush=True)


def linear_head(images: str, texts: str, out: Path, epochs: int, seed: int) -> pd.DataFrame:
    """Train a linear head on the pairs of ``out.csv``; the scores of its test images."""
    store, sentences = open_features(images), open_features(texts)
    pairing = pair_by_file(out.with_suffix(".csv"), store.ids, sentences.ids, seed)
    side = {"head": "linear", "dropout": 0.1, "standardise": True}
    phase = {"epochs": epochs, "batch_images": 128, "learning_rate": 1e-3, "schedule": "cosine"}
    values = {
        "backbone": "images",
        "image": {"pool": "cls", **side},
        "text": {"kind": "features", "encoder": "texts", **side},
        "training": {"phases": [phase], "precision": "float32"},
    }
    retriever, device = RetrieverConfig.model_validate(values), torch.device("cpu")
    card = {
        "backbone": "images",
        "code": "",
        "inputs": {"features": store.fingerprint, "text_features": sentences.fingerprint},
        "settings": {"retriever": retriever.canonical(), "seed": seed},
        "text_encoder": describe_text_encoder(sentences),
    }
    text_width = sentences["text"].shape[-1]
    with Reporter() as reporter:
        DualEncoderTrainer(
            TrainingJob(out, card, seed, device, reporter),
            retriever.training,
            [store],
            FeatureTexts(sentences["text"], pairing.caption_row, pairing.image_row),
            train=pairing.splits["train"],
            validation=pairing.splits["validation"],
        ).fit_retriever(retriever, architecture_of(retriever, feature_dims(store, ["cls"]), text_dim=text_width))
    opened, rows = open_retriever(out, vocabulary=None, device=device), pairing.splits["test"]
    held_out = np.isin(pairing.image_row, rows)
    text_embedder = embed_texts(opened.model, rows_of(sentences["text"]), device)
    return evaluate_retrieval(
        opened.image_embedder(store).embed(rows),
        text_embedder.embed(pairing.caption_row[held_out]),
        image_of_text=np.searchsorted(rows, pairing.image_row[held_out]),
    ).scores


def losses(x: NDArray[Any], y: NDArray[Any], owner: Integers) -> NDArray[Any]:
    """(M,) the InfoNCE of each caption in both directions, in random batches of 500 captions and their images."""
    loss = np.empty(len(owner))
    for batch in np.array_split(np.random.default_rng(0).permutation(len(owner)), max(1, len(owner) // 500)):
        scores = torch.from_numpy(x[owner[batch]] @ y[batch].T / 0.07)
        target = torch.arange(len(batch))
        loss[batch] = sum(cross_entropy(each, target, reduction="none") for each in (scores, scores.T)).numpy()
    return loss


def swap(folder: str, share: str, seed: str, file: str) -> None:
    """Write a table for ``data.table`` with the splits of the data set."""
    data = read_manifest(folder)
    rows, text = data.captions["image_row"].to_numpy(), data.captions["text"].to_numpy()
    path, split = (data.images[name].to_numpy()[rows] for name in ("path", "split"))
    trained = split == "train"
    text[trained] = text[trained][swapped(rows[trained], float(share), int(seed))]
    pd.DataFrame({"image": path, "caption": text, "split": split}).to_csv(file, index=False)


def cost(*sizes: str) -> None:
    """Each measurement in a process of its own, for the memory."""
    for pairs, what in product(sizes, ("audit", "epoch")):
        print(json.dumps(measured("benchmarks.audit", what, pairs)), flush=True)


def audit(stores: PairedStores) -> None:
    pairs, null, *_ = measure(stores)
    share = wrong_share(pairs, null, np.repeat(np.arange(len(stores.counts)), CAPTIONS))
    probability_wrong(pairs, null, share.value)


def epoch(stores: PairedStores) -> None:
    """Linear heads, 256 wide, with InfoNCE over the images of a batch and all their captions."""
    heads = torch.nn.ModuleList(torch.nn.Linear(width, 256) for width in WIDTHS)
    optimizer = torch.optim.Adam(heads.parameters(), 1e-3)
    order = np.random.default_rng(0).permutation(len(stores.counts))
    for batch in np.array_split(order, max(1, len(order) // BATCH)):
        images, texts, counts = stores.read(np.sort(batch))
        sides = images[np.cumsum(counts) - counts], texts
        x, y = (normalize(head(torch.from_numpy(rows).float())) for head, rows in zip(heads, sides, strict=True))
        loss = cross_entropy(y @ x.T / 0.07, torch.from_numpy(np.repeat(np.arange(len(batch)), counts)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def measure_synthetic(name: str, pairs: str) -> None:
    images = int(pairs) // CAPTIONS
    features = Synthetic(1, WIDTHS[0]), Synthetic(CAPTIONS, WIDTHS[1])
    begin = time.process_time()
    stores = PairedStores(*features, np.full(images, CAPTIONS))  # type: ignore[arg-type]
    if name == "audit":
        audit(stores)
    else:
        epoch(stores)
    seconds, memory = time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"what": name, "pairs": int(pairs), "cpu_seconds": round(seconds, 1), "gib": round(memory, 2)}))


if __name__ == "__main__":
    command, *arguments = sys.argv[1:] or ["help"]
    if command in ("audit", "epoch"):
        measure_synthetic(command, *arguments)
    elif command in ("planted", "heads", "swap", "cost"):
        {"planted": planted, "heads": heads, "swap": swap, "cost": cost}[command](*arguments)
    else:
        print(__doc__)
