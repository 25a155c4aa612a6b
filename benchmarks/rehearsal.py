"""A rehearsal of MS COCO: rendered scenes in COCO's own layout, and the costs of the whole experiment on them.

    python -m benchmarks.rehearsal write rehearsal/coco
    VITCAPR_DATA=rehearsal snakemake --cores 2 --configfile experiments/coco-rehearsal.yaml
    python -m benchmarks.rehearsal report results/coco-rehearsal

``write`` makes ``train2014/``, ``val2014/``, ``annotations/`` and Karpathy's ``dataset_coco.json`` with as many images
as COCO has, in its sizes. It takes up an interrupted run. ``report`` writes what every rule cost into
``benchmarks/results.json`` and prints the share of captions that are true of their scenes.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks import results
from vitcapr.extensions.demo.dataset import DRAWING, ENGLISH, make_scene, mapped
from vitcapr.extensions.demo.lexicon import KINDS
from vitcapr.extensions.demo.render import render
from vitcapr.extensions.demo.scene import stream
from vitcapr.extensions.demo.sentences import english
from vitcapr.extensions.demo.statements import claim_accuracy, read_caption
from vitcapr.files import atomic_path, read_json, write_json
from vitcapr.formats.captions import read_coco_references, read_results
from vitcapr.pipeline.run_records import Run, read_runs
from vitcapr.progress import Reporter

SEED = 2014
TRAIN, VALIDATION = 82_783, 40_504
HELD_OUT = 5_000
"""Images of Karpathy's validation split, and of the test split; the others of val2014 are ``restval``."""
LARGEST_ID = 581_929
PART = 512
DRAWN, QUALITY = 240, 80
SIZES = {(640, 480): 0.5, (480, 640): 0.2, (640, 427): 0.18, (427, 640): 0.06, (500, 375): 0.03, (640, 640): 0.03}
"""The common sizes of COCO's photographs, with about their shares."""
GREY = 0.002
"""Share of images with one channel."""
SHORT = 0.01
"""Share of the seconds below which a rule is one of the others."""
LICENCE = {"id": 1, "name": "MIT, rendered by vitcapr", "url": ""}
Rows = dict[str, list[dict[str, Any]]]


