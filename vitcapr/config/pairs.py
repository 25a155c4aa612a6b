"""Configuration of text-image pairs in two languages: their source, sampling and splits."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from vitcapr.config.base import Section
from vitcapr.config.dataset import DatasetConfig
from vitcapr.config.paths import UserPath


class PairColumns(Section):
    """Column names of the table. The columns language, category and split are optional."""

    text: str = "text"
    image: str = "image"
    language: str = "language"
    """en or zh. If it is missing or empty, texts with Han characters count as Chinese, others as English."""
    category: str = "category"
    """Class for stratified splits. If it is missing or empty, it is derived from the words."""
    split: str = "split"
    """Rows with the value 'test' form the test set; all other rows are split by the settings below."""


class PairsConfig(DatasetConfig):
    """Chinese and English pairs; 50,000 by default, or fewer if the source has fewer."""

    paths: ClassVar = ("table", "images", "chinese")

    source: Literal["table", "flickr8k", "scenes"] = "table"
    """table: your own table; flickr8k: data.flickr8k and its Chinese captions; scenes: rendered pictures
    (data.scenes)."""
    table: UserPath = ""
    """Path of the table: CSV, TSV, JSON lines (.jsonl) or Parquet."""
    images: UserPath = ""
    """Folder or zip that the image paths in the table are relative to; empty: the folder of the table."""
    encoding: Literal["path", "base64"] = "path"
    """Content of the image column. Bytes (in Parquet) are read in either case."""
    columns: PairColumns = PairColumns()
    chinese: UserPath = ""
    """Path of flickr8kzhc.caption.txt of Flickr8k-CN (source flickr8k only)."""
    clean: bool = True
    """Remove symbols, fillers and spaces inside Chinese text; title marks are kept."""
    pairs: int | None = Field(50_000, ge=2)
    """Number of pairs to sample for training and validation; null: all."""
    validation: float = Field(0.3, gt=0, lt=1)
    """Share of the validation split. All pairs of a picture go to the same split."""
    test_images: int = Field(1000, ge=0)
    """Number of test pictures, for sources that define no test set."""
    queries: int = Field(5000, ge=1)
    """Number of query pictures, and of query texts, sampled from the test set; fewer if the test set is smaller."""
    candidates: int = Field(50_000, ge=1)
    """Number of candidate texts, and of candidate pictures, sampled from the test set and, where it is too small, from
    distractors. All true matches of the queries are among them."""
    distractors: list[Literal["validation", "train"]] = []
    """Splits that fill up the candidates after the test set, in this order; they hold no true match of a query."""
    seed: int = Field(0, ge=0)
    """Seed of all sampling."""

    def missing(self, data: Any) -> str | None:
        if self.source == "table" and not self.table:
            return "data.pairs.table must name a CSV, TSV, JSON lines or Parquet file"
        if self.source == "flickr8k" and not (data.flickr8k.images and data.flickr8k.text and self.chinese):
            return "data.flickr8k.images, data.flickr8k.text and data.pairs.chinese must be given"
        return None
