"""A stage is declared once: the signature of its function names its inputs, its outputs and its values.

::

    @stage(cached=True, execution_only={"decoding.batch_images"})
    def decode(
        features: In[FeaturesFile],
        split: Split,
        settings: DecodeSettings,
        report: Reporter,
        captions: Out[CaptionsFile],
        attention: Out[AttentionFile] | None = None,
    ) -> None:
        \"\"\"Caption every image of a split.\"\"\"

From the signature follow the job of a rule and its check, the command line and its help, the fingerprint, the run
record, the key of the result cache and the row in the docs.

A parameter is one of:

- ``In[Kind]``, ``In[Kind] | None``, ``list[In[Kind]]``, ``dict[str, In[Kind]]`` (one of each name) or
  ``dict[str, list[In[Kind]]]`` (several of each name): files that the stage reads;
- ``Out[Kind]``, ``Out[Kind] | None``, ``list[Out[Kind]]``: files that it writes;
- ``settings``, a :class:`~vitcapr.config.base.StageSettings`;
- ``report: Reporter`` and ``code: CodeHash``, which the declaration passes to the stage;
- a value: ``str``, ``int``, ``float`` or ``bool``, with its help as ``Annotated[str, "help"]``.

A stage's module imports heavy libraries inside the function, so that Snakemake and ``--help`` do not import torch.
"""

import copy
import enum
import importlib
import inspect
import json
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NewType, TypeVar, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypeAliasType

from vitcapr.config.base import StageSettings
from vitcapr.config.reading import parse
from vitcapr.errors import UserError, did_you_mean
from vitcapr.files import read_text
from vitcapr.progress import Reporter
from vitcapr.rooms import modules_of_rooms

if TYPE_CHECKING:
    from vitcapr.pipeline.figure import Figure

STAGES = "vitcapr.stages"
COMMAND = ("python", "-m", "vitcapr", "stage")
JOB = "job"
"""The option of the values of all options, as JSON or as the path of a JSON file."""

A = TypeVar("A", bound=Path)
In = TypeAliasType("In", Path, type_params=(A,))
"""The path of a file or folder that the stage reads."""
Out = TypeAliasType("Out", Path, type_params=(A,))
"""The path of a file or folder that the stage writes."""
CodeHash = NewType("CodeHash", str)
"""The hash of the stage's code, for stages that keep unfinished work and compare it with the current code."""

Split = Annotated[str, "train, validation or test"]
ModelName = Annotated[str, "Name of the model, for the tables"]
DecodingName = Annotated[str, "Name of the decoding, for the tables"]
Language = Annotated[str, "Language of the captions"]
CHECKPOINT = object()
"""Marks a value that is a hub id or a folder of the user."""
Source = Annotated[str, "Hub id or folder of the checkpoint", CHECKPOINT]
DEVICE = "device"
"""The value of a stage that computes on a GPU if there is one; a rule gives it the experiment's device."""
Device = Annotated[str, "auto, cpu or cuda"]
StoreRoot = Annotated[str, "Folder of all feature stores"]


