"""The parts of the configuration that all data sets share, and the location of the user's files."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field

from vitcapr.config.base import Section, StageSettings
from vitcapr.config.names import one_spelling
from vitcapr.files import find_under


def find_data(name: str) -> Path:
    """The path of a data file or folder: under VITCAPR_DATA if it exists there, else as given."""
    return find_under("VITCAPR_DATA", name)


class PictureChecks(Section):
    """Handling of photographs that are damaged or too large."""

    max_pixels: int = Field(100_000_000, ge=1)
    """Maximum number of pixels in a picture; a larger picture is treated as a decompression bomb."""
    max_rejected: float = Field(0.1, ge=0, le=1)
    """Maximum share of the captioned images that may be left out as missing or damaged, and of the captions that may be
    left out because their row cannot be read; more stop the data stage. 0: a single one stops it."""


class DatasetConfig(Section):
    """The section of one data set."""

    paths: ClassVar[tuple[str, ...]] = ()
    """The keys whose value is a path of the user, or a list of paths."""
    needed: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """The keys that have to be given; of several in one tuple, one of them."""
    stage: ClassVar[str] = "data_photographs"
    """The stage that reads the data set."""
    has_objects: ClassVar[bool] = False
    """Whether the data set has object masks."""
    languages: ClassVar[tuple[str, ...]] = ("en",)
    """The languages of the captions, where no key names them."""

    @property
    def known_languages(self) -> tuple[str, ...] | None:
        """The languages of the captions; None: not known before the files are read."""
        return self.languages

    @property
    def size_line(self) -> str:
        """What a run says of the data set; empty before its files are read."""
        return ""

    def image_counts(self) -> Counter[str] | None:
        """The number of images of each split, where the settings say it."""
        return None

    def missing(self) -> list[str]:
        """The keys that have to be given, if this is the data set of the experiment, and are not."""
        return [" or ".join(keys) for keys in self.needed if not any(getattr(self, key) for key in keys)]

    def located(self) -> Self:
        """A copy of the section with the paths of this machine."""

        def locate(value: Any) -> Any:
            if isinstance(value, list):
                return [locate(name) for name in value]
            return one_spelling(str(find_data(value)))

        named = {key: getattr(self, key) for key in self.paths}
        return self.model_copy(update={key: locate(value) for key, value in named.items() if value})

    def user_files(self) -> Iterator[tuple[str, Path]]:
        """The user's files and folders, each with its key; the items of a list have the keys ``key.0``, ``key.1``,
        ..."""
        for key in self.paths:
            value = getattr(self, key)
            if isinstance(value, list):
                yield from ((f"{key}.{place}", Path(name)) for place, name in enumerate(value))
            elif value:
                yield key, Path(value)


class DataSettings(StageSettings):
    """The settings of a data-set stage: sections of ``data`` with the paths of this machine."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        values = {name: getattr(config.data, name) for name in cls.model_fields}
        return cls(
            **{name: each.located() if isinstance(each, DatasetConfig) else each for name, each in values.items()}
        )

    def user_files(self) -> Iterator[tuple[str, Path]]:
        yield from ((f"data.{key}", path) for key, path in super().user_files())
