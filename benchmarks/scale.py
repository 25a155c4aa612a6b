"""What grows with the data: data set, text, stores, batches and the DAG, each step in a process of its own.

A store has vectors of 64 numbers, in chunks of 4,096 rows; a store of the images and one of the captions. Photographs
are JPEG files of 8 x 8 pixels in WebDataset tars of a thousand, a tenth of the other images. The DAG has an extraction
that is cut into tasks, and models on its store. Prints CPU seconds (user and system) and peak memory; the memory
includes the libraries.

    make bench-scale
    python -m benchmarks.scale --sizes 1000000x1 1000000x5 --folder /fast/disk --steps read prepare
"""

import argparse
import io
import multiprocessing
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import yaml
from PIL import Image

from benchmarks import results
from vitcapr.batches.image_batches import Batch, Batches
from vitcapr.batches.texts import FeatureTexts
from vitcapr.data.collect import Checks, collect
from vitcapr.data.readers import list_data_set
from vitcapr.encoders.network_checks import NO_GRID
from vitcapr.files import sha256_bytes
from vitcapr.formats.containers import text_columns
from vitcapr.formats.manifest import Manifest, read_manifest, write_manifest
from vitcapr.formats.tokens import TokenTable
from vitcapr.pipeline.stage import find_stage
from vitcapr.progress import Reporter
from vitcapr.store.caption_rows import CaptionFeatures
from vitcapr.store.check import unused_stores
from vitcapr.store.fill import StorePlan, fill
from vitcapr.store.layout import Rows, chunk_range
from vitcapr.store.reader import open_features
from vitcapr.store.sealing import write_part, write_sealed
from vitcapr.store.statistics import statistics

REPOSITORY = Path(__file__).parents[1]
CHUNK, WIDTH, BATCH, BATCHES, TASKS, MEMBERS = 4096, 64, 256, 2000, 100, 1000
WINDOW, COLD_BATCHES = 8, 100
WORDS = np.array([f"word{number}" for number in range(20_000)])
REPORT = Reporter(stream=io.StringIO())


class Size(NamedTuple):
    folder: Path
    images: int
    captions: int

    @property
    def manifest(self) -> Path:
        return self.folder / "data/manifest.json"

    @property
    def data(self) -> Manifest:
        return read_manifest(self.manifest)

    def plan(self, rows: Rows) -> StorePlan:
        # Rows of another kind are no source of rows: a first extraction is measured.
        return StorePlan(self.folder / "stores", rows, {"backbone": f"synthetic {rows.kind}"}, CHUNK, code="")


class RandomVectors:
    """Encodes the images, for :func:`fill`, and is the text encoder of :class:`CaptionFeatures`."""

    shapes, store_dtype, grid, summary = {"cls": (WIDTH,)}, "float16", NO_GRID, "random vectors"
    device, waited, dim, dtype, model = torch.device("cpu"), 0.0, WIDTH, torch.float32, torch.nn.Identity()
    longest = None

    def compute(self, batches: Sequence[np.ndarray]) -> Generator[dict[str, torch.Tensor], None, None]:
        for rows in batches:
            yield {"cls": self.encode_tokens(rows)}

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        return [[len(text)] for text in texts]

    def encode_tokens(self, tokens: Any, batch: int = 0) -> torch.Tensor:  # noqa: ARG002
        return torch.randn(len(tokens), WIDTH)

    def remarks(self) -> list[str]:
        return []