class Role(enum.Enum):
    INPUT = "reads"
    OUTPUT = "writes"
    VALUE = "value"
    SETTINGS = "settings"
    GIVEN = "given"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a stage.

    Attributes:
        annotation: the type of its value, with files as paths.
        holds: ``list`` for several files, ``dict`` for files with names, else None.
        type: ``Path``, the type of the value, the class of the settings, or the type of a passed object.
        required: whether it has no default.
    """

    name: str
    role: Role
    annotation: Any
    holds: type[Any] | None
    type: type[Any]
    required: bool
    default: Any
    help: str
    files: tuple[str, ...] = ()
    """The files of a folder that a rule must list; empty for a file."""
    is_checkpoint: bool = False
    """Whether the value is a hub id or a folder of the user, whose content counts."""

    @property
    def option(self) -> str:
        """The option on the command line, such as ``--query-bank``."""
        return "--" + self.name.replace("_", "-")

    def paths(self, value: Any) -> list[Path]:
        """The files that a value of this parameter names. For a folder: the files that a rule must list."""
        if value is None:
            return []
        if isinstance(value, dict):
            return [path for each in value.values() for path in self.paths(each)]
        if isinstance(value, list):
            return [path for each in value for path in self.paths(each)]
        return [value / name for name in self.files] if self.files else [value]

    def named(self, value: Any) -> list[tuple[str, Path]]:
        """The files that a value of this parameter names, in its order, each with its name, or ""."""
        if isinstance(value, dict):
            return [(name, path) for name, each in value.items() for path in self.paths(each)]
        return [("", path) for path in self.paths(value)]

    def given(self, value: Any) -> Any:
        """The value with the type of the parameter; None stands for the default.

        Args:
            value: plain, as a job holds it; settings and files by their names may be JSON text, or the path of a JSON
                file.

        Raises:
            UserError: the value has another type.
        """
        if isinstance(value, str) and (self.role is Role.SETTINGS or self.holds is dict):
            value = read_json(value, self.option)
        if self.role is Role.SETTINGS:
            return parse(self.type, value or {}, self.option)
        if value is None:
            return self.default
        try:
            return TypeAdapter(self.annotation).validate_python(value)
        except ValidationError as error:
            reason = error.errors(include_url=False, include_input=False)[0]["msg"]
            raise UserError(f"{self.option} is wrong: {value!r:.80}: {reason}") from error


@dataclass(frozen=True)
class Stage:
    """A declared stage.

    Attributes:
        cached: whether its results are stored in the result cache and restored from there.
        execution_only: dotted keys of the settings, and names of values, that do not change the result.
        processes: the setting that holds the number of training processes.
        figure: the figure that the stage draws, or None.
    """

    function: Callable[..., None]
    cached: bool
    execution_only: frozenset[str]
    processes: str | None
    figure: "Figure | None"

    def __call__(self, *args: Any, **values: Any) -> None:
        self.function(*args, **values)

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def module(self) -> str:
        return self.function.__module__

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring."""
        return " ".join((inspect.getdoc(self.function) or "").partition("\n\n")[0].split())

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        signature = inspect.signature(self.function)
        return {name: _parameter(each, self.module) for name, each in signature.parameters.items()}

    def of_role(self, *roles: Role) -> list[Parameter]:
        return [parameter for parameter in self.parameters.values() if parameter.role in roles]

    @property
    def settings(self) -> type[StageSettings] | None:
        """The class of its settings."""
        marked = self.of_role(Role.SETTINGS)
        return marked[0].type if marked else None

    @property
    def options(self) -> dict[str, Parameter]:
        """The parameters that a job gives."""
        return {name: each for name, each in self.parameters.items() if each.role is not Role.GIVEN}

    def read(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """The value of every option, by the plain values of a job.

        Raises:
            UserError: an option is unknown, missing or of another type.
        """
        for name in sorted(job.keys() - self.options.keys()):
            remedy = did_you_mean(name, self.options, f"vitcapr stage {self.name} --help lists the options")
            raise UserError(f"the stage {self.name} has no option '{name}'", remedy=remedy)
        for name, option in self.options.items():
            if option.required and option.role is not Role.SETTINGS and job.get(name) is None:
                raise UserError(f"the stage {self.name} needs {option.option}", remedy=option.help)
        return {name: option.given(job.get(name)) for name, option in self.options.items()}

    def result_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The plain settings without the execution-only keys; the others determine the result."""
        kept: dict[str, Any] = copy.deepcopy(settings)
        for key in self.execution_only:
            *sections, last = key.split(".")
            section = kept
            for name in sections:
                section = section.get(name, {})
            section.pop(last, None)
        return kept


def stage(
    *,
    cached: bool = False,
    execution_only: Collection[str] = (),
    processes: str | None = None,
    figure: "Figure | None" = None,
) -> Callable[[Callable[..., None]], Stage]:
    """Declare a function as a stage; its module's name is the stage's.

    Args:
        cached, execution_only, processes, figure: see :class:`Stage`. The device and the number of processes are always
            execution only.
    """
    how = {*execution_only, *(() if processes is None else (processes,))}

    def declare(function: Callable[..., None]) -> Stage:
        device = {DEVICE} & inspect.signature(function).parameters.keys()
        return Stage(function, cached, frozenset(how | device), processes, figure)

    return declare


def find_stage(name: str) -> Stage:
    """The stage with this name. It is imported by name, so that the code hash of one stage does not reach other stages.

    Raises:
        UserError: there is no such stage.
    """
    if name not in stage_names():
        remedy = did_you_mean(name, stage_names(), "vitcapr stage --help lists the stages")
        raise UserError(f"unknown stage '{name}'", remedy=remedy)
    module = _modules()[name]
    declared = getattr(importlib.import_module(module), name, None)
    if not isinstance(declared, Stage):
        raise UserError(f"the module {module} declares no stage '{name}'", remedy="see vitcapr/pipeline")
    return declared


def stage_names() -> tuple[str, ...]:
    """The names of all stages, without importing one."""
    return tuple(sorted(_modules()))


@cache
def _modules() -> dict[str, str]:
    """The module of each stage: in ``vitcapr/stages/``, or in a room."""
    core = Path(__file__).parents[1].glob("stages/[!_]*.py")
    return {path.stem: f"{STAGES}.{path.stem}" for path in core} | {**modules_of_rooms("stages")}


def _parameter(parameter: inspect.Parameter, module: str) -> Parameter:
    whole = parameter.annotation
    annotation, *marks = get_args(whole) if _is(whole, Annotated) else [whole]
    one = _parts(annotation)[0] if _is(annotation, Union, types.UnionType) else annotation
    holds = get_origin(one) if _is(one, list, dict) else None
    while _is(one, list, dict):
        one = _parts(one)[-1]
    files: tuple[str, ...] = ()
    if _is(one, In, Out):
        role = Role.INPUT if _is(one, In) else Role.OUTPUT
        one, text, *listed = _parts(_parts(one)[0])
        marks, files = marks or [text], listed[0] if listed else ()
    elif one in (Reporter, CodeHash):
        role = Role.GIVEN
    elif isinstance(one, type) and issubclass(one, StageSettings):
        role = Role.SETTINGS
    elif one in (str, int, float, bool):
        role = Role.VALUE
    else:
        raise TypeError(f"{module}: a stage cannot have a parameter of type {annotation}")
    required, text = parameter.default is inspect.Parameter.empty, marks[0] if marks else ""
    default = None if required else parameter.default
    return Parameter(
        parameter.name, role, annotation, holds, one, required, default, text, files, is_checkpoint=CHECKPOINT in marks
    )


def _is(annotation: Any, *origins: Any) -> bool:
    return get_origin(annotation) in origins


def _parts(annotation: Any) -> list[Any]:
    return [part for part in get_args(annotation) if part is not types.NoneType]


def job_text(job: Mapping[str, Any]) -> str:
    """The plain values of a job as JSON, in their order: that of files counts."""
    given = {name: value for name, value in job.items() if value is not None}
    return json.dumps(given, separators=(",", ":"), ensure_ascii=False, default=str)


def read_json(text: str, option: str) -> Any:
    """The value of an option: JSON text, or the path of a JSON file.

    Raises:
        UserError: the text is neither.
    """
    source: object = option
    if not text.lstrip().startswith("{"):
        source = Path(text)
        try:
            text = read_text(Path(text))
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{option} is neither JSON text nor a readable file", where=text) from error
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(f"{option} is not valid JSON: {error}", where=source) from error
    except RecursionError as error:
        raise UserError(f"{option} is nested too deeply", where=source) from error


def get_dotted(values: Any, key: str) -> Any:
    """The value at a dotted key of plain settings."""
    for part in key.split("."):
        values = values[part]
    return values


def each_stage() -> Iterator[Stage]:
    return map(find_stage, stage_names())
