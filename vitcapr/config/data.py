"""Configuration of every data set: its images and captions, and the location of the user's files."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import DATA, Only, Section, StageSettings, UserPath, find_data, one_spelling
from vitcapr.formats.image_root import IN_A_FOLDER


class PictureChecks(Section):
    """Handling of photographs that are damaged or too large."""

    max_rejected: float = Field(0.1, ge=0, le=1)
    """Maximum share of the captioned images that may be left out as missing or damaged, and of the captions that may be
    left out because their row cannot be read; more stop the data stage. 0: a single one stops it."""


class Withdrawn(Section):
    """Images that were withdrawn from the data set."""

    withdrawn: Annotated[UserPath | None, DATA] = None
    """CSV file of the images that vitcapr withdraw has withdrawn: they and their captions are left out everywhere."""


class LeaveOut(Withdrawn):
    """Training captions that an audit holds for wrong."""

    leave_out: Annotated[UserPath | None, DATA] = None
    """audit.parquet of vitcapr pairs audit, or the CSV file of marks that its page exports: training captions that are
    probably wrong are left out, and listed in rejected.csv (not with data.dataset: pairs)."""
    leave_out_above: Annotated[float, Only("leave_out")] = Field(0.5, gt=0, le=1)
    """Least probability of being wrong of a caption that is left out."""


class DatasetConfig(Section):
    """The section of one data set."""

    needed: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """The keys that have to be given; of several in one tuple, one of them."""
    stage: ClassVar[str] = "data_photographs"
    """The stage that reads the data set."""
    has_objects: ClassVar[bool] = False
    """Whether the data set has object masks."""
    limit_key: ClassVar[str] = "limit"
    """The key that says how many images there are at most."""
    languages: ClassVar[tuple[str, ...]] = ("en",)
    """The languages of the captions, where no key names them."""

    @property
    def known_languages(self) -> tuple[str, ...] | None:
        """The languages of the captions; None: not known before the files are read."""
        return self.languages

    @property
    def size_line(self) -> str:
        """Describe the data set in one line; the line is empty before its files are read."""
        return ""

    def image_counts(self) -> Counter[str] | None:
        """Return the number of images of each split, where the settings say it."""
        return None

    def missing(self) -> list[str]:
        """Return the keys that have to be given, if this is the data set of the experiment, and are not."""
        return [" or ".join(keys) for keys in self.needed if not any(getattr(self, key) for key in keys)]

    def located(self) -> dict[str, Any]:
        """Return the value of every key, with the paths of this machine."""

        def locate(value: Any) -> Any:
            if isinstance(value, list):
                return list(map(locate, value))
            return value and one_spelling(str(find_data(value)))

        fields = type(self).model_fields
        return self.values() | {name: locate(getattr(self, name)) for name in fields if DATA in fields[name].metadata}

    def image_root(self, data: Any) -> Path | None:  # noqa: ARG002
        """Return the folder or zip of the user's photographs on this machine; None if the stage makes the images.

        Args:
            data: the configuration of all data sets.
        """
        return None


class DataSettings(StageSettings):
    """The settings of a data-set stage: sections of ``data``."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        return cls(**{name: getattr(config.data, name) for name in cls.model_fields})

    def canonical(self) -> dict[str, Any]:
        return {key: value for key, value in super().canonical().items() if value is not None}

    def user_files(self) -> Iterator[tuple[str, Path]]:
        yield from ((f"data.{key}", path) for key, path in super().user_files())


class PhotographsConfig(DatasetConfig):
    needed: ClassVar[tuple[tuple[str, ...], ...]] = (("images",),)

    images: Annotated[UserPath, DATA] = ""
    """Folder or zip of the photographs."""
    limit: int | None = Field(None, ge=1)
    """Number of images to keep in all, for a trial run: the first of each split, in proportion; null: all."""

    def image_root(self, data: Any) -> Path | None:  # noqa: ARG002
        path = find_data(self.images)
        return path.parent if path.suffix.lower() in IN_A_FOLDER else path

    def keys(self) -> dict[str, Any]:
        """Return the arguments of the reader."""
        return {name: value for name, value in self.located().items() if name != "limit"}


