"""A stage is declared once: the signature of its function names its inputs, its outputs and its values.

From the signature follow the job of a rule and its check, the help of the command, the fingerprint, the run record, the
key of the result cache and the row in the docs. docs/architecture.md lists the forms of a parameter.

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
from functools import cache, cached_property, reduce
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, NewType, TypeVar, Union, get_args, get_origin

from pydantic import ValidationError, create_model
from typing_extensions import TypeAliasType

from vitcapr.config.base import Section, StageSettings
from vitcapr.errors import UserError, as_user_error, did_you_mean
from vitcapr.loader import LOCAL, check_reads, modules_of_extensions
from vitcapr.progress import Reporter

STAGES = "vitcapr.stages"
COMMAND = ("python", "-m", "vitcapr", "stage")

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
SOURCE = "source"
"""The value of a stage that is a hub id or a folder of the user, whose content counts."""
Source = Annotated[str, "Hub id or folder of the checkpoint"]
DEVICE = "device"
"""The value of a stage that computes on a GPU if there is one; a rule gives it the experiment's device."""
Device = Annotated[str, "auto, cpu or cuda"]
StoreRoot = Annotated[str, "Folder of all feature stores"]


Role = enum.Enum("Role", ["INPUT", "OUTPUT", "VALUE", "SETTINGS", "GIVEN"])
"""The role of a parameter in its stage; the call itself passes those that are ``GIVEN``, such as the reporter."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a stage.

    Attributes:
        annotation: the type of its value, with files as paths.
        holds: ``list`` for several files, ``dict`` for files with names, else None.
        type: ``Path``, the type of the value, the class of the settings, or the type of a passed object.
        default: ``...`` for a required one.
    """

    name: str
    role: Role
    annotation: Any
    holds: type[Any] | None
    type: type[Any]
    default: Any
    help: str
    files: tuple[str, ...] = ()
    """The files of a folder that a rule must list; empty for a file."""

    @property
    def required(self) -> bool:
        return self.default is ...

    def paths(self, value: Any) -> list[Path]:
        """Return the files that a value of this parameter names, in their order.

        For a folder, they are the files that a rule must list.
        """
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            return [path for one in value for path in self.paths(one)]
        return [] if value is None else [value / file for file in self.files] or [value]

    def names(self, value: Any) -> list[str]:
        """Return the name of every file in a value of this parameter, if files have names; a name may have several."""
        named = value or {} if self.holds is dict else {}
        return [name for name, each in named.items() for _ in (each if isinstance(each, list) else [each])]


