"""Generates the documentation page that lists the stages."""

from collections.abc import Iterable

from vitcapr.pipeline.stage import Form, Parameter, Role, Stage, each_stage

HEAD = """# The stages

Every stage is one command, `vitcapr stage NAME`, and one module of `vitcapr/stages/`. The rules run these commands, and
`snakemake -n -p` prints them. `vitcapr stage NAME --help` explains every option. `vitcapr stage --markdown` writes this
page from the declarations.

Every stage also takes `--log FILE`. A stage with settings takes `--settings`, as JSON or as the path of a JSON file.
An option in square brackets is optional. An option with dots may be given several times. The result cache stores the
results of a stage with a star.
"""


def stages_page() -> str:
    """The content of ``docs/stages.md``."""
    stages = list(each_stage())
    computing = [stage for stage in stages if stage.figure is None]
    drawing = [stage for stage in stages if stage.figure is not None]
    return "\n".join([HEAD, *_table(computing), "", "## Stages that draw", "", *_table(drawing), ""])


def _table(stages: Iterable[Stage]) -> list[str]:
    rows = [
        f"| `{stage.name}`{' *' if stage.cached else ''} | {stage.summary} | {_options(stage, Role.INPUT)} "
        f"| {_options(stage, Role.OUTPUT)} | {_options(stage, Role.VALUE)} |"
        for stage in stages
    ]
    return ["| stage | what it does | reads | writes | values |", "| --- | --- | --- | --- | --- |", *rows]


def _options(stage: Stage, role: Role) -> str:
    return " ".join(map(_option, stage.of_role(role)))


def _option(parameter: Parameter) -> str:
    words = f"`{parameter.option}`" + ("" if parameter.form is Form.ONE else " …")
    return words if parameter.required else f"[{words}]"