class Flickr8kConfig(PhotographsConfig):
    """Flickr8k: a folder of photographs (or the official zip) and its caption files."""

    needed = (("images",), ("text",))

    images: Annotated[UserPath, DATA] = ""
    """Path of the folder Flicker8k_Dataset or of Flickr8k_Dataset.zip."""
    text: Annotated[UserPath, DATA] = ""
    """Path of the folder Flickr8k_text (official captions and splits), or of Kaggle's captions.txt."""
    splits: Literal["official", "random"] = "official"
    """official: 6,000 / 1,000 / 1,000 by the lists in the text folder; random: as many, by a hash of the name."""

    def user_files(self) -> Iterator[tuple[str, Path]]:
        yield from super().user_files()
        # A captions file may be named without its folder. The lists of the official splits beside it are read too.
        text = find_data(self.text)
        if self.text and text.is_file():
            yield from ((f"text/{path.name}", path) for path in sorted(text.parent.glob("Flickr_8k.*Images.txt")))


class Flickr30kConfig(PhotographsConfig):
    """Flickr30k: Parquet files that hold pictures and captions, or photographs and a caption file."""

    images: Annotated[UserPath, DATA] = ""
    """Folder of the Parquet files (or one of these files), the folder flickr30k-images, or a zip of that folder."""
    text: Annotated[UserPath | None, DATA] = None
    """dataset_flickr30k.json, results_20130124.token or Kaggle's results.csv; null: the Parquet files have captions."""
    lists: Annotated[UserPath | None, DATA] = None
    """dataset_flickr30k.json, used only for its splits; needed if neither images nor text define splits."""
    splits: Literal["karpathy", "paper", "random", "whole"] = "karpathy"
    """karpathy: 29,000 / 1,014 / 1,000 from the files or the lists; paper: the same with one caption per image (the
    BLIP-2 report); random: the same sizes, by a hash of the name; whole: all images in the test split, one caption
    each."""


class CocoConfig(PhotographsConfig):
    """MS COCO captions: 2014 or 2017 annotation files, with their own splits or Karpathy's."""

    needed = (("images",), ("annotations", "karpathy"))

    images: Annotated[UserPath, DATA] = ""
    """Folder that holds train2014/, val2014/, train2017/ or val2017/, or one of these folders."""
    annotations: Annotated[list[UserPath], DATA, Only("karpathy", None)] = []
    """captions_*.json files; the file name gives the split (train or val)."""
    karpathy: Annotated[UserPath | None, DATA] = None
    """dataset_coco.json, which holds captions and the Karpathy split."""


class TableColumns(Section):
    """Names of the columns; null: one of the usual names. The columns of language and split are optional."""

    image: str | None = None
    """Path of the image, relative to images, or its bytes (Parquet); null: image, file_name, filename, image_path, path
    or file. In tars: the ending of the images, such as left.jpg."""
    caption: str | list[str] | None = None
    """One caption, or a list of captions (in CSV and TSV: a JSON list); several columns: [caption_0, caption_1]; null:
    caption, captions or text."""
    language: str | None = None
    """Language of the caption, such as en or zh; null: language, if there is such a column."""
    split: str | None = None
    """train, validation, test or none; null: split, if there is such a column."""


class TableConfig(PhotographsConfig):
    """Photographs and captions of the user."""

    images: Annotated[UserPath, DATA] = ""
    """Folder or zip of the images; or a folder with metadata.csv or metadata.jsonl, WebDataset tars or Parquet files,
    or one such tar or Parquet file."""
    captions: Annotated[UserPath | list[UserPath] | None, DATA] = None
    """CSV, TSV, JSON lines (.jsonl), Parquet, or JSON in COCO's form; or a list of such files, whose names may give
    their splits; null: the captions are in images."""
    columns: TableColumns = TableColumns()
    language: str | None = None
    """Language of the captions without a language of their own; null: en."""
    splits: Literal["auto", "given", "hash", "seeded"] = "auto"
    """given: by the column split, or by the names of files and folders, such as train, val2017 and test-00000.parquet;
    hash: by a hash of each image's path, so that more images change no split; seeded: a random sample of exact size;
    auto: given if there are such splits, else hash."""
    validation: float = Field(0.1, gt=0, lt=0.5)
    """Share of the validation split (hash and seeded)."""
    test: float = Field(0.1, ge=0, lt=0.5)
    """Share of the test split (hash and seeded)."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of the hash and of the random sample."""

    @property
    def known_languages(self) -> tuple[str, ...] | None:
        return (self.language,) if self.language and self.columns.language is None else None

    @model_validator(mode="after")
    def _splits_are_drawn_or_given(self) -> Self:
        if self.columns.split is not None and self.splits in ("hash", "seeded"):
            raise ValueError(f"columns.split has no effect with splits: {self.splits}; remove one of them")
        return self

    def keys(self) -> dict[str, Any]:
        shares = ("validation", "test", "seed")
        changed = [key for key in shares if getattr(self, key) != type(self).model_fields[key].default]
        return {**super().keys(), "changed": changed}