def write(folder: Path, shrink: int, processes: int) -> None:
    """Write the data set below ``folder``, with one of ``shrink`` images."""
    counts = {"train2014": TRAIN // shrink, "val2014": VALIDATION // shrink}
    held_out, total = HELD_OUT // shrink, sum(counts.values())
    ids = sorted(random.Random(SEED).sample(range(1, LARGEST_ID), total))
    random.Random(SEED + 1).shuffle(ids)
    parts = [range(start, min(start + PART, total)) for start in range(0, total, PART)]
    for name in (*counts, "annotations", ".parts"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    tables: dict[str, Rows] = {name: {"images": [], "captions": [], "objects": []} for name in counts}
    with (
        Reporter() as report,
        report.track("scenes", total, "pictures") as tracker,
        mapped(partial(_write_part, folder, ids, counts["train2014"]), parts, processes) as written,
    ):
        for rows in written:
            for subset, table in tables.items():
                for name, column in table.items():
                    column += [row for row in rows[name] if row["subset"] == subset]
            tracker.advance(len(rows["images"]))
    for subset, table in tables.items():
        _write_annotations(folder / "annotations", subset, table)
    _write_karpathy(folder / "dataset_coco.json", tables, held_out)


def _write_part(folder: Path, ids: list[int], train: int, numbers: range) -> Rows:
    """Write some images; their rows, also of those that an interrupted run has written."""
    done = folder / ".parts" / f"{numbers.start:06d}.json"
    if done.exists():
        return read_json(done)  # type: ignore[no-any-return]
    rows: Rows = {"images": [], "captions": [], "objects": []}
    for number in numbers:
        subset, image = "train2014" if number < train else "val2014", ids[number]
        rng = random.Random(f"{SEED}/{number}")
        size = rng.choices(list(SIZES), SIZES.values())[0]
        scene = make_scene(SEED, number)
        picture, labels = render(scene, DRAWN, stream(SEED, number, DRAWING))
        file = f"COCO_{subset}_{image:012d}.jpg"
        photograph = picture.resize(size, Image.Resampling.BILINEAR).convert("L" if rng.random() < GREY else "RGB")
        with atomic_path(folder / subset / file) as path:
            photograph.save(path, "JPEG", quality=QUALITY)
        of_image = {"subset": subset, "image_id": image}
        rows["images"].append({**of_image, "file_name": file, "width": size[0], "height": size[1]})
        texts = english(scene, stream(SEED, number, ENGLISH))
        rows["captions"] += [
            {**of_image, "id": 5 * number + place, "caption": text} for place, text in enumerate(texts)
        ]
        kinds = [group.kind for group in scene.groups for _ in group.things]
        array, scale = np.asarray(labels), np.divide(size, DRAWN)
        for label, kind in enumerate(kinds, 1):
            down, across = np.nonzero(array == label)
            if len(down):
                corner, end = scale * (across.min(), down.min()), scale * (across.max() + 1, down.max() + 1)
                box = [round(float(value), 2) for value in (*corner, *(end - corner))]
                area = round(float(len(down) * scale.prod()), 2)
                identity = len(KINDS) * number + label
                entry = {"id": identity, "category_id": list(KINDS).index(kind) + 1, "bbox": box, "area": area}
                rows["objects"].append({**of_image, **entry, "iscrowd": 0})
    write_json(done, rows)
    return rows


def _write_annotations(folder: Path, subset: str, table: Rows) -> None:
    def without(row: dict[str, Any], key: str = "subset") -> dict[str, Any]:
        return {name: value for name, value in row.items() if name != key}

    images = [{"id": row["image_id"], "license": 1, **without(without(row), "image_id")} for row in table["images"]]
    about = {"info": {"description": "a rehearsal of MS COCO with rendered scenes"}, "licenses": [LICENCE]}
    categories = [{"id": number, "name": kind} for number, kind in enumerate(KINDS, 1)]
    captions, objects = (list(map(without, table[name])) for name in ("captions", "objects"))
    write_json(folder / f"captions_{subset}.json", {**about, "images": images, "annotations": captions})
    content = {**about, "images": images, "annotations": objects, "categories": categories}
    write_json(folder / f"instances_{subset}.json", content)


def _write_karpathy(path: Path, tables: dict[str, Rows], held_out: int) -> None:
    entries = []
    for subset, table in tables.items():
        sentences = defaultdict(list)
        for row in table["captions"]:
            tokens = row["caption"].lower().rstrip(".").replace(",", "").split()
            entry = {"raw": row["caption"], "tokens": tokens, "imgid": row["image_id"], "sentid": row["id"]}
            sentences[row["image_id"]].append(entry)
        for number, row in enumerate(table["images"]):
            held = next((name for name, end in (("val", held_out), ("test", 2 * held_out)) if number < end), "restval")
            image = {"filepath": subset, "filename": row["file_name"], "cocoid": row["image_id"], "imgid": len(entries)}
            written = sentences[row["image_id"]]
            image |= {"sentids": [entry["sentid"] for entry in written], "sentences": written}
            entries.append({**image, "split": "train" if subset == "train2014" else held})
    write_json(path, {"images": entries, "dataset": "coco"})


def report(experiment: Path, references: Path) -> None:
    """Write a row for each rule that takes time into ``results.json``: jobs, seconds, CPU seconds, memory and bytes."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for run in read_runs(experiment):
        runs[run.name.partition("/")[0]].append(run)
    total = sum(map(_seconds, runs.values()))
    short = [rule for rule, jobs in runs.items() if _seconds(jobs) < SHORT * total]
    if short:
        runs[f"the {len(short)} others"] = [job for rule in short for job in runs.pop(rule)]
    rows = {rule: list(_costs(jobs)) for rule, jobs in sorted(runs.items(), key=lambda item: -_seconds(item[1]))}
    columns = ["rule", "jobs", "seconds", "CPU seconds", "peak MB", "MB written"]
    command = "snakemake --cores 2 --configfile experiments/coco-rehearsal.yaml"
    results.write({"rehearsal": {"columns": columns, "command": command, "rows": rows}})
    for line in _true_captions(experiment, references):
        print(line)


def _seconds(jobs: list[Run]) -> float:
    return sum(run.made["seconds"] for run in jobs)


def _costs(jobs: list[Run]) -> Iterator[int]:
    yield len(jobs)
    yield round(_seconds(jobs))
    yield round(sum(run.made["cpu_seconds"] for run in jobs))
    yield max(run.made["peak_memory_mb"] for run in jobs)
    yield round(sum(facts["size"] for run in jobs for facts in run.outputs.values()) / 1e6)


def _true_captions(experiment: Path, references: Path) -> Iterator[str]:
    """Every reference of a scene describes all of it, so the first one serves."""
    truth = {image: read_caption(texts[0]) for image, texts in read_coco_references(references)[0].items()}
    for file in sorted(experiment.glob("captions/*/*/test/captions.json")):
        written = {image: read_caption(result.caption) for image, result in read_results(file).items()}
        measure = claim_accuracy(list(written.values()), [truth[image] for image in written])["claims_true"]
        yield f"{'/'.join(file.parts[-4:-2])}: {measure.value:.1%} of {len(written)} captions make only right claims"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["write", "report"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shrink", type=int, default=1, help="write one of so many images, for a trial")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--references", type=Path, default=Path("rehearsal/coco/annotations/captions_val2014.json"))
    options = parser.parse_args()
    if options.task == "write":
        write(options.folder, options.shrink, options.processes)
    else:
        report(options.folder, options.references)


if __name__ == "__main__":
    main()
