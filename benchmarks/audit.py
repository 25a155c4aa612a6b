"""The audit of captions, measured: planted swaps, and seconds and memory.

python -m benchmarks.audit planted IMAGES TEXTS --data DATA   AUC, precision and estimated share of planted swaps
python -m benchmarks.audit swap --data DATA -o captions.csv   a table of captions with a share of them exchanged
python -m benchmarks.audit cost 100000 1000000                synthetic pairs beside an epoch of a linear head
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from vitcapr.formats.manifest import Manifest, read_manifest
from vitcapr.store.reader import open_features
from vitcapr.studies.audit.share import probability_wrong, wrong_share
from vitcapr.studies.audit.suspicion import PairedStores, measure

RIVALS = 2000
WIDTHS = 192, 384
BATCH = 256


class Rows:
    """Some rows of an array of features, each of which has a place of its own."""

    def __init__(self, array: Any, rows: NDArray[np.int64]) -> None:
        self.array, self.rows = array, rows

    def gather(self, places: NDArray[np.int64]) -> Any:
        return self.array[self.rows[places]]


class Synthetic:
    """Rows that are made when they are read: a linear map of 16 numbers of their image, and noise."""

    def __init__(self, rows: int, an_image: int, width: int) -> None:
        self.rows, self.an_image = rows, an_image
        self.weights = np.random.default_rng(width).normal(size=(16, width)).astype(np.float32)

    def __len__(self) -> int:
        return self.rows

    def gather(self, rows: NDArray[np.int64]) -> Any:
        hidden = np.sin((rows[:, None] // self.an_image + 1.0) * np.sqrt(np.arange(2, 18))).astype(np.float32)
        noise = np.random.default_rng(rows[0]).normal(size=(len(rows), self.weights.shape[1])).astype(np.float32)
        return (hidden @ self.weights + noise).astype(np.float16)


def swap(owner: NDArray[np.int64], share: float, seed: int) -> NDArray[np.int64]:
    """(M,) for each caption, the caption that stands in its place: itself, or, for a share of them, one of another
    image."""
    draw = np.random.default_rng(seed)
    order = np.arange(len(owner))
    places = draw.choice(len(owner), round(share * len(owner)), replace=False)
    order[places] = draw.permutation(places)
    while len(same := places[owner[order[places]] == owner[places]]):
        others = draw.choice(places, len(same))
        for one, other in zip(same, others, strict=True):
            order[one], order[other] = order[other], order[one]
    return order


def train_rows(data: Manifest) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of the images and of the captions of the training split."""
    images = np.flatnonzero(data.images["split"].to_numpy() == "train")
    return images, np.flatnonzero(np.isin(data.captions["image_row"], images))


def planted(arguments: argparse.Namespace) -> None:
    data = read_manifest(arguments.data)
    images, captions = train_rows(data)
    cls, text = open_features(arguments.images)["cls"], open_features(arguments.texts)["text"]
    vectors, texts = cls.gather(images), text.gather(captions)
    owner = np.searchsorted(images, data.captions["image_row"].to_numpy()[captions])
    for one in (False, True):
        kept = np.flatnonzero(np.diff(owner, prepend=-1)) if one else np.arange(len(owner))
        for share in arguments.shares:
            for seed in arguments.seeds:
                order = swap(owner[kept], share, seed)
                wrong, every = order != np.arange(len(order)), np.arange(len(order))
                begin = time.process_time()
                stores = PairedStores(
                    Rows(vectors, np.arange(len(vectors))),  # type: ignore[arg-type]
                    Rows(texts, kept[order]),  # type: ignore[arg-type]
                    np.bincount(owner[kept]),
                )
                found = measure(stores, RIVALS)
                seconds = time.process_time() - begin
                estimate = wrong_share(found.pairs, found.null, owner[kept])
                out = probability_wrong(found.pairs, found.null, estimate.value) >= 0.5
                worst = np.argsort(-found.pairs, kind="stable")[: wrong.sum()]
                auc = (rankdata(found.pairs)[wrong].mean() - (wrong.sum() + 1) / 2) / (~wrong).sum()
                row = {"captions": len(every), "planted": share, "seed": seed, "auc": auc}
                row |= {"precision": wrong[worst].mean(), **estimate._asdict(), "left_out": int(out.sum())}
                print(json.dumps(row | {"wrong": wrong[out].mean(), "cpu_seconds": seconds}, default=float))


