"""Size of the explorer's folder, and how soon a headless Chromium has it ready, for many images.

The test images of an experiment that has run are repeated under new ids, with noise on their embeddings; with
``--photographs``, files of a folder stand for their pictures. Chromium opens the folder as files; times are medians of
five openings. Prints JSON. The times need Chromium, chromedriver and the extra
``browser``.

    python -m benchmarks.explorer results/demo --images 1000 --photographs $VITCAPR_DATA/flickr8k/Flicker8k_Dataset
    python -m benchmarks.explorer results/demo --images 5000 --photographs $VITCAPR_DATA/flickr8k/Flicker8k_Dataset
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from vitcapr.extensions.explorer.commands.explore import load_embedder
from vitcapr.extensions.explorer.contents import Contents
from vitcapr.extensions.explorer.results import Results, Space, System, read_experiment
from vitcapr.extensions.explorer.writing import write_explorer
from vitcapr.formats.captions import AttentionTable
from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.manifest import Manifest, read_manifest, write_manifest
from vitcapr.metrics.ranks import rank_matches
from vitcapr.progress import Reporter

OPENINGS = 5
READY = "return document.documentElement.dataset.ready"
UNTIL_SHOWN = """
const [state, selector, done] = arguments, from = performance.now();
const look = () => (document.querySelector(selector) ? done(performance.now() - from) : requestAnimationFrame(look));
addEventListener("hashchange", () => requestAnimationFrame(look), { once: true });
go(state);
"""
"""Milliseconds until another state is drawn, which has such an element."""


def repeated(results: Results, images: int, photographs: Path | None, pictures: Path) -> Results:
    """The test split of an experiment with so many images, whose pictures are links in the folder ``pictures``."""
    data = results.data
    rows = data.rows("test")
    rounds = -(-images // len(rows))
    frames, texts = [], []
    captions = data.captions[data.captions["split"] == "test"]
    for number in range(rounds):
        frames.append(data.images.iloc[rows].assign(image_id=lambda f, n=number: _renamed(f["image_id"], n)))
        texts.append(
            captions.assign(
                image_id=lambda f, n=number: _renamed(f["image_id"], n),
                caption_id=lambda f, n=number: _renamed(f["caption_id"], n),
            )
        )
    frame = pd.concat(frames, ignore_index=True).iloc[:images]
    text = pd.concat(texts, ignore_index=True)
    place_of = {image: place for place, image in enumerate(frame["image_id"])}
    text = text.assign(image_row=text["image_id"].map(place_of)).dropna(subset="image_row").astype({"image_row": int})
    files = [data.image_root / path for path in frame["path"]]
    if photographs is not None:
        given = sorted(photographs.rglob("*.jpg"))[:images]
        files = [given[number % len(given)] for number in range(images)]
        sizes = [Image.open(file).size for file in files]
        frame = frame.assign(width=[width for width, _ in sizes], height=[height for _, height in sizes])
    names = [f"{number}{file.suffix}" for number, file in enumerate(files)]
    for name, file in zip(names, files, strict=True):
        (pictures / name).symlink_to(file.resolve())
    frame = frame.assign(path=names)
    options = {"dataset": data.dataset, "image_root": pictures, "rejected": []}
    with tempfile.TemporaryDirectory() as folder:
        whole = read_manifest(write_manifest(Path(folder), images=frame, captions=text, **options))
        assert len(whole.images) * len(whole.captions)  # read before the folder goes
    row_of = {row: place for place, row in enumerate(rows.tolist())}
    systems = [_system(one, row_of, rounds) for one in results.systems]
    return Results(results.name, whole, systems, [_space(one, whole, rounds) for one in results.spaces], {})


def _renamed(names: "pd.Series[str]", number: int) -> "pd.Series[str]":
    return names + f"-{number}"


def _system(one: System, row_of: dict[int, int], rounds: int) -> System:
    numbers = range(rounds)
    captions = {
        f"{image}-{number}": caption.model_copy(update={"image_id": f"{image}-{number}"})
        for number in numbers
        for image, caption in one.captions.items()
    }
    table = one.per_image
    if table is not None:
        table = pd.concat([table.set_axis([f"{image}-{number}" for image in table.index]) for number in numbers])
    claims = {f"{image}-{number}": claims for number in numbers for image, claims in one.claims.items()}
    attention = one.attention
    if attention is not None:
        places = np.array([row_of[row] for row in attention.image_row.tolist()])
        lengths = np.tile(np.diff(attention.offsets), rounds)
        image_row = np.concatenate([places + number * len(row_of) for number in numbers])
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        attention = AttentionTable(np.tile(attention.weights, (rounds, 1)), offsets, image_row, attention.grid)
    return replace(one, captions=captions, per_image=table, claims=claims, attention=attention)


def _space(one: Space, data: Manifest, rounds: int) -> Space:
    random = np.random.default_rng(0)

    def noisy(vectors: np.ndarray, count: int) -> np.ndarray:
        many = np.tile(vectors, (rounds, 1))[:count]
        many += 0.3 * random.standard_normal(many.shape, dtype=np.float32) / many.shape[1] ** 0.5
        return many / np.linalg.norm(many, axis=1, keepdims=True)

    images = noisy(one.embedded.images, len(data.images))
    language = data.captions["language"].to_numpy() == "en"
    rows = np.flatnonzero(language)
    owner = data.rows_of(data.captions["image_id"].iloc[rows].tolist())
    captions = noisy(one.embedded.captions, len(rows))
    embedded = Embeddings(images, captions, np.arange(len(images)), rows, owner)
    return replace(one, embedded=embedded, ranks=rank_matches(images, captions, owner))


def opened(folder: Path) -> dict[str, float] | None:
    """Milliseconds: until the page is ready, and of what one does with it; None where there is no Chromium."""
    browser, driver_file = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver_file is None:
        return None
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.wait import WebDriverWait

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"):
        options.add_argument(switch)
    times: dict[str, list[float]] = {}
    with webdriver.Chrome(options=options, service=Service(driver_file)) as driver:
        for _ in range(OPENINGS):
            driver.get("about:blank")
            driver.get(f"{folder.as_uri()}/index.html")
            ready = WebDriverWait(driver, 60, 0.01).until(lambda one: one.execute_script(READY))
            times.setdefault("ready", []).append(float(ready))
            column = driver.execute_script("return explorer.columns[0].name")
            image = driver.execute_script("return data.images.ids.at(-1)")
            for name, state, selector in (
                ("filter by a word", {"words": "red"}, ".card"),
                ("sort", {"sort": column}, ".badge"),
                ("open an image", {"image": image}, "#neighbours .thumbnails"),
                ("map", {"image": None, "view": "map", "words": ""}, "#map canvas"),
            ):
                taken = driver.execute_async_script(UNTIL_SHOWN, state, selector)
                times.setdefault(name, []).append(float(taken))
    return {name: round(statistics.median(found)) for name, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--photographs", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, pictures = Path(temporary) / "explorer", Path(temporary) / "pictures"
        pictures.mkdir()
        results = repeated(read_experiment(given.results, "test"), given.images, given.photographs, pictures)
        begin = time.process_time()
        contents = Contents([results], "test", load_embedder([given.results], Reporter()))
        write_explorer(folder, contents, Reporter())
        seconds = round(time.process_time() - begin)
        bytes_of = {
            part: sum(file.stat().st_size for file in folder.glob(pattern))
            for part, pattern in (("all", "**/*.*"), ("pictures", "pictures/*"), ("at once", "data/[io]*.js"))
        }
        report: dict[str, Any] = {
            "images": given.images,
            "systems": len(results.systems),
            "retrieval models": len(results.spaces),
            "CPU seconds to write": seconds,
            "MB": {part: round(size / 1e6, 1) for part, size in bytes_of.items()},
            "milliseconds": opened(folder),
        }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
