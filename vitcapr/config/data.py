"""Which images and captions, and what to do with those that are damaged."""

from typing import Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Section
from vitcapr.config.pairs import PairsConfig


class PictureChecks(Section):
    """What becomes of photographs that are damaged or too large."""

    on_bad_image: Literal["reject", "fail"] = "reject"
    """reject: leave the image out, count it and list it in rejected.csv; fail: stop with one line."""
    max_pixels: int = Field(100_000_000, ge=1)
    """A picture that claims more pixels than this is taken for a decompression bomb."""


class ScenesConfig(Section):
    """The embedded data set of rendered pictures."""

    images: int = Field(5000, ge=10)
    """How many pictures; picture i is the same whatever the number."""
    size: int = Field(112, ge=32, le=512)
    """Width and height in pixels."""
    seed: int = Field(1, ge=0)
    """Another seed is another data set."""
    validation: float = Field(0.1, gt=0, lt=0.5)
    """The share of pictures in the validation split."""
    test: float = Field(0.1, gt=0, lt=0.5)
    """The share of pictures in the test split."""


class Flickr8kConfig(Section):
    """Flickr8k: a folder of photographs (or the official zip) and its caption files."""

    images: str = ""
    """The folder Flicker8k_Dataset, or Flickr8k_Dataset.zip."""
    text: str = ""
    """The folder Flickr8k_text (official captions and splits), Flickr8k_text.zip, or Kaggle's captions.txt."""
    splits: Literal["official", "random"] = "official"
    """official: 6,000 / 1,000 / 1,000 by the lists that come with the text; random: the same sizes, seeded."""
    seed: int = Field(0, ge=0)
    """Seed of the random split."""
    limit: int | None = Field(None, ge=1)
    """Keep only the first images of each split, for a trial run."""


class Flickr30kConfig(Section):
    """Flickr30k: Parquet files with pictures and captions in them, or photographs and a caption file."""

    images: str = ""
    """The folder of the Parquet files (or one of them), the folder flickr30k-images, or a zip of that."""
    text: str | None = None
    """dataset_flickr30k.json or results_20130124.token; None: the captions are in the Parquet files."""
    lists: str | None = None
    """dataset_flickr30k.json, for its splits alone, where images and text name none."""
    splits: Literal["karpathy", "paper", "random"] = "karpathy"
    """karpathy: 29,000 / 1,014 / 1,000 as the files or the lists have them; random: the same sizes, seeded; paper: as
    the BLIP-2 report reads the release, one caption an image, and without splits in the files the rows in order."""
    seed: int = Field(0, ge=0)
    """Seed of the random split."""
    limit: int | None = Field(None, ge=1)
    """Keep only the first images of each split, for a trial run."""


class CocoConfig(Section):
    """MS COCO captions: 2014 or 2017 annotation files, with their own splits or Karpathy's."""

    images: str = ""
    """The folder that holds train2014/, val2014/, train2017/ or val2017/, or the photographs themselves."""
    annotations: list[str] = []
    """captions_*.json files; the split is taken from the file name (train or val)."""
    karpathy: str | None = None
    """dataset_coco.json: captions and the Karpathy split from one file; annotations are then not needed."""
    restval: bool = True
    """Karpathy only: count the restval images as training images, as the literature does."""
    limit: int | None = Field(None, ge=1)
    """Keep only the first images of each split, for a trial run."""


class DataConfig(PictureChecks):
    """The data set of an experiment; only the section that ``dataset`` names is read."""

    dataset: Literal["scenes", "flickr8k", "flickr30k", "coco", "pairs"] = "scenes"
    scenes: ScenesConfig = ScenesConfig()
    flickr8k: Flickr8kConfig = Flickr8kConfig()
    flickr30k: Flickr30kConfig = Flickr30kConfig()
    coco: CocoConfig = CocoConfig()
    pairs: PairsConfig = PairsConfig()

    @model_validator(mode="after")
    def _sources_are_named(self) -> Self:
        if self.dataset == "flickr8k" and not (self.flickr8k.images and self.flickr8k.text):
            raise ValueError("data.flickr8k.images and data.flickr8k.text must name the photographs and the captions")
        if self.dataset == "flickr30k" and not self.flickr30k.images:
            raise ValueError("data.flickr30k.images must name the Parquet files or the photographs")
        if self.dataset == "coco" and not (self.coco.images and (self.coco.annotations or self.coco.karpathy)):
            raise ValueError("data.coco.images and either data.coco.annotations or data.coco.karpathy must be given")
        if self.dataset == "pairs":
            self._sources_of_pairs_are_named()
        return self

    def _sources_of_pairs_are_named(self) -> None:
        if self.pairs.source == "table" and not self.pairs.table:
            raise ValueError("data.pairs.table must name a CSV, TSV, JSON lines or Parquet file")
        flickr8k = self.flickr8k.images and self.flickr8k.text and self.pairs.chinese
        if self.pairs.source == "flickr8k" and not flickr8k:
            raise ValueError("data.flickr8k.images, data.flickr8k.text and data.pairs.chinese must be given")


class ScenesSettings(Section):
    """What the stage ``data_scenes`` reads."""

    scenes: ScenesConfig = ScenesConfig()


class Flickr8kSettings(PictureChecks):
    """What the stage ``data_flickr8k`` reads."""

    flickr8k: Flickr8kConfig = Flickr8kConfig()


class Flickr30kSettings(PictureChecks):
    """What the stage ``data_flickr30k`` reads."""

    flickr30k: Flickr30kConfig = Flickr30kConfig()


class CocoSettings(PictureChecks):
    """What the stage ``data_coco`` reads."""

    coco: CocoConfig = CocoConfig()


class PairsSettings(PictureChecks):
    """What the stage ``data_pairs`` reads."""

    pairs: PairsConfig = PairsConfig()
    flickr8k: Flickr8kConfig = Flickr8kConfig()
    scenes: ScenesConfig = ScenesConfig()
