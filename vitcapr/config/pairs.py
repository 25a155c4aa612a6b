"""Pairs of texts and pictures in two languages: where they come from, and how they are drawn and split."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from vitcapr.config.base import Section
from vitcapr.config.dataset import DatasetConfig


class PairColumns(Section):
    """What the columns of the table are called; language, category and split need not be there."""

    text: str = "text"
    image: str = "image"
    language: str = "language"
    """en or zh; where it is missing or empty, Chinese is what has Han characters."""
    category: str = "category"
    """A class to stratify by; derived from the words where it is missing or empty."""
    split: str = "split"
    """Rows that say 'test' are set apart; all else is split here."""


class PairsConfig(DatasetConfig):
    """50,000 Chinese and English pairs, or however many there are."""

    paths: ClassVar = ("table", "images", "chinese")

    source: Literal["table", "flickr8k", "scenes"] = "table"
    """A table of yours; Flickr8k (data.flickr8k) and its Chinese captions; rendered pictures (data.scenes)."""
    table: str = ""
    """CSV, TSV, JSON lines (.jsonl) or Parquet."""
    images: str = ""
    """The folder or zip that the table's paths are relative to; empty: the folder of the table."""
    encoding: Literal["path", "base64"] = "path"
    """What the image column holds. Bytes, which Parquet can hold, are taken as they are."""
    columns: PairColumns = PairColumns()
    chinese: str = ""
    """With Flickr8k: flickr8kzhc.caption.txt of Flickr8k-CN."""
    clean: bool = True
    """Remove symbols, fillers and the spaces inside Chinese; title marks stay."""
    pairs: int | None = Field(50_000, ge=2)
    """Pairs drawn for training and validation; null takes all."""
    validation: float = Field(0.3, gt=0, lt=1)
    """The share of validation. Whole pictures are dealt, so that no picture is learnt from and validated on."""
    test_images: int = Field(1000, ge=0)
    """Pictures set apart for queries and candidates, where the source sets none apart itself."""
    queries: int = Field(5000, ge=1)
    """Query pictures and query texts, drawn from what is set apart; fewer where there are fewer."""
    candidates: int = Field(50_000, ge=1)
    """Texts and pictures that a query is ranked against, drawn likewise."""
    seed: int = Field(0, ge=0)
    """Of every draw."""

    def missing(self, data: Any) -> str | None:
        if self.source == "table" and not self.table:
            return "data.pairs.table must name a CSV, TSV, JSON lines or Parquet file"
        if self.source == "flickr8k" and not (data.flickr8k.images and data.flickr8k.text and self.chinese):
            return "data.flickr8k.images, data.flickr8k.text and data.pairs.chinese must be given"
        return None
