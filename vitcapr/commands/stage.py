"""Run one stage of the pipeline, as the rules do."""

import argparse
import inspect
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from vitcapr.errors import UserError
from vitcapr.pipeline.run import run_stage
from vitcapr.pipeline.stage import JOB, Role, Stage, each_stage, find_stage, read_json
from vitcapr.progress import print_lines

_RAW = argparse.RawDescriptionHelpFormatter
_AS_JSON = "as JSON or as the path of a JSON file"
_MORE: dict[Any, str] = {None: "", list: "; once for each", dict: f"; by their names {_AS_JSON}"}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(message, where=self.prog, remedy=f"{self.prog} --help lists the options")


def app() -> None:
    """Run a stage, or list all."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print_lines(listing())
    elif arguments == ["--markdown"]:
        print(stages_page(), end="")
    else:
        stage = find_stage(arguments[0])
        run_stage(stage, **read_words(stage, arguments[1:]))


def read_words(stage: Stage, words: Sequence[str]) -> dict[str, Any]:
    """The values of ``--option VALUE`` for each option of a stage, of ``--log FILE``, and of ``--job JOB``.

    The option of several files is repeated. Files by their names are JSON text or the path of a JSON file.

    Raises:
        UserError: an option is unknown, has no value or stands twice.
    """
    about = inspect.getdoc(stage.function)
    parser = _Parser(
        f"vitcapr stage {stage.name}", description=about, allow_abbrev=False, formatter_class=_RAW, argument_default=[]
    )
    helps = {each.name: f"{each.help}{_MORE[each.holds]}" for each in stage.options.values()}
    helps |= {"settings": f"settings of the stage {_AS_JSON}"} if stage.settings is not None else {}
    for name, text in {**helps, JOB: f"all options {_AS_JSON}", "log": "a file that receives every line"}.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, action="append", metavar="VALUE", help=text.replace("%", "%%"))
    given = {name: values for name, values in vars(parser.parse_args(words)).items() if values}
    job = dict(read_json(given.pop(JOB)[0], f"--{JOB}")) if JOB in given else {}
    for name, values in given.items():
        several = name in stage.options and stage.options[name].holds is list
        if name in job or (len(values) > 1 and not several):
            parser.error(f"'{name}' is given twice")
        job[name] = values if several else Path(values[0]) if name == "log" else values[0]
    return job


def listing() -> str:
    """The text of ``vitcapr stage --help``."""
    stages = list(each_stage())
    width = max(len(stage.name) for stage in stages)
    lines = [f"  {stage.name:{width}}  {stage.summary}" for stage in stages]
    return "\n".join(["Usage: vitcapr stage NAME [OPTIONS]     vitcapr stage NAME --help explains one", "", *lines])


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
