"""How often the content check is right: 200 right inputs of many kinds, and 200 planted faults at 200 rows.

    python -m benchmarks.joints FLICKR8K VIT DINO

FLICKR8K is the folder with Flicker8k_Dataset and Flickr8k_text, VIT and DINO are checkpoints of transformers. Writes
the table "content check" of benchmarks/results.json.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from transformers import AutoConfig, AutoModel

from benchmarks import results
from vitcapr import joints

POOL, ROWS, TRIALS, FEW = 300, 200, 200, 40
LAYERS = (3, 6, 9, 12)
Array = np.ndarray
_RNG = np.random.default_rng(0)


def pictures(folder: Path) -> tuple[list[str], list[Image.Image], list[str]]:
    """Names, photographs and captions of the pool; every fourth is of one class: its captions name a dog."""
    captions: dict[str, list[str]] = defaultdict(list)
    for line in (folder / "Flickr8k_text/Flickr8k.token.txt").read_text(encoding="utf-8").splitlines():
        name, text = line.split("\t")
        captions[name.split("#")[0]].append(text)
    names = sorted(path.name for path in (folder / "Flicker8k_Dataset").glob("*.jpg") if captions[path.name])
    dogs = [name for name in names if all(" dog" in text for text in captions[name])]
    chosen = sorted([*_RNG.choice(names, POOL // 2, replace=False), *_RNG.choice(dogs, POOL // 2, replace=False)])
    opened = [Image.open(folder / "Flicker8k_Dataset" / name).convert("RGB") for name in chosen]
    return chosen, opened, [" ".join(captions[name]) for name in chosen]


def text_picture(text: str) -> Image.Image:
    """Black words on white, and nothing else."""
    page = Image.new("RGB", (400, 300), "white")
    words = text.split()
    for line in range(0, min(len(words), 60), 6):
        ImageDraw.Draw(page).text((20, 20 + 4 * line), " ".join(words[line : line + 6]), fill="black")
    return page


@torch.inference_mode()
def features(model: Any, images: list[Image.Image]) -> dict[str, Array]:
    """CLS, mean patch and, of the first images, patches of some layers."""
    parts: dict[str, list[Array]] = defaultdict(list)
    for first in range(0, len(images), 16):
        small = [image.resize((224, 224), Image.Resampling.BICUBIC) for image in images[first : first + 16]]
        pixels = torch.from_numpy(np.stack([np.asarray(image) for image in small])).permute(0, 3, 1, 2) / 127.5 - 1
        hidden = model(pixel_values=pixels, output_hidden_states=True).hidden_states
        for layer in LAYERS:
            parts[f"cls {layer}"].append(hidden[layer][:, 0].numpy())
            parts[f"mean {layer}"].append(hidden[layer][:, 1:].mean(1).numpy())
            if first < 64:
                parts[f"patches {layer}"].append(hidden[layer][:, 1:].numpy())
    return {name: np.concatenate(values) for name, values in parts.items()}


def kinds(folder: Path, vit: str, dino: str) -> Iterator[tuple[str, Array, dict[str, Array], list[str] | None]]:
    """Thumbnails, features and captions of every kind of input."""
    _, images, captions = pictures(folder)
    trained, other = AutoModel.from_pretrained(vit), AutoModel.from_pretrained(dino)
    torch.manual_seed(0)
    untrained = AutoModel.from_config(AutoConfig.from_pretrained(vit)).eval()
    grey = [image.convert("L").convert("RGB") for image in images]
    near = [turned for image in images[: POOL // 2] for turned in (image, image.rotate(2))]
    rendered = [text_picture(text) for text in captions]
    for name, model, drawn, texts in (
        ("ViT-Ti/16", trained, images, captions),
        ("DINOv2 small", other, images, captions),
        ("random weights", untrained, images, captions),
        ("grey photographs", trained, grey, captions),
        ("pictures of text", trained, rendered, None),
        ("near-duplicates", trained, near, None),
    ):
        size = (joints.THUMBNAIL, joints.THUMBNAIL)
        small = np.stack([np.asarray(image.resize(size, Image.Resampling.BOX)) for image in drawn])
        yield name, small, features(model, drawn), texts
        print(name, "is computed", flush=True)


def arrange(count: int, ids: list[str]) -> tuple[str, Array]:
    """A fault of the order of rows."""
    by_name = np.array(sorted(range(count), key=lambda row: ids[row]))
    faults = {
        "shifted": np.roll(np.arange(count), int(_RNG.choice((-1, 1)))),
        "reversed": np.arange(count)[::-1],
        "sorted by name": by_name,
        "shuffled": _RNG.permutation(count),
    }
    name = str(_RNG.choice(list(faults)))
    return name, faults[name]


def break_grid(patches: Array) -> tuple[str, Array, tuple[int, int]]:
    """A fault of the places of patches, and the grid that the user gives."""
    side = round(patches.shape[1] ** 0.5)
    cells = patches.reshape(len(patches), side, side, -1)
    faults = {
        "transposed grid": (cells.swapaxes(1, 2).reshape(patches.shape), (side, side)),
        "mirrored grid": (cells[:, :, ::-1].reshape(patches.shape), (side, side)),
        "tokens shifted": (np.roll(patches, 1, axis=1), (side, side)),
        "first token kept": (np.concatenate([patches[:, :1], patches], axis=1), (0, 0)),
        "channels first": (patches.swapaxes(1, 2), (0, 0)),
    }
    name = str(_RNG.choice(list(faults)))
    return name, *faults[name]


def judge(kind: Any, joint: str, faulty: bool) -> tuple[str, joints.Verdict]:
    """The verdict on a draw of rows of a kind, right or with a fault."""
    _, small, arrays, captions = kind
    ids, order, fault = [str(row) for row in range(ROWS)], np.arange(ROWS), "right"
    if joint == "places":
        array = arrays[f"patches {_RNG.choice(LAYERS)}"]
        rows = np.sort(_RNG.choice(len(array), FEW, replace=False))
        patches, grid = array[rows], (round(array.shape[1] ** 0.5),) * 2
        if faulty:
            fault, patches, grid = break_grid(patches)
        return fault, joints.places(joint, patches, [joints.colours_of(small[rows])], grid, powered=True)
    if faulty:
        fault, order = arrange(ROWS, ids)
    rows, orders = np.sort(_RNG.choice(len(small), ROWS, replace=False)), joints.row_orders(ids)
    vectors = arrays[f"{_RNG.choice(('cls', 'mean'))} {_RNG.choice(LAYERS)}"][rows][order]
    if joint == "captions":
        words = joints.bags_of_words([captions[row] for row in rows])
        return fault, joints.related(joint, words, vectors, np.arange(ROWS), orders, ROWS, predict_first=True)
    return fault, joints.related(joint, joints.photograph_inputs(small[rows]), vectors, np.arange(ROWS), orders)


def main() -> None:
    folder, vit, dino = sys.argv[1:]
    every = list(kinds(Path(folder), vit, dino))
    rows: dict[str, list[Any]] = {}
    for joint, name in (
        ("photographs", "features and photographs"),
        ("places", "patches and places"),
        ("captions", "captions and features"),
    ):
        usable = [kind for kind in every if kind[3] or joint != "captions"]
        right = [judge(usable[trial % len(usable)], joint, faulty=False)[1] for trial in range(TRIALS)]
        wrong = [judge(usable[trial % len(usable)], joint, faulty=True) for trial in range(TRIALS)]
        print(name, "missed:", Counter(fault for fault, verdict in wrong if verdict.outcome != "wrong"))
        stops = sum(verdict.outcome == "wrong" for verdict in right)
        stopped = sum(verdict.outcome == "wrong" for _, verdict in wrong)
        rows[name] = [FEW if joint == "places" else ROWS, f"{stops} of {TRIALS}", f"{stopped} of {TRIALS}"]
        rows[name].append(round(min(verdict.strength for verdict in right), 1))
        print(name, rows[name], flush=True)
    columns = ["joint", "images", "right inputs stopped", "planted faults stopped", "weakest right input, z"]
    command = "python -m benchmarks.joints FLICKR8K VIT DINO"
    results.write({"content check": {"command": command, "columns": columns, "rows": rows}})


if __name__ == "__main__":
    main()
