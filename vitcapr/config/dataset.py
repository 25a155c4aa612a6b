"""What every data set's part of the configuration has, and where the user's files lie."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from vitcapr.config.base import Section, StageSettings


def find_data(name: str) -> Path:
    """Where a data file or folder of the configuration is: under VITCAPR_DATA, else where its path says."""
    root = os.environ.get("VITCAPR_DATA")
    return Path(root) / name if root and (Path(root) / name).exists() else Path(name)


class PictureChecks(Section):
    """What becomes of photographs that are damaged or too large."""

    on_bad_image: Literal["reject", "fail"] = "reject"
    """reject: leave the image out, count it and list it in rejected.csv; fail: stop with one line."""
    max_pixels: int = Field(100_000_000, ge=1)
    """A picture that claims more pixels than this is taken for a decompression bomb."""


class DatasetConfig(Section):
    """The section of one data set."""

    paths: ClassVar[tuple[str, ...]] = ()
    """The keys that name files or folders of the user, one or a list of them."""

    def missing(self, data: Any) -> str | None:  # noqa: ARG002
        """What has to be named and is not, as a sentence; asked of the data set that the experiment uses.

        Args:
            data: the :class:`~vitcapr.config.data.DataConfig` that the section is part of.
        """
        return None

    def located(self) -> Self:
        """The same section, with its paths as they are on this machine."""

        def locate(value: Any) -> Any:
            return [str(find_data(name)) for name in value] if isinstance(value, list) else str(find_data(value))

        named = {key: getattr(self, key) for key in self.paths}
        return self.model_copy(update={key: locate(value) for key, value in named.items() if value})

    def user_files(self) -> Iterator[tuple[str, Path]]:
        """The files and folders that it names, by their keys; of a list, ``key.0`` and so on."""
        for key in self.paths:
            value = getattr(self, key)
            if isinstance(value, list):
                yield from ((f"{key}.{place}", Path(name)) for place, name in enumerate(value))
            elif value:
                yield key, Path(value)


class DataSettings(StageSettings):
    """What the stage of a data set reads: sections of ``data``, with the paths on this machine."""

    @classmethod
    def of(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        values = {name: getattr(config.data, name) for name in cls.model_fields}
        return cls(
            **{name: each.located() if isinstance(each, DatasetConfig) else each for name, each in values.items()}
        )

    def sources(self) -> dict[str, Path]:
        """The user's files and folders that the data set is read from, by their keys in the configuration."""
        sections = {name: getattr(self, name) for name in type(self).model_fields}
        return {
            f"data.{name}.{key}": path
            for name, section in sections.items()
            if isinstance(section, DatasetConfig)
            for key, path in section.user_files()
        }


class PhotographSettings(PictureChecks, DataSettings):
    """The settings of a data set of photographs, which may be damaged."""