def write_tars(size: Size) -> None:
    """The input of the next step."""
    (size.folder / "tars").mkdir()
    for tar in range(-(-size.images // 10 // MEMBERS)):
        with tarfile.open(size.folder / f"tars/{tar:05d}.tar", "w") as archive:
            for member in range(MEMBERS):
                stream = io.BytesIO()
                color = (tar % 256, member % 256, member // 256 + 4 * (tar // 256))
                Image.new("RGB", (8, 8), color).save(stream, "JPEG", comment=f"{tar} {member}".encode())
                for suffix, content in (("jpg", stream.getvalue()), ("txt", b"a picture of one colour")):
                    info = tarfile.TarInfo(f"{member:05d}.{suffix}")
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))


def read_tars(size: Size) -> None:
    keys = {"captions": None, "columns": dict.fromkeys(("image", "caption", "language", "split")), "language": "en"}
    keys |= {"splits": "hash", "validation": 0.1, "test": 0.1, "seed": 0, "changed": ()}
    options: dict[str, Any] = {"dataset": "table", "checks": Checks(), "limit": None}
    with list_data_set("table", str(size.folder / "tars"), **keys) as (source, listing):
        collect(listing, source, size.folder / "tars-data", reporter=REPORT, **options)


def write_data(size: Size) -> None:
    numbers = pd.Series(np.arange(size.images)).astype("string[pyarrow]").str.zfill(8).astype("str")
    split = np.resize(["train"] * 97 + ["validation", "validation", "test"], size.images)
    images = pd.DataFrame({"image_id": numbers, "path": numbers + ".jpg", "split": pd.Series(split, dtype="str")})
    images = images.assign(width=640, height=480, sha256=_digests(size.images))
    owner = np.repeat(np.arange(size.images), size.captions)
    captions = pd.DataFrame({"image_row": owner, "caption_id": numbers.iloc[owner].reset_index(drop=True)})
    captions["caption_id"] += "#" + pd.Series(np.arange(len(owner)) % size.captions).astype("str")
    captions = captions.assign(language="en", text=_sentences(len(owner)))
    options: dict[str, Any] = {"dataset": "synthetic", "image_root": size.folder, "rejected": []}
    write_manifest(size.folder / "data", images=images, captions=captions, **options)


def _digests(number: int) -> "pd.Series[str]":
    return text_columns(((sha256_bytes(b"%d" % row),) for row in range(number)), ["sha256"])["sha256"]


def _sentences(number: int) -> "pd.Series[str]":
    draw = np.random.default_rng(0)
    parts = ((len(WORDS) * draw.random((1000, 10)) ** 3).astype(int) for _ in range(0, number, 1000))
    return text_columns(((" ".join(WORDS[row]),) for part in parts for row in part), ["text"])["text"]


def sentences_only(size: Size) -> None:
    """What the next step spends on making its input."""
    _digests(size.images)
    _sentences(size.images * size.captions)


def read_data(size: Size) -> None:
    data = size.data
    assert len(data.images) * size.captions == len(data.captions)


def build_vocabulary(size: Size) -> None:
    settings = SimpleNamespace(text=find_stage("vocabulary").settings().text)
    files = {"vocabulary": size.folder / "vocabulary.json", "tokens": size.folder / "tokens.npz"}
    find_stage("vocabulary")(manifest=size.manifest, settings=settings, report=REPORT, **files)


def prepare(size: Size, tasks: int = TASKS) -> None:
    """One of a hundred tasks, with its chunks."""
    plan = size.plan(Rows.of_images(size.data))
    chunks = chunk_range(plan.chunks, 0, tasks)
    writer = fill(plan, chunks, RandomVectors, batch=BATCH, reuse=True, report=REPORT)
    write_part(size.folder / "part.json", plan.fingerprint, writer, chunks)


def fill_images(size: Size) -> None:
    prepare(size, tasks=1)


def seal(size: Size) -> None:
    options = {"parts": [size.folder / "part.json"], "stores": size.folder / "stores", "report": REPORT}
    find_stage("seal")(manifest=size.manifest, sealed=size.folder / "features/a/manifest.json", **options)


def fill_captions(size: Size) -> None:
    rows = Rows.of_captions(size.data)
    plan = size.plan(rows)
    load = lambda: CaptionFeatures(rows, RandomVectors(), "float16")  # noqa: E731
    writer = fill(plan, range(plan.chunks), load, batch=BATCH, reuse=True, report=REPORT)
    sealed = size.folder / "text_features/a/manifest.json"
    write_sealed(writer, rows.id_parts(), "caption_id", sealed)


def look(size: Size) -> None:
    with open_features(size.folder / "features/a/manifest.json") as store:
        assert len(store["cls"]) == size.images


def open_batches(size: Size, shuffle_chunks: int | None = None) -> Iterator[Batch]:
    """What the training of a head on both stores does before its first step."""
    data = size.data
    images = open_features(size.folder / "features/a/manifest.json")
    texts = open_features(size.folder / "text_features/a/manifest.json")
    images.check_rows("image_id", data)
    texts.check_rows("caption_id", data)
    table = TokenTable.read(size.folder / "tokens.npz", data)
    inputs = FeatureTexts(texts["text"], table.caption_row, table.image_row)
    options: dict[str, Any] = {"arrays": ("cls",), "shuffle_chunks": shuffle_chunks}
    return iter(Batches(images, inputs, data.rows("train"), BATCH, **options))


def start_head(size: Size) -> None:
    next(open_batches(size))


def read_batches(size: Size) -> None:
    for _ in islice(open_batches(size), BATCHES):
        pass


def read_cold(size: Size, shuffle_chunks: int | None) -> str:
    """How much is read for some batches of images that are not in memory."""
    epoch = open_batches(size, shuffle_chunks)
    os.sync()
    for file in (size.folder / "stores").rglob("cls/c/*/*"):
        with file.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_inblock
    for _ in islice(epoch, COLD_BATCHES):
        pass
    read = 512 * (resource.getrusage(resource.RUSAGE_SELF).ru_inblock - begun)
    return f", {read / 1e6:.1f} MB read for {COLD_BATCHES * BATCH * WIDTH * 2 / 1e6:.1f}"


def measure(size: Size) -> None:
    with open_features(size.folder / "features/a/manifest.json") as store:
        statistics(store, "cls")


def collect_unused(size: Size) -> None:
    assert not unused_stores(size.folder)[2:]


STEPS: dict[str, tuple[str, Callable[[Size], str | None]]] = {
    "write-tars": (f"(make tars of {MEMBERS:,}, a tenth of the images)", write_tars),
    "tars": ("data stage from these tars", read_tars),
    "sentences": ("(make the sentences)", sentences_only),
    "write": ("make the sentences, write the manifest", write_data),
    "read": ("read the whole manifest", read_data),
    "vocabulary": ("vocabulary and tokens", build_vocabulary),
    "prepare": (f"one of {TASKS} extraction tasks", prepare),
    "fill": (f"all tasks: store of {WIDTH} numbers a row", fill_images),
    "seal": ("seal", seal),
    "open": ("open", look),
    "captions": ("store of text features", fill_captions),
    "start": ("head: to the first batch", start_head),
    "batches": (f"head: and {BATCHES:,} batches of {BATCH}", read_batches),
    "cold-rows": (
        f"{COLD_BATCHES} of them from a cold disk, all rows shuffled",
        partial(read_cold, shuffle_chunks=None),
    ),
    "cold-chunks": (f"the same, {WINDOW} chunks shuffled at a time", partial(read_cold, shuffle_chunks=WINDOW)),
    "statistics": ("statistics of the store", measure),
    "unused": ("list unused stores", collect_unused),
}
"""By the name for the command line. A step needs the files of those before it."""


def _measured(step: Callable[[Size], str | None], size: Size, answer: Any) -> None:
    torch.set_num_threads(1)
    begun = time.process_time()
    more = step(size) or ""
    seconds, memory = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    answer.send(f"{seconds:.1f} s, {memory:.2f} GB{more}")


def measured(step: Callable[[Size], str | None], size: Size) -> str:
    """CPU seconds and GiB of a step, in a fork, and what the step says."""
    context = multiprocessing.get_context("fork")
    answers, answer = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(step, size, answer))
    process.start()
    process.join()
    return "failed" if process.exitcode else answers.recv()