class PairsConfig(DatasetConfig):
    """Chinese and English pairs; 50,000 by default, or fewer if the source has fewer."""

    languages = ("en", "zh")
    stage = "data_pairs"

    source: Literal["table", "flickr8k"] = "table"
    """table: your own table; flickr8k: data.flickr8k and its Chinese captions."""
    table: Annotated[UserPath, DATA] = ""
    """Path of the table: CSV, TSV, JSON lines (.jsonl) or Parquet, with the columns text (or caption) and image (or one
    of its usual names: columns of data.table). Optional columns: language (en or zh; else texts with Han characters
    count as Chinese), category (class for stratified splits; else derived from the words), split (rows with the value
    'test' form the test set; all other rows are split by the settings below)."""
    images: Annotated[UserPath, DATA] = ""
    """Folder or zip that the image paths in the table are relative to; empty: the folder of the table."""
    encoding: Literal["path", "base64"] = "path"
    """Content of the image column. Bytes (in Parquet) are read in either case."""
    chinese: Annotated[UserPath, DATA] = ""
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
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of all sampling."""

    def image_root(self, data: Any) -> Path | None:
        if self.source == "flickr8k":
            return Path(find_data(data.flickr8k.images))
        return find_data(self.images) if self.images else find_data(self.table).parent

    def missing(self) -> list[str]:
        key = {"table": "table", "flickr8k": "chinese"}.get(self.source)
        return [key] if key and not getattr(self, key) else []


class PhotographsSettings(LeaveOut, PictureChecks, DataSettings):
    """The settings of the stage ``data_photographs``: the section of one data set."""

    coco: CocoConfig | None = None
    flickr30k: Flickr30kConfig | None = None
    flickr8k: Flickr8kConfig | None = None
    table: TableConfig | None = None

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        data = config.data
        keys = ["max_rejected", data.dataset, *(("leave_out", "leave_out_above") if data.leave_out else ())]
        keys += ["withdrawn"] if data.withdrawn else []
        return cls(**{name: getattr(data, name) for name in keys})

    @property
    def dataset(self) -> tuple[str, PhotographsConfig]:
        """The name of the data set and its section."""
        return next((name, section) for name, section in self if isinstance(section, PhotographsConfig))


DataSetName = Literal["table", "flickr8k", "flickr30k", "coco", "pairs"]
"""Rooms add others."""


class DataConfig(LeaveOut, PictureChecks):
    """The data set of an experiment. Only the section that ``dataset`` names is read."""

    dataset: DataSetName = "table"
    licence: str | None = None
    """Licence of the data set, for the attributes of stores; null: as known of a public data set."""
    source: str | None = None
    """Where the data set comes from, an address or a sentence; null: as known of a public data set."""
    table: TableConfig = TableConfig()
    flickr8k: Flickr8kConfig = Flickr8kConfig()
    flickr30k: Flickr30kConfig = Flickr30kConfig()
    coco: CocoConfig = CocoConfig()
    pairs: PairsConfig = PairsConfig()

    @model_validator(mode="after")
    def _the_data_set_names_its_files(self) -> Self:
        source = [self.pairs.source] if self.dataset == "pairs" and self.pairs.source != "table" else []
        read = [self.dataset, *source]
        if self.leave_out and not isinstance(getattr(self, self.dataset), PhotographsConfig):
            raise ValueError(f"leave_out has no effect with data.dataset: {self.dataset}; remove it")
        if keys := [f"data.{name}.{key}" for name in read for key in getattr(self, name).missing()]:
            raise ValueError(f"{' and '.join(keys)} must be given")
        for name, section in self:
            if name not in read and isinstance(section, DatasetConfig) and section != type(section)():
                raise ValueError(f"data.{name} has no effect with data.dataset: {self.dataset}; name {name} there")
        return self
