"""The audit of captions, measured on planted swaps, and its time and memory.

    python -m benchmarks.audit planted IMAGES TEXTS DATA   AUC, precision and estimated share of planted swaps
    python -m benchmarks.audit swap DATA SHARE SEED FILE   a table of captions, training ones exchanged
    python -m benchmarks.audit cost PAIRS...               synthetic pairs, beside an epoch of two linear heads

IMAGES and TEXTS are sealed stores, DATA is the folder of a data set. Prints a line of JSON for each measurement.
"""

import json
import resource
import sys
import time
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from torch.nn.functional import cross_entropy, normalize

from benchmarks.inputs import measured
from vitcapr.formats.manifest import read_manifest
from vitcapr.store.reader import open_features
from vitcapr.studies.audit.share import probability_wrong, wrong_share
from vitcapr.studies.audit.suspicion import PairedStores, measure

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


def planted(images: str, texts: str, folder: str, *seeds: str) -> None:
    """Swaps within the training split, with all captions of an image and with its first one; seeds 1, 2 and 3."""
    data = read_manifest(folder)
    trained = np.flatnonzero(data.images["split"].to_numpy() == "train")
    captions = np.flatnonzero(np.isin(data.captions["image_row"], trained))
    owner = np.searchsorted(trained, data.captions["image_row"].to_numpy()[captions])
    cls, text = Reordered(open_features(images)["cls"], trained), open_features(texts)["text"]
    chosen = np.arange(len(owner)), np.flatnonzero(np.diff(owner, prepend=-1))
    for kept, share, seed in product(chosen, SHARES, map(int, seeds or (1, 2, 3))):
        begin, order = time.process_time(), swapped(owner[kept], share, seed)
        wrong, counts = order != np.arange(len(order)), np.bincount(owner[kept])
        pairs, null, *_ = measure(PairedStores(cls, Reordered(text, captions[kept][order]), counts))  # type: ignore[arg-type]
        estimate = wrong_share(pairs, null, owner[kept])
        out = probability_wrong(pairs, null, estimate.value) >= 0.5
        line = {"captions": len(order), "planted": share, "seed": seed, **estimate._asdict()}
        line["auc"] = (rankdata(pairs)[wrong].mean() - (wrong.sum() + 1) / 2) / (~wrong).sum()
        line["precision"] = wrong[np.argsort(-pairs, kind="stable")[: wrong.sum()]].mean()
        line |= {"left_out": int(out.sum()), "of_them_wrong": wrong[out].mean() if out.any() else None}
        print(json.dumps({**line, "cpu_seconds": time.process_time() - begin}, default=float), flush=True)


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
    elif command in ("planted", "swap", "cost"):
        {"planted": planted, "swap": swap, "cost": cost}[command](*arguments)
    else:
        print(__doc__)
