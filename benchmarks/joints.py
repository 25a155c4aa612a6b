"""How often the content check is right: 200 right inputs of many kinds, and 200 planted faults at 200 rows.

    python -m benchmarks.joints FLICKR8K VIT DINO TEXT

FLICKR8K is the folder with Flicker8k_Dataset and Flickr8k_text; VIT, DINO and TEXT, an encoder of sentences, are
checkpoints of transformers. The thresholds were chosen on the photographs of a first draw and layers 3, 6, 9 and 12:
none of either is used here. Writes the table "content check" of benchmarks/results.json.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from transformers import AutoConfig, AutoModel, AutoTokenizer

from benchmarks import results
from vitcapr import joints
from vitcapr.api.pairs_check import check_captions, check_embeddings
from vitcapr.errors import UserError
from vitcapr.extensions.exchange.swapped import resemblance

POOL, ROWS, TRIALS, FEW = 300, 200, 200, 40
MANY, SHARES = 1500, (0.002, 0.01, 0.05)
LAYERS = (2, 5, 8, 11)
Array = np.ndarray
_FIRST_DRAW, _RNG = np.random.default_rng(0), np.random.default_rng(1)


def pictures(folder: Path) -> tuple[list[str], list[Image.Image], list[list[str]]]:
    """Names, photographs and captions of the pool; half of them are of one class: their captions name a dog."""
    captions: dict[str, list[str]] = defaultdict(list)
    for line in (folder / "Flickr8k_text/Flickr8k.token.txt").read_text(encoding="utf-8").splitlines():
        name, text = line.split("\t")
        captions[name.split("#")[0]].append(text)
    names = sorted(path.name for path in (folder / "Flicker8k_Dataset").glob("*.jpg") if captions[path.name])
    dogs = [name for name in names if all(" dog" in text for text in captions[name])]
    first = {name for some in (names, dogs) for name in _FIRST_DRAW.choice(some, POOL // 2, replace=False)}
    dogs = [str(name) for name in _RNG.choice([name for name in dogs if name not in first], POOL // 2, replace=False)]
    others = [name for name in names if name not in first and name not in dogs]
    chosen = sorted([*dogs, *map(str, _RNG.choice(others, POOL // 2, replace=False))])
    opened = [Image.open(folder / "Flicker8k_Dataset" / name).convert("RGB") for name in chosen]
    return chosen, opened, [captions[name] for name in chosen]


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


@torch.inference_mode()
def sentences(checkpoint: str, texts: list[str]) -> Array:
    """The mean of the tokens of each text: (n, D)."""
    tokenizer, model = AutoTokenizer.from_pretrained(checkpoint), AutoModel.from_pretrained(checkpoint)
    parts = []
    for first in range(0, len(texts), 64):
        tokens = tokenizer(texts[first : first + 64], padding=True, return_tensors="pt")
        hidden, mask = model(**tokens).last_hidden_state, tokens["attention_mask"][..., None]
        parts.append(((hidden * mask).sum(1) / mask.sum(1)).numpy())
    return np.concatenate(parts)


def kinds(
    images: list[Image.Image], captions: list[str], vit: str, dino: str
) -> Iterator[tuple[str, Array, dict[str, Array], list[str] | None]]:
    """Thumbnails, features and captions of every kind of input."""
    trained, other = AutoModel.from_pretrained(vit), AutoModel.from_pretrained(dino)
    torch.manual_seed(0)
    untrained, blank = (AutoModel.from_config(AutoConfig.from_pretrained(one)).eval() for one in (vit, dino))
    grey = [image.convert("L").convert("RGB") for image in images]
    near = [turned for image in images[: POOL // 2] for turned in (image, image.rotate(2))]
    rendered = [text_picture(text) for text in captions]
    for name, model, drawn, texts in (
        ("ViT-Ti/16", trained, images, captions),
        ("DINOv2 small", other, images, captions),
        ("random weights", untrained, images, captions),
        ("random weights of DINOv2", blank, images, captions),
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


def judge(kind: Any, joint: str, means: Array, faulty: bool) -> tuple[str, joints.Verdict]:
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
        return fault, joints.related(joint, words, vectors, np.arange(ROWS), orders, True, predict_first=True)
    first = means[rows] if joint == "sentences" else joints.photograph_inputs(small[rows])
    return fault, joints.related(joint, first, vectors, np.arange(ROWS), orders, True)


def scored(system: int, captions: list[list[str]], vectors: Array, faulty: bool) -> tuple[str, str]:
    """The outcome for a system's captions or embeddings of 200 images, and the fault.

    Systems: people; people in three words; people with a third of the words lost; the caption of the nearest other
    image by one reference, which is often wrong; embeddings of one caption against those of another, and with noise.
    """
    rows = np.sort(_RNG.choice(len(captions), ROWS, replace=False))
    fault, order = arrange(ROWS, [str(row) for row in range(ROWS)]) if faulty else ("right", np.arange(ROWS))
    try:
        if system >= 4:
            one, other = (
                vectors[rows, 0],
                vectors[rows, 1] + (system - 4) * 0.05 * _RNG.normal(size=vectors[rows, 1].shape),
            )
            check_embeddings(
                *(side / np.linalg.norm(side, axis=1, keepdims=True) for side in (one, other[order])), np.arange(ROWS)
            )
        else:
            texts = [captions[row][0].split() for row in rows]
            if system == 3:
                nearest = vectors[rows, 0] @ vectors[rows, 0].T - 2 * np.eye(ROWS) * np.square(vectors).sum()
                texts = [texts[place] for place in nearest.argmax(axis=1)]
            if system == 1:
                texts = [words[1:4] for words in texts]
            if system == 2:
                texts = [[word for word in words if _RNG.random() > 1 / 3] or words for words in texts]
            written = {str(place): " ".join(texts[row]) for place, row in enumerate(order)}
            check_captions(written, {str(place): captions[row][1:] for place, row in enumerate(rows)}, None)
    except UserError:
        return fault, "wrong"
    return fault, "belongs"


@torch.inference_mode()
def two_layers(folder: Path, checkpoint: str) -> tuple[Array, Array]:
    """CLS of MANY photographs from the layers 6 and 12."""
    names = sorted((folder / "Flicker8k_Dataset").glob("*.jpg"))
    chosen, model, parts = _RNG.choice(len(names), MANY, replace=False), AutoModel.from_pretrained(checkpoint), []
    for first in range(0, MANY, 16):
        opened = [Image.open(names[row]).convert("RGB").resize((224, 224)) for row in chosen[first : first + 16]]
        pixels = torch.from_numpy(np.stack([np.asarray(image) for image in opened])).permute(0, 3, 1, 2) / 127.5 - 1
        hidden = model(pixel_values=pixels, output_hidden_states=True).hidden_states
        parts.append((hidden[6][:, 0].numpy(), hidden[12][:, 0].numpy()))
    one, other = (np.concatenate(layer) for layer in zip(*parts, strict=True))
    return one, other


def swapped_rows(one: Array, other: Array) -> dict[str, list[Any]]:
    """How well exchanged rows are found: the area under the curve, rows that are named, right rows that are named."""
    rows: dict[str, list[Any]] = {}
    for share in SHARES:
        changed, swapped = other.copy(), np.zeros(MANY, bool)
        some = _RNG.choice(MANY, max(2, round(share * MANY)), replace=False)
        changed[some], swapped[some] = other[np.roll(some, 1)], True
        compared = resemblance(changed, one)
        ranks = compared.own.argsort().argsort()
        area = 1 - (ranks[swapped].mean() - (len(some) - 1) / 2) / (MANY - len(some))
        named = np.isin(np.arange(MANY), compared.odd)
        counts = f"{int(named[swapped].sum())} of {len(some)}", f"{int(named[~swapped].sum())} of {MANY - len(some)}"
        rows[f"{share:.1%} of the rows exchanged"] = [round(float(area), 4), *counts]
    return rows


def main() -> None:
    folder, vit, dino, text = sys.argv[1:]
    _, images, captions = pictures(Path(folder))
    every = list(kinds(images, [" ".join(texts) for texts in captions], vit, dino))
    vectors = sentences(text, [one for texts in captions for one in texts[:5]]).reshape(len(captions), 5, -1)
    rows: dict[str, list[Any]] = {}
    for joint, name in (
        ("photographs", "features and photographs"),
        ("places", "patches and places"),
        ("captions", "captions and features"),
        ("sentences", "features of images and of captions"),
    ):
        usable = [kind for kind in every if kind[3] or joint in ("photographs", "places")]
        means = vectors.mean(axis=1)
        right = [judge(usable[trial % len(usable)], joint, means, faulty=False)[1] for trial in range(TRIALS)]
        wrong = [judge(usable[trial % len(usable)], joint, means, faulty=True) for trial in range(TRIALS)]
        print(name, "missed:", Counter(fault for fault, verdict in wrong if verdict.outcome != "wrong"))
        stops = sum(verdict.outcome == "wrong" for verdict in right)
        stopped = sum(verdict.outcome == "wrong" for _, verdict in wrong)
        rows[name] = [FEW if joint == "places" else ROWS, f"{stops} of {TRIALS}", f"{stopped} of {TRIALS}"]
        rows[name].append(round(min(verdict.strength for verdict in right), 1))
        print(name, rows[name], flush=True)
    for name, systems in (("captions and references", (0, 1, 2, 3)), ("embeddings and embeddings", (4, 5))):
        tried = [
            scored(systems[trial % len(systems)], captions, vectors, faulty)
            for faulty in (False, True)
            for trial in range(TRIALS)
        ]
        stops, stopped = (sum(outcome == "wrong" for _, outcome in part) for part in (tried[:TRIALS], tried[TRIALS:]))
        print(name, "missed:", Counter(fault for fault, outcome in tried[TRIALS:] if outcome != "wrong"))
        rows[name] = [ROWS, f"{stops} of {TRIALS}", f"{stopped} of {TRIALS}", "-"]
        print(name, rows[name], flush=True)
    columns = ["joint", "images", "right inputs stopped", "planted faults stopped", "weakest right input, z"]
    command = "python -m benchmarks.joints FLICKR8K VIT DINO TEXT"
    columns_of_rows = ["single rows", "AUC", "exchanged rows named", "right rows named"]
    single = {"command": command, "columns": columns_of_rows, "rows": swapped_rows(*two_layers(Path(folder), vit))}
    print(single, flush=True)
    results.write({"content check": {"command": command, "columns": columns, "rows": rows}, "swapped rows": single})


if __name__ == "__main__":
    main()
