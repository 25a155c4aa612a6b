"""Run one stage of the pipeline, as the rules do."""

import inspect
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError, did_you_mean
from vitcapr.pipeline.run import run_stage
from vitcapr.pipeline.stage import JOB, Parameter, Role, Stage, each_stage, find_stage, read_json
from vitcapr.progress import print_lines

LOG = "--log"
_AS_JSON = "as JSON or as the path of a JSON file"


def app() -> None:
    """Run a stage, or list all."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print_lines(listing())
    elif arguments == ["--markdown"]:
        print(stages_page(), end="")
    else:
        name, *words = arguments
        stage = find_stage(name)
        if {"-h", "--help"} & set(words):
            print_lines(explain(stage))
        else:
            run_stage(stage, **read_words(stage, words))


def read_words(stage: Stage, words: Sequence[str]) -> dict[str, Any]:
    """The values of ``--option VALUE`` for each option of a stage, of ``--log FILE``, and of ``--job JOB``.

    The option of several files is repeated. Files by their names are JSON text or the path of a JSON file.

    Raises:
        UserError: an option is unknown, has no value or stands twice.
    """
    values: dict[str, Any] = {}
    options = {each.option: each for each in stage.options.values()}
    for option, value in zip(words[::2], [*words[1::2], None], strict=False):
        if option not in (*options, LOG, JOB):
            remedy = did_you_mean(option, options, f"vitcapr stage {stage.name} --help lists the options")
            raise UserError(f"the stage {stage.name} has no option '{option}'", remedy=remedy)
        if value is None:
            raise UserError(f"{option} has no value", remedy=f"write {option} VALUE")
        if option == JOB:
            given = dict(read_json(value, JOB))
        elif option == LOG:
            given = {"log": Path(value)}
        elif options[option].holds is list:
            given = {options[option].name: [*values.pop(options[option].name, []), value]}
        else:
            given = {options[option].name: read_json(value, option) if options[option].holds is dict else value}
        for name in given.keys() & values.keys():
            raise UserError(f"'{name}' is given twice", where=option)
        values |= given
    return values


def listing() -> str:
    """The text of ``vitcapr stage --help``."""
    stages = list(each_stage())
    width = max(len(stage.name) for stage in stages)
    lines = [f"  {stage.name:{width}}  {stage.summary}" for stage in stages]
    return "\n".join(["Usage: vitcapr stage NAME [OPTIONS]     vitcapr stage NAME --help explains one", "", *lines])


def explain(stage: Stage) -> str:
    """The text of ``vitcapr stage NAME --help``."""
    options = {each.option: _help(each) for each in stage.options.values()}
    options |= {JOB: f"All options {_AS_JSON}", LOG: "A file that receives every line of progress"}
    width = max(map(len, options))
    lines = [f"  {option:{width}}  {text}" for option, text in options.items()]
    usage = f"Usage: vitcapr stage {stage.name} --OPTION VALUE ..."
    return "\n".join([usage, "", inspect.getdoc(stage.function) or "", "", *lines])


def _help(option: Parameter) -> str:
    if option.role is Role.SETTINGS:
        return f"Settings of the stage {_AS_JSON}"
    more: dict[Any, str] = {list: "; once for each", dict: f"; by their names {_AS_JSON}"}
    optional = "" if option.required else " [optional]"
    return f"{option.help}{more[option.holds] if option.holds else ''}{optional}"


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
    words = [(each.required, f"`{each.option}`{'' if each.holds is None else ' …'}") for each in stage.of_role(role)]
    return " ".join(option if required else f"[{option}]" for required, option in words)
