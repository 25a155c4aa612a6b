"""Run one stage of the pipeline, as the rules do."""

import argparse
import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from vitcapr.errors import UserError
from vitcapr.files import parse_json, read_json
from vitcapr.pipeline.run import run_stage
from vitcapr.pipeline.stage import Parameter, Role, Stage, each_stage, find_stage
from vitcapr.progress import print_lines

_FORM: dict[Any, str] = {None: "", list: ", as a list", dict: ", by their names"}
_WIDTH = 100
"""Columns of help that is not read in a terminal."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(message, where=self.prog, remedy=f"{self.prog} --help lists the keys of a job")

    def print_help(self, file: Any = None) -> None:
        print_lines(self.format_help(), stream=file, width=_WIDTH)


def app() -> None:
    """Run a stage, or list all."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print_lines(listing(), width=_WIDTH)
    elif arguments == ["--markdown"]:
        print(stages_page(), end="")
    else:
        stage = find_stage(arguments[0])
        given = parser(stage).parse_args(arguments[1:])
        run_stage(stage, given.log, **read_job(given.job))


def parser(stage: Stage) -> argparse.ArgumentParser:
    """Return the parser of the words after the name of the stage."""
    keys = "\n".join(f"  {name:18}{_explained(each)}" for name, each in stage.options.items())
    text = re.sub(r"(?<=\S)\n(?=\S)", " ", inspect.getdoc(stage.function) or "")
    about = f"{text}\n\nkeys of a job:\n{keys}"
    raw = argparse.RawDescriptionHelpFormatter
    made = _Parser(f"vitcapr stage {stage.name}", description=about, allow_abbrev=False, formatter_class=raw)
    made.add_argument("--job", required=True, help="its keys as JSON, or the path of a JSON file with them")
    made.add_argument("--log", type=Path, help="a file that receives every line")
    return made


def _explained(option: Parameter) -> str:
    text = option.help or "settings, sections of the configuration"
    return f"{text}{_FORM[option.holds]}{'' if option.required else ' (optional)'}"


def read_job(text: str) -> dict[str, Any]:
    """Return the values of a job: JSON text, or the path of a JSON file.

    Raises:
        UserError: the text is neither.
    """
    try:
        return dict(parse_json(text) if text.lstrip().startswith("{") else read_json(Path(text)))
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError(f"--job is not a JSON object: {error}", remedy="give one, or the path of a file") from error


def listing() -> str:
    """Return the text of ``vitcapr stage --help``."""
    stages = list(each_stage())
    width = max(len(stage.name) for stage in stages)
    lines = [f"  {stage.name:{width}}  {stage.summary}" for stage in stages]
    return "\n".join(["Usage: vitcapr stage NAME [OPTIONS]", "vitcapr stage NAME --help explains a stage.", "", *lines])


def stages_page() -> str:
    """Return the content of ``docs/stages.md``."""
    page = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    stages = list(each_stage())
    computing = [stage for stage in stages if not stage.draws]
    drawing = [stage for stage in stages if stage.draws]
    return "\n".join([page, *_table(computing), "", "## Stages that draw", "", *_table(drawing), ""])


def _table(stages: Iterable[Stage]) -> list[str]:
    rows = [
        f"| `{stage.name}`{' *' if stage.cached else ''} | {stage.summary} | {_options(stage, Role.INPUT)} "
        f"| {_options(stage, Role.OUTPUT)} | {_options(stage, Role.VALUE)} |"
        for stage in stages
    ]
    return ["| stage | what it does | reads | writes | values |", "| --- | --- | --- | --- | --- |", *rows]


def _options(stage: Stage, role: Role) -> str:
    words = [(each.required, f"`{each.name}`{'' if each.holds is None else ' …'}") for each in stage.of_role(role)]
    return " ".join(option if required else f"[{option}]" for required, option in words)
