"""Configuration of every data set: its images and captions."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.dataset import DatasetConfig, PictureChecks
from vitcapr.config.pairs import PairsConfig
from vitcapr.config.paths import UserPath
from vitcapr.config.table import TableConfig


class ScenesConfig(DatasetConfig):
    """The embedded data set of rendered pictures."""

    images: int = Field(10000, ge=10)
    """Number of pictures. Picture i does not depend on this number."""
    size: int = Field(112, ge=32, le=512)
    """Width and height in pixels."""
    seed: int = Field(1, ge=0)
    """Seed of the data set; each seed gives different pictures."""
    validation: float = Field(0.05, gt=0, lt=0.5)
    """Share of pictures in the validation split."""
    test: float = Field(0.05, gt=0, lt=0.5)
    """Share of pictures in the test split."""
    near_duplicates: bool = True
    """Every second validation and test picture is the one before it in its split, with one fact changed: a colour, a
    texture, the place or a side (dataset scenes only)."""


class Flickr8kConfig(DatasetConfig):
    """Flickr8k: a folder of photographs (or the official zip) and its caption files."""

    paths: ClassVar = ("images", "text")

    images: UserPath = ""
    """Path of the folder Flicker8k_Dataset or of Flickr8k_Dataset.zip."""
    text: UserPath = ""
    """Path of the folder Flickr8k_text (official captions and splits), Flickr8k_text.zip, or Kaggle's captions.txt."""
    splits: Literal["official", "random"] = "official"
    """official: 6,000 / 1,000 / 1,000 by the lists in the text folder; random: the same sizes, drawn with seed."""
    seed: int = Field(0, ge=0)
    """Seed of the random split."""
    limit: int | None = Field(None, ge=1)
    """Number of images to keep in all, for a trial run: the first of each split, in proportion; null: all."""

    def missing(self, data: "DataConfig") -> str | None:  # noqa: ARG002
        if self.images and self.text:
            return None
        return "data.flickr8k.images and data.flickr8k.text must name the photographs and the captions"

    def user_files(self) -> Iterator[tuple[str, Path]]:
        yield from super().user_files()
        # A captions file may be named without its folder. The lists of the official splits beside it are read too.
        text = Path(self.text)
        if self.text and text.is_file():
            yield from ((f"text/{path.name}", path) for path in sorted(text.parent.glob("Flickr_8k.*Images.txt")))


class Flickr30kConfig(DatasetConfig):
    """Flickr30k: Parquet files that hold pictures and captions, or photographs and a caption file."""

    paths: ClassVar = ("images", "text", "lists")

    images: UserPath = ""
    """Folder of the Parquet files (or one of these files), the folder flickr30k-images, or a zip of that folder."""
    text: UserPath | None = None
    """dataset_flickr30k.json or results_20130124.token; null: the Parquet files hold the captions."""
    lists: UserPath | None = None
    """dataset_flickr30k.json, used only for its splits; needed if neither images nor text define splits."""
    splits: Literal["karpathy", "paper", "random"] = "karpathy"
    """karpathy: 29,000 / 1,014 / 1,000 from the files or the lists; paper: the same with one caption per image (the
    BLIP-2 report); random: the same sizes, drawn with seed."""
    seed: int = Field(0, ge=0)
    """Seed of the random split."""
    limit: int | None = Field(None, ge=1)
    """Number of images to keep in all, for a trial run: the first of each split, in proportion; null: all."""

    def missing(self, data: "DataConfig") -> str | None:  # noqa: ARG002
        return None if self.images else "data.flickr30k.images must name the Parquet files or the photographs"


class CocoConfig(DatasetConfig):
    """MS COCO captions: 2014 or 2017 annotation files, with their own splits or Karpathy's."""

    paths: ClassVar = ("images", "annotations", "karpathy")

    images: UserPath = ""
    """Folder that holds train2014/, val2014/, train2017/ or val2017/, or one of these folders."""
    annotations: list[UserPath] = []
    """captions_*.json files; the file name gives the split (train or val)."""
    karpathy: UserPath | None = None
    """dataset_coco.json, which holds captions and the Karpathy split; annotations are then not needed."""
    restval: bool = True
    """Count the restval images as training images, as the literature does (karpathy only)."""
    limit: int | None = Field(None, ge=1)
    """Number of images to keep in all, for a trial run: the first of each split, in proportion; null: all."""

    def missing(self, data: "DataConfig") -> str | None:  # noqa: ARG002
        if self.images and (self.annotations or self.karpathy):
            return None
        return "data.coco.images and either data.coco.annotations or data.coco.karpathy must be given"

    def user_files(self) -> Iterator[tuple[str, Path]]:
        for key, path in super().user_files():
            if not (self.karpathy and key.startswith("annotations")):
                yield key, path


class DataConfig(PictureChecks):
    """The data set of an experiment. Only the section that ``dataset`` names is read."""

    dataset: Literal["scenes", "table", "flickr8k", "flickr30k", "coco", "pairs"] = "scenes"
    licence: str | None = None
    """Licence of the data set, for croissant.json and the attributes of stores; null: as known of a public data set."""
    source: str | None = None
    """Where the data set comes from, an address or a sentence; null: as known of a public data set."""
    table: TableConfig = TableConfig()
    scenes: ScenesConfig = ScenesConfig()
    flickr8k: Flickr8kConfig = Flickr8kConfig()
    flickr30k: Flickr30kConfig = Flickr30kConfig()
    coco: CocoConfig = CocoConfig()
    pairs: PairsConfig = PairsConfig()

    @model_validator(mode="after")
    def _the_data_set_names_its_files(self) -> Self:
        section: DatasetConfig = getattr(self, self.dataset)
        if problem := section.missing(self):
            raise ValueError(problem)
        return self
