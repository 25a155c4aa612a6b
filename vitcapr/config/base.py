"""Sections of the configuration, the names and paths in them: unknown keys are errors, and values are immutable."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from vitcapr.files import find_under

D = TypeVar("D")


class Only:
    """Marks a key that exists only with some values of another key of the same section.

    ``heads: Annotated[int, Only("architecture", "transformer")] = 4``. Without values, the other key must be set.
    """

    def __init__(self, key: str, *values: Any) -> None:
        self.key, self.values = key, values

    def holds(self, section: "Section") -> bool:
        chosen = getattr(section, self.key)
        return chosen in self.values if self.values else bool(chosen)

    def __str__(self) -> str:
        return f"{self.key} {' or '.join('null' if value is None else str(value) for value in self.values)}".rstrip()


def find_data(name: str) -> Path:
    """Return the path of a data file or folder: under VITCAPR_DATA if it exists there, else as given."""
    return find_under("VITCAPR_DATA", name)


def find_backbone(source: str) -> Path:
    """Return the folder of a model: under VITCAPR_BACKBONES if it exists there, else ``source``.

    For a hub id the folder does not exist.
    """
    return find_under("VITCAPR_BACKBONES", source)


def find_checkpoint(source: str) -> Path | None:
    """Return the local folder of a checkpoint; None for a hub id, whose revision counts."""
    return folder if (folder := find_backbone(source)).is_dir() else None


class UserFile:
    """Marks a key that holds the path of a file or folder of the user, or a list of them, whose content counts.

    Attributes:
        find: returns the path on this machine, or None for a value that is no path.
    """

    def __init__(self, find: Callable[[str], Path | None]) -> None:
        self.find = find


DATA, CHECKPOINT = UserFile(find_data), UserFile(find_checkpoint)


@dataclass(frozen=True)
class Entry:
    """Marks a key that holds the name of an entry of another section of the experiment, or a list of such names.

    Attributes:
        mirrored: whether it may be a backbone that mirrors its images.
    """

    section: str
    mirrored: bool = False


def with_default(key: str, value: str) -> BeforeValidator:
    """Return a validator that fills in the key by which a union of sections is discriminated."""
    return BeforeValidator(lambda section: {key: value, **section} if isinstance(section, Mapping) else section)


def conditions(section: type["Section"]) -> dict[str, list[Only]]:
    """Return the conditions of each key that has some."""
    marks = {
        name: [mark for mark in field.metadata if isinstance(mark, Only)]
        for name, field in section.model_fields.items()
    }
    return {name: only for name, only in marks.items() if only}


class Section(BaseModel):
    """A part of the configuration. Unknown keys are errors; values are immutable.

    A key whose condition (:class:`Only`) does not hold is an error, and is not part of the serialised section.
    """

    chosen_by: ClassVar[str | None] = None
    """For a section of a union: the key whose value tells which section it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def _excluded(self) -> dict[str, Only]:
        """Return the keys whose condition does not hold, with the condition."""
        return {name: mark for name, marks in conditions(type(self)).items() for mark in marks if not mark.holds(self)}

    @model_validator(mode="wrap")
    @classmethod
    def _a_truth_value_is_no_number(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Refuse ``epochs: yes``, which is true in YAML and would be one epoch."""
        section = handler(values)
        for key, value in values.items() if isinstance(values, Mapping) else ():
            given, parsed = (each if isinstance(each, list) else [each] for each in (value, getattr(section, key)))
            if any(isinstance(one, bool) and one is not other for one, other in zip(given, parsed, strict=False)):
                raise ValueError(f"{key} must be a number, not true or false")
            if any(isinstance(one, int) and abs(one) >= 2**63 for one in parsed):
                raise ValueError(f"{key} must be less than 2^63")
        return section

    @model_validator(mode="after")
    def _keys_belong_together(self) -> Self:
        wrong = [
            f"{name} needs {mark}" + (f", not {chosen}" if isinstance(chosen := getattr(self, mark.key), str) else "")
            for name, mark in self._excluded().items()
            if name in self.model_fields_set
        ]
        if wrong:
            raise ValueError("\n".join(wrong))
        return self

    @model_serializer(mode="wrap")
    def _without_excluded(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        excluded = self._excluded()
        return {name: value for name, value in serialise(self).items() if name not in excluded}

    def canonical(self) -> dict[str, Any]:
        """Return the settings as plain JSON values with every default, so that equal settings compare equal."""
        return self.model_dump(mode="json")

    def user_files(self) -> Iterator[tuple[str, Path]]:
        """Yield the user's files and folders that the section names, with their keys, such as ``backbone.source``."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            entries: Iterable[tuple[Any, Any]] = [(None, value)]
            if isinstance(value, Mapping | list):
                entries = value.items() if isinstance(value, Mapping) else enumerate(value)
            for entry, part in entries:
                key = name if entry is None else f"{name}.{entry}"
                if isinstance(part, Section):
                    yield from ((f"{key}.{inner}", path) for inner, path in part.user_files())
                for mark in field.metadata:
                    if isinstance(mark, UserFile) and part and (path := mark.find(part)) is not None:
                        yield key, path

    def values(self, *without: str) -> dict[str, Any]:
        """Return the values of all keys except ``without``, as arguments; a key without effect has its default."""
        arguments = {name: getattr(self, name) for name in type(self).model_fields if name not in without}
        return {name: value.values() if isinstance(value, Section) else value for name, value in arguments.items()}

    def to(self, kind: type[D]) -> D:
        """Return a dataclass of the library, each field with the value of this section's key of the same name."""
        names = {field.name for field in fields(kind)} & type(self).model_fields.keys()  # type: ignore[arg-type]
        return kind(**{name: getattr(self, name) for name in names})


class StageSettings(Section):
    """The settings of one stage, taken from the configuration."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        """Return the settings of one job.

        By default each field takes the section of the experiment's configuration with its name; where the job has a
        wildcard of this name, such as ``decoding``, it takes that entry of ``decodings``.

        Args:
            config: an :class:`~vitcapr.config.experiment.ExperimentConfig`.
            wildcards: the wildcards of the job, as attributes.
        """
        fields = cls.model_fields
        entries = {
            name: getattr(config, f"{name}s")[getattr(wildcards, name)]
            for name in fields.keys() & vars(wildcards).keys()
        }
        return cls(**{name: getattr(config, name) for name in fields.keys() - entries.keys()}, **entries)


LONGEST = 100
_SOUND = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_BESIDE_EXPERIMENTS = ("stores", "result_cache")


def check_name(name: str) -> str:
    """Return ``name`` if it is safe as a folder, as a wildcard and as a word of a command.

    Raises:
        ValueError: it is not safe.
    """
    if not _SOUND.fullmatch(name) or len(name) > LONGEST:
        raise ValueError(
            f"a name has 1 to {LONGEST} letters (a to z), digits, '_', '.' and '-'; it must not start with '.' or '-'"
        )
    return name


def not_reserved(*reserved: str) -> AfterValidator:
    """Return a validator that rejects the names ``reserved`` in upper or lower case."""

    def check(name: str) -> str:
        if name.casefold() in reserved:
            raise ValueError(f"'{name}' is a reserved name in the results folder; choose another one")
        return name

    return AfterValidator(check)


Name = Annotated[str, AfterValidator(check_name)]
ExperimentName = Annotated[Name, not_reserved(*_BESIDE_EXPERIMENTS)]
"""Name of an experiment. Its folder is in ``results/``, beside the reserved ones."""
CaptionerName = Annotated[Name, not_reserved("retrieval", "information", "languages")]
"""Name of a captioner. Its scores are in ``metrics/``, beside the reserved folders."""
ModelName = Annotated[Name, not_reserved("untrained")]
"""Name of a dual encoder. Its embeddings are in ``embeddings/``, beside the reserved folder."""


ADOPTED = "store:"
"""Prefix of a source that is a feature store, not a network."""


def one_spelling(path: str) -> str:
    """Return the path without ``~``, ``./`` and a slash at its end, and relative if it is below the working folder.

    A name on the hub stays as it is, as do ``..``, which may lead through a symbolic link.
    """
    if path.startswith(ADOPTED):
        return ADOPTED + one_spelling(path.removeprefix(ADOPTED))
    if not path or "://" in path:
        return path
    return from_here(Path(path).expanduser())


def from_here(path: Path) -> str:
    """Return the path from the working folder on, if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


UserPath = Annotated[str, AfterValidator(one_spelling)]
"""The path of a file or folder of the user, or a name on the hub."""


def named_entries(section: Section, key: str) -> Iterator[tuple[str, Entry, list[str]]]:
    """Yield each key of a section, and of the sections below it, that names entries: its path, its mark and the names.

    Args:
        key: path of the section.
    """
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        for part, inner in (value if isinstance(value, dict) else {"": value}).items():
            place = ".".join(filter(None, (key, name, part)))
            if isinstance(inner, Section):
                yield from named_entries(inner, place)
            names = inner if isinstance(inner, list) else [] if inner is None else [inner]
            yield from ((place, mark, names) for mark in field.metadata if isinstance(mark, Entry))
