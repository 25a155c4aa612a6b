"""``publication.json``: the files of a publication with their digests, its terms, and the parts that are left out.

The jobs of a publication are its run records.

The folder ``experiment/`` of a publication is that of the results, without photographs and with the rows of the scored
splits only: captions of other splits are blank in ``data/captions.parquet``, and of a store there is the array
``features/NAME/rows/ARRAY.npy`` of the rows of these splits beside its sealed manifest.
"""

import json
import shlex
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import StringConstraints

from vitcapr.formats.records import reading
from vitcapr.pipeline.run_records import Run
from vitcapr.pipeline.stage import DEVICE, Role, find_stage
from vitcapr.store.listed_files import FileList, Part

INDEX, CRATE, PAGE, CONFIGURATION = "publication.json", "ro-crate-metadata.json", "README.md", "experiment.yaml"
EXPERIMENT, DATA, SUMMARY, ROWS = "experiment", "data/manifest.json", "summary.csv", "rows"
STORES = ("features/", "text_features/")
TABLES = frozenset({"summary", "compare", "differences", "spread"})
"""The stages whose numbers are published."""
REPLAYED = TABLES | {
    *("decode", "embed", "paraphrases", "rerank", "rerank_oracle"),
    *("score", "score_retrieval", "score_languages", "score_pools", "check_claims"),
}
"""The stages that ``verify`` runs again. All others are taken on trust from their records."""
PARTS = {
    "models": ("captioners/", "retrievers/"),
    "features": STORES,
    "references": ("data/captions.parquet", "data/objects.parquet", "text/paraphrases/"),
    "captions": ("captions/",),
    "embeddings": ("embeddings/",),
}
"""Parts that can be left out, and the beginnings of the places of their files."""
TRAINING_SCORES = frozenset({"novel_share"})
"""Scores that read the training captions, which are not published."""


class Publication(FileList):
    format: Literal["vitcapr-publication-2"]
    experiment: Annotated[str, StringConstraints(pattern=rf"^{Part}$", max_length=100)]
    program: str
    splits: list[Literal["train", "validation", "test"]]
    left_out: list[Literal["models", "features", "references", "captions", "embeddings"]]
    terms: dict[str, dict[str, str | None]]


def is_in(place: str, part: str) -> bool:
    """Return whether a file of an experiment belongs to a part that can be left out."""
    return place.startswith(PARTS[part])


def replayed(runs: Iterable[Run], splits: Collection[str]) -> list[Run]:
    """Return the jobs that ``verify`` runs again: those on the scored splits, and those of no split."""
    return [run for run in runs if run.stage in REPLAYED and run.values.get("split") in {None, *splits}]


def lost_part(run: Run, left_out: Collection[str]) -> str | None:
    """Return a part that is left out and that a job cannot run without.

    Captions and embeddings are made again, unless models or features are left out, too.
    """
    places = [run.place(path) for path in run.inputs]
    if run.stage != "decode" and DATA in places:
        places.append("data/captions.parquet")
    made_again = set() if {"models", "features"} & {*left_out} else {"captions", "embeddings"}
    parts = (part for part in PARTS if part in left_out and part not in made_again)
    return next((part for part in parts if any(is_in(place, part) for place in places)), None)


def precision_of(run: Run) -> str | None:
    """Return the arithmetic of a decoding; None for other jobs."""
    precision: str | None = run.settings.get("decoding", {}).get("precision")
    return precision


def job_values(run: Run, folder: Path, precision: str | None = None) -> dict[str, Any]:
    """Return the values of a recorded job, on the CPU and without attention, for the experiment in ``folder``.

    Args:
        precision: of a decoding; None for that of its record.

    Raises:
        UserError: the record has no job.
    """
    with reading(run.path, "the record of a job", "publish it"):
        stage, words = find_stage(run.stage), shlex.split(run.command)
        recorded, here = (json.dumps(f"{each}/", ensure_ascii=False)[:-1] for each in (run.folder, folder))
        plain = json.loads(words[words.index("--job") + 1].replace(recorded, here))
        if precision is not None:
            plain["settings"]["decoding"]["precision"] = precision
        replaced = {DEVICE: "cpu", "attention": None}
        return stage.read({name: replaced.get(name, value) for name, value in plain.items()})


def places(run: Run, role: Role) -> list[str]:
    """Return the places of the files that a job reads or writes.

    Raises:
        UserError: one lies outside the experiment.
    """
    root, values = Path("experiment"), job_values(run, Path("experiment"))
    paths = [path for each in find_stage(run.stage).of_role(role) for path in each.paths(values[each.name])]
    with reading(run.path, "the record of a job", "publish it"):
        inside = [path.relative_to(root).as_posix() for path in paths]
        if any(".." in place.split("/") for place in inside):
            raise ValueError("it leads outside the publication")
        return inside
