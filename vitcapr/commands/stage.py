"""Run one stage of the pipeline, as the rules do."""

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter

from vitcapr.commands.main import Log
from vitcapr.errors import UserError
from vitcapr.formats.records import read_record
from vitcapr.pipeline.run import run_stage
from vitcapr.pipeline.stage import FROM_FILE, Form, Parameter, Role, Stage, each_stage, find_stage
from vitcapr.progress import print_lines

_LOG = inspect.Parameter("log", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Log)


def app() -> None:
    """Run a stage, or list all."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print_lines(listing())
        return
    if arguments == ["--markdown"]:
        print(stages_page(), end="")
        return
    name, *words = arguments
    sys.argv = [f"vitcapr stage {name}", *_from_file(words)]
    application(find_stage(name))(prog_name=sys.argv[0])


def _from_file(words: list[str]) -> list[str]:
    """The words, with those of a file in place of ``--arguments FILE``: a rule with thousands of files has more words
    than the system takes."""
    if FROM_FILE not in words[:-1]:
        return words
    place = words.index(FROM_FILE)
    listed = read_record(Path(words[place + 1]), TypeAdapter(list[str]), "a list of arguments", "run snakemake")
    return [*words[:place], *listed, *words[place + 2 :]]


def listing() -> str:
    """The text of ``vitcapr stage --help``."""
    stages = list(each_stage())
    width = max(len(stage.name) for stage in stages)
    lines = [f"  {stage.name:{width}}  {stage.summary}" for stage in stages]
    return "\n".join(["Usage: vitcapr stage NAME [OPTIONS]     vitcapr stage NAME --help explains one", "", *lines])


def application(stage: Stage) -> typer.Typer:
    """The program of one stage."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(stage.name, help=inspect.getdoc(stage.function))(_command(stage))
    return app


def _command(stage: Stage) -> Callable[..., None]:
    options = stage.of_role(Role.INPUT, Role.OUTPUT, Role.VALUE, Role.SETTINGS)

    def command(log: Path | None, **given: Any) -> None:
        values = {option.name: _value(option, given[option.name]) for option in options}
        run_stage(stage, log, **values)

    parameters = [*map(_option, sorted(options, key=lambda option: not option.required)), _LOG]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _option(parameter: Parameter) -> inspect.Parameter:
    kinds = {Role.INPUT: Path, Role.OUTPUT: Path, Role.SETTINGS: str}
    kind: Any = kinds.get(parameter.role, parameter.type)
    default = ... if parameter.required else parameter.default
    help_text = parameter.help
    if parameter.role is Role.SETTINGS:
        default, help_text = "{}", "The stage's settings as JSON, or the path of a JSON file"
    if parameter.by_name:
        kind, help_text = str, f"NAME=FILE, once for each: {help_text}"
    elif parameter.form is Form.MANY:
        help_text = f"{help_text}; once for each"
    if parameter.form is not Form.ONE:
        kind = list[kind]
    if not parameter.required and parameter.default is None:
        kind = kind | None
    annotation = Annotated[kind, typer.Option(parameter.option, help=help_text)]
    default = inspect.Parameter.empty if default is ... else default
    return inspect.Parameter(parameter.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _value(parameter: Parameter, value: Any) -> Any:
    if not parameter.by_name or value is None:
        return value
    groups = _by_name(value, parameter.option)
    if parameter.form is Form.GROUPED:
        return groups
    for name, files in groups.items():
        if len(files) > 1:
            raise UserError(f"{parameter.option} uses the name '{name}' twice", remedy="give every file its own name")
    return {name: files[0] for name, files in groups.items()}


def _by_name(values: Sequence[str], option: str) -> dict[str, list[Path]]:
    """The files of each name, in the given order. A name ends at the first ``=``."""
    files: dict[str, list[Path]] = {}
    for value in values:
        name, _, file = value.partition("=")
        if not name or not file:
            raise UserError(f"{option} {value} is not NAME=FILE", remedy="write the name, '=' and the path of the file")
        files.setdefault(name, []).append(Path(file))
    return files


def stages_page() -> str:
    """The content of ``docs/stages.md``."""
    page = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    stages = list(each_stage())
    computing = [stage for stage in stages if stage.figure is None]
    drawing = [stage for stage in stages if stage.figure is not None]
    return "\n".join([page, *_table(computing), "", "## Stages that draw", "", *_table(drawing), ""])


def _table(stages: Iterable[Stage]) -> list[str]:
    rows = [
        f"| `{stage.name}`{' *' if stage.cached else ''} | {stage.summary} | {_options(stage, Role.INPUT)} "
        f"| {_options(stage, Role.OUTPUT)} | {_options(stage, Role.VALUE)} |"
        for stage in stages
    ]
    return ["| stage | what it does | reads | writes | values |", "| --- | --- | --- | --- | --- |", *rows]


def _options(stage: Stage, role: Role) -> str:
    words = [(each.required, f"`{each.option}`{'' if each.form is Form.ONE else ' …'}") for each in stage.of_role(role)]
    return " ".join(option if required else f"[{option}]" for required, option in words)