def write_swapped(arguments: argparse.Namespace) -> None:
    data = read_manifest(arguments.data)
    table, images = data.captions, data.images
    _, captions = train_rows(data)
    text = table["text"].to_numpy().copy()
    order = swap(table["image_row"].to_numpy()[captions], arguments.share, arguments.seed)
    text[captions] = text[captions][order]
    rows = table["image_row"].to_numpy()
    columns = {"image": images["path"].to_numpy()[rows], "caption": text, "split": images["split"].to_numpy()[rows]}
    pd.DataFrame(columns).to_csv(arguments.output, index=False)


def cost(arguments: argparse.Namespace) -> None:
    for pairs in arguments.pairs:
        for what in ("audit", "epoch"):
            command = [sys.executable, "-m", "benchmarks.audit", what, str(pairs)]
            print(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout, end="")


def synthetic(pairs: int) -> PairedStores:
    images = pairs // 5
    stores = Synthetic(images, 1, WIDTHS[0]), Synthetic(5 * images, 5, WIDTHS[1])
    return PairedStores(*stores, np.full(images, 5))  # type: ignore[arg-type]


def report(what: str, pairs: int, begin: float) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"what": what, "pairs": pairs, "cpu_seconds": time.process_time() - begin, "gib": memory}))


def audit(arguments: argparse.Namespace) -> None:
    begin = time.process_time()
    stores = synthetic(arguments.pairs)
    found = measure(stores, RIVALS)
    estimate = wrong_share(found.pairs, found.null, np.repeat(np.arange(len(stores.counts)), 5))
    probability_wrong(found.pairs, found.null, estimate.value)
    report("audit", arguments.pairs, begin)


def epoch(arguments: argparse.Namespace) -> None:
    """One epoch of two linear heads, 256 wide, with all captions of the images of a batch."""
    import torch

    begin = time.process_time()
    stores = synthetic(arguments.pairs)
    heads = [torch.nn.Linear(width, 256) for width in WIDTHS]
    optimizer = torch.optim.Adam([each for head in heads for each in head.parameters()], 1e-3)
    order = np.random.default_rng(0).permutation(len(stores.counts))
    for batch in np.array_split(order, max(1, len(order) // BATCH)):
        images, texts, counts = stores.read(np.sort(batch))
        x = torch.nn.functional.normalize(heads[0](torch.from_numpy(images).float()))
        y = torch.nn.functional.normalize(heads[1](torch.from_numpy(texts).float()))
        logits, owner = y @ x.T / 0.07, torch.from_numpy(np.repeat(np.arange(len(batch)), counts))
        loss = torch.nn.functional.cross_entropy(logits, owner)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    report("epoch", arguments.pairs, begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("planted")
    one.set_defaults(run=planted)
    one.add_argument("images", type=Path)
    one.add_argument("texts", type=Path)
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--shares", type=float, nargs="+", default=[0.05, 0.1, 0.2])
    one.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    one = commands.add_parser("swap")
    one.set_defaults(run=write_swapped)
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--share", type=float, default=0.2)
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--output", "-o", type=Path, required=True)
    one = commands.add_parser("cost")
    one.set_defaults(run=cost)
    one.add_argument("pairs", type=int, nargs="+")
    for name, run in (("audit", audit), ("epoch", epoch)):
        one = commands.add_parser(name)
        one.set_defaults(run=run)
        one.add_argument("pairs", type=int)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
