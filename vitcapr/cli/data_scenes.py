"""Render the embedded data set of pictures, captions and masks."""

import os
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.cli.parts.options import Log, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.data import ScenesSettings
from vitcapr.data.scenes.dataset import write_scenes
from vitcapr.progress import Reporter


def main(
    output_dir: Annotated[Path, typer.Option(help="The folder of the pictures, the masks and the manifest.")],
    processes: Annotated[int, typer.Option(min=0, help="Processes that render; 0 is one for each core.")] = 0,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Render pictures with captions and masks; picture i of a seed is the same whatever the number of pictures."""
    scenes = parse_settings(ScenesSettings, settings).scenes
    with Reporter(log) as reporter:
        write_scenes(
            output_dir,
            images=scenes.images,
            size=scenes.size,
            seed=scenes.seed,
            validation=scenes.validation,
            test=scenes.test,
            processes=processes or len(os.sched_getaffinity(0)),
            reporter=reporter,
        )


if __name__ == "__main__":
    launch(main)
