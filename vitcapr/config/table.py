"""Configuration of the user's own photographs and captions."""

from pathlib import PurePath
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Section
from vitcapr.config.dataset import DatasetConfig
from vitcapr.config.paths import UserPath


class TableColumns(Section):
    """Names of the columns; null: one of the usual names. The columns of language and split are optional."""

    image: str | None = None
    """Path of the image, relative to images; null: image, file_name, filename, image_path, path or file."""
    caption: str | None = None
    """One caption, or a list of captions (in CSV and TSV: a JSON list); null: caption, captions or text."""
    language: str | None = None
    """Language of the caption, such as en or zh; null: language, if there is such a column."""
    split: str | None = None
    """train, validation, test or none; null: split, if there is such a column."""


class TableConfig(DatasetConfig):
    """Photographs and captions of the user."""

    paths: ClassVar = ("images", "captions")

    images: UserPath = ""
    """Folder or zip of the images; or a folder with metadata.csv or metadata.jsonl, WebDataset tars or Parquet files,
    or one such tar or Parquet file."""
    captions: UserPath | None = None
    """CSV, TSV, JSON lines (.jsonl), Parquet, or JSON in COCO's form; null: the captions are in images."""
    columns: TableColumns = TableColumns()
    language: str = "en"
    """Language of the captions without a language of their own."""
    splits: Literal["auto", "given", "hash", "seeded"] = "auto"
    """given: by the column split or by folders named train, validation and test; hash: by a hash of each image's path,
    so that more images change no split; seeded: a random sample of exact size; auto: given if the table has splits,
    else hash."""
    validation: float = Field(0.1, gt=0, lt=0.5)
    """Share of the validation split (hash and seeded)."""
    test: float = Field(0.1, ge=0, lt=0.5)
    """Share of the test split (hash and seeded)."""
    seed: int = Field(0, ge=0)
    """Seed of the hash and of the random sample."""
    limit: int | None = Field(None, ge=1)
    """Number of images to keep in all, for a trial run: the first of each split, in proportion; null: all."""

    def missing(self, data: Any) -> str | None:  # noqa: ARG002
        return None if self.images else "data.table.images must name the folder of the images"

    @model_validator(mode="after")
    def _a_captions_file_is_a_table(self) -> Self:
        known = (".csv", ".tsv", ".jsonl", ".parquet", ".json")
        if self.captions and PurePath(self.captions).suffix.lower() not in known:
            raise ValueError(f"captions must name a file that ends with {', '.join(known)}, not '{self.captions}'")
        return self
