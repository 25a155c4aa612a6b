"""``vitcapr stage NAME ...``: run one stage with the command line generated from its signature."""

import sys

from vitcapr.pipeline.command_line import application
from vitcapr.pipeline.docs import stages_page
from vitcapr.pipeline.stage import each_stage, find_stage


def app() -> None:
    """Run a stage, or list all."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(listing())
        return
    if arguments == ["--markdown"]:
        print(stages_page(), end="")
        return
    name = arguments[0]
    sys.argv = [f"vitcapr stage {name}", *arguments[1:]]
    application(find_stage(name))(prog_name=sys.argv[0])


def listing() -> str:
    """The text of ``vitcapr stage --help``."""
    stages = list(each_stage())
    width = max(len(stage.name) for stage in stages)
    lines = [f"  {stage.name:{width}}  {stage.summary}" for stage in stages]
    return "\n".join(["Usage: vitcapr stage NAME [OPTIONS]     vitcapr stage NAME --help explains one", "", *lines])