@dataclass(frozen=True)
class Stage:
    """A declared stage.

    Attributes:
        cached: whether its results are stored in the result cache and restored from there.
        execution_only: dotted keys of the settings, and names of values, that do not change the result.
        processes: the setting that holds the number of training processes.
        shares: the output of jobs that share one result, or the input of the stage that joins them: neither their
            number nor a missing one makes a finished result stale.
    """

    function: Callable[..., None]
    cached: bool
    execution_only: frozenset[str]
    processes: str | None
    shares: str | None

    def __call__(self, *args: Any, **values: Any) -> None:
        self.function(*args, **values)

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def module(self) -> str:
        return self.function.__module__

    @property
    def draws(self) -> bool:
        """Whether it draws figures, as the name of its module says."""
        return self.name.startswith("draw_")

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring."""
        return " ".join((inspect.getdoc(self.function) or "").partition("\n\n")[0].split())

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        signature = inspect.signature(self.function)
        return {name: _parameter(each, self.module) for name, each in signature.parameters.items()}

    def of_role(self, role: Role) -> list[Parameter]:
        return [parameter for parameter in self.parameters.values() if parameter.role is role]

    @property
    def settings(self) -> type[StageSettings] | None:
        """The class of its settings."""
        return next((each.type for each in self.of_role(Role.SETTINGS)), None)

    @property
    def options(self) -> dict[str, Parameter]:
        """The parameters that a job gives."""
        return {name: each for name, each in self.parameters.items() if each.role is not Role.GIVEN}

    @cached_property
    def job(self) -> type[Section]:
        """The options as one section: what a job gives is validated in one pass."""
        fields: dict[str, Any] = {name: (each.annotation, each.default) for name, each in self.options.items()}
        return create_model(self.name, __base__=Section, **fields)

    def read(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of every option, by the plain values of a job. None stands for the default.

        Raises:
            UserError: an option is unknown, missing or of another type.
        """
        given: dict[str, Any] = {} if self.settings is None else {"settings": {}}
        given |= {name: value for name, value in job.items() if value is not None}
        try:
            return dict(self.job.model_validate(given))
        except ValidationError as error:
            from vitcapr.config.reading import mistakes

            where = f"vitcapr stage {self.name}"
            wrong = [UserError(what, where=where, remedy=remedy) for what, remedy in mistakes(self.job, given, error)]
            raise as_user_error(wrong) from error

    def values_of(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values among the plain values of a job: what is neither a file nor the settings."""
        return {each.name: job[each.name] for each in self.of_role(Role.VALUE) if job.get(each.name) not in (None, "")}

    def command(self, job: Mapping[str, Any], log: Path | None = None) -> list[str]:
        """Return the words of the command that runs a job. The order of files counts."""
        given = {name: value for name, value in job.items() if value is not None}
        text = json.dumps(given, separators=(",", ":"), ensure_ascii=False, default=str)
        return [*COMMAND, self.name, "--job", text, *(() if log is None else ("--log", str(log)))]

    def result_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the plain settings without the execution-only keys; the others determine the result."""
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
    shares: str | None = None,
) -> Callable[[Callable[..., None]], Stage]:
    """Declare a function as a stage, whose name is that of its module; see :class:`Stage`.

    The device and the number of processes are always execution only.
    """
    how = {*execution_only, *(() if processes is None else (processes,))}

    def declare(function: Callable[..., None]) -> Stage:
        device = {DEVICE} & inspect.signature(function).parameters.keys()
        return Stage(function, cached, frozenset(how | device), processes, shares)

    return declare


def find_stage(name: str) -> Stage:
    """Return the stage with this name; a UserError if there is none.

    It is imported by name, so that the code hash of one stage does not reach other stages.
    """
    if name not in _modules():
        remedy = did_you_mean(name, stage_names(), "vitcapr stage --help lists the stages")
        raise UserError(f"unknown stage '{name}'", remedy=remedy)
    declared: Stage = getattr(importlib.import_module(_modules()[name]), name)
    return declared


def import_own_stages() -> None:
    """Import the stages of a study before its rules use them; a UserError says which one is wrong, and why."""
    for name, (module, path) in modules_of_extensions("stages").items():
        if module.startswith(LOCAL):
            try:
                check_reads(path, f"the stage '{name}'")
                find_stage(name)
            except UserError:
                raise
            except Exception as error:
                what = f"the stage '{name}' cannot be used: {type(error).__name__}: {error}"
                raise UserError(what, where=path, remedy="correct the file") from error


def stage_names() -> tuple[str, ...]:
    """Return the names of all stages, without importing one."""
    return tuple(sorted(_modules()))


@cache
def _modules() -> dict[str, str]:
    """Return the module of each stage, by its name: in ``vitcapr/stages/``, and in extensions."""
    core = {path.stem: f"{STAGES}.{path.stem}" for path in Path(__file__).parents[1].glob("stages/[!_]*.py")}
    return core | {name: module for name, (module, _) in modules_of_extensions("stages").items()}


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
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    text = marks[0] if marks else ""
    return Parameter(parameter.name, role, annotation, holds, one, default, text, files)


def _is(annotation: Any, *origins: Any) -> bool:
    return get_origin(annotation) in origins


def _parts(annotation: Any) -> list[Any]:
    return [part for part in get_args(annotation) if part is not types.NoneType]


def get_dotted(values: Any, key: str) -> Any:
    """Return the value at a dotted key of plain settings."""
    return reduce(getitem, key.split("."), values)


def each_stage() -> Iterator[Stage]:
    return map(find_stage, stage_names())