def dry_run(folder: Path, tasks: int, models: int) -> str:
    """``snakemake --dry-run`` of an experiment with so many extraction tasks and retrievers."""
    retriever = {"backbone": "vit", "embedding_dim": 16, "text": {"kind": "bilstm", "word_dim": 8, "hidden_dim": 16}}
    names = [f"base-seed{n}" for n in range(models)]
    experiment = {
        "experiment": "scale",
        "data": {"scenes": {"images": 16 * tasks, "size": 56}},
        "text": {"vocabulary": {"min_count": 1}},
        "backbones": {"vit": {"source": "trained"}},
        "trained_backbone": {"hidden_size": 32, "layers": 1, "heads": 2, "epochs": 1},
        "features": {"tasks": tasks, "chunk": 16, "batch": 16},
        "retrievers": {"base": retriever},
        "grid": [{"retrievers": ["base"], "vary": {"seed": list(range(models))}}],
        "run": {"captioners": [], "decodings": [], "rerankings": [], "retrievers": names},
    }
    path = folder / f"dag-{tasks}-{models}.yaml"
    path.write_text(yaml.safe_dump(experiment), encoding="utf-8")
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "all", "--configfile", str(path)]
    subprocess.run(command, check=True, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return f"{ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", default=["20000x1", "200000x1"], help="images x captions of an image")
    parser.add_argument("--steps", nargs="*", default=list(STEPS), choices=STEPS, help="default: all")
    parser.add_argument("--dag", nargs="*", default=["1x1", "1000x1", "4000x1"], help="extraction tasks x models")
    parser.add_argument("--folder", type=Path, help="where the files are kept; default: a temporary folder")
    parser.add_argument("--record", action="store_true", help="write the figures to benchmarks/results.json")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    rows: dict[str, dict[str, list[str]]] = {text: {} for text in options.sizes}
    print(f"| | {' | '.join(options.sizes)} |\n| --- |{' ---: |' * len(options.sizes)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for name in options.steps:
            cells = []
            for text in options.sizes:
                size = Size(folder / text, *map(int, text.split("x")))
                size.folder.mkdir(parents=True, exist_ok=True)
                cells.append(measured(STEPS[name][1], size))
                rows[text][STEPS[name][0]] = cells[-1:]
            print(f"| {STEPS[name][0]} | {' | '.join(cells)} |", flush=True)
        for text in options.dag:
            name, cell = f"dry run: {text} tasks x models", dry_run(folder, *map(int, text.split("x")))
            print(f"| {name} | {cell} |", flush=True)
            for of_size in rows.values():
                of_size[name] = [cell]
    if options.record:
        table = {"columns": ["step", "CPU time, memory"]}
        command = "make bench-scale SIZES={}"
        results.write(
            {f"scale {text}": {"command": command.format(text), **table, "rows": rows[text]} for text in rows}
        )


if __name__ == "__main__":
    main()
