"""``publication.json``: the files of a publication with their digests, its jobs, terms and parts that are left out.

The folder ``experiment/`` of a publication is that of the results, without photographs and with the rows of the scored
splits only: captions of other splits are blank in ``data/captions.parquet``, and of a store there is the array
``features/NAME/rows/ARRAY.npy`` of the rows of these splits beside its sealed manifest.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

from vitcapr.files import read_json
from vitcapr.store.listed_files import FileList, FileName, Part

INDEX, CRATE, PAGE, CONFIGURATION = "publication.json", "ro-crate-metadata.json", "README.md", "experiment.yaml"
EXPERIMENT, DATA, SUMMARY, ROWS = "experiment", "data/manifest.json", "summary.csv", "rows"
STORES = ("features/", "text_features/")
REPLAYED = frozenset(
    {"decode", "embed", "paraphrases", "rerank", "rerank_oracle", "score", "score_retrieval", "score_languages"}
    | {"score_pools", "check_claims", "compare", "differences", "spread", "summary"}
)
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
LOG = "published.json"
"""In the folder of the results: where and when they were published."""


class PublishedJob(BaseModel):
    """A job that ``verify`` runs again: its record and its plain values, with the places of its files."""

    model_config = ConfigDict(strict=True, extra="forbid")

    record: FileName
    stage: str
    values: dict[str, Any]


class Publication(FileList):
    format: Literal["vitcapr-publication-1"]
    experiment: Annotated[str, StringConstraints(pattern=rf"^{Part}$", max_length=100)]
    program: str
    splits: list[Literal["train", "validation", "test"]]
    left_out: list[Literal["models", "features", "references", "captions", "embeddings"]]
    terms: dict[str, dict[str, str | None]]
    jobs: list[PublishedJob]


def part_of(place: str) -> str | None:
    """Return the part that a file of an experiment belongs to; None if it is never left out."""
    return next((name for name, beginnings in PARTS.items() if place.startswith(beginnings)), None)


def read_log(results: Path) -> list[dict[str, str]]:
    """Return the publications of results: ``place``, ``time``, ``digest`` and the digest of the ``summary``."""
    return list(read_json(results / LOG)) if (results / LOG).is_file() else []
