"""The program ``vitcapr``: imports only the module of the given command."""

import difflib
import importlib
import os
import sys
from collections.abc import Sequence

from vitcapr import __version__
from vitcapr.errors import EXIT_BAD_INPUT, EXIT_NOT_READ
from vitcapr.process import prepare_process

COMMANDS = {
    "init": "Make a folder for a study of your own, from which snakemake runs.",
    "caption": "Caption photographs: files, folders or patterns.",
    "search": "Find images by words or by an image.",
    "serve": "Caption photographs in the browser, on a page of this machine.",
    "evaluate": "Score captions in COCO's format, or embeddings for retrieval, with intervals.",
    "train-head": "Train projection heads on two stores of your own.",
    "align": "Compare ways to align two stores over the number of training pairs.",
    "judge": "Compare caption metrics with human judgments.",
    "models": "Publish trained models, and fetch published ones.",
    "features": "Inspect, verify, move, import, export and tidy stored features.",
    "convert-timm": "Convert a ViT checkpoint of timm to a backbone.",
    "pairs": "Write pairs as a table, with the pictures in Base64.",
    "config": "Check a configuration, show it in full, or print its schema.",
    "explore": "Write a folder to look at all images with captions, attention and neighbours.",
    "table": "Print the scores of a summary.",
    "track": "Write training curves and scores to TensorBoard, MLflow or trackio.",
    "status": "Say what a run would compute again, and why.",
    "why": "Say what made an artefact, from what, where, and what it cost.",
    "diff": "Say what differs between two results, and in what they were made from.",
    "gc": "List what nothing needs any more, and delete it.",
    "stage": "Run one stage of the pipeline, as the rules do.",
}


def main() -> None:
    """Run ``vitcapr COMMAND ...``. It ends quietly if nobody reads its output any more, as after ``| head``."""
    prepare_process()
    try:
        try:
            _main()
        finally:
            print(end="", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # For what is written when Python ends.
        sys.exit(EXIT_NOT_READ)


def _main() -> None:
    arguments = sys.argv[1:]
    debug = arguments[:1] == ["--debug"]
    if debug:
        arguments = arguments[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage())
    elif arguments[0] == "--version":
        print(f"vitcapr {__version__}")
    elif arguments[0] not in COMMANDS:
        _refuse(arguments[0], COMMANDS, "vitcapr --help lists the commands")
    else:
        _run(arguments[0], arguments[1:], debug)


def usage() -> str:
    """The text of ``vitcapr --help``."""
    lines = [f"  {name:14}{line}" for name, line in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: vitcapr [--debug] COMMAND [OPTIONS]     vitcapr COMMAND --help explains one",
            "",
            *lines,
            "",
            "--debug shows the traceback of an error.",
            "The whole pipeline: snakemake --cores 2 [--configfile experiments/NAME.yaml]",
        ]
    )


def _run(command: str, arguments: Sequence[str], debug: bool) -> None:
    from vitcapr.commands.program import run_program

    sys.argv = [f"vitcapr {command}", *arguments]
    module = importlib.import_module(f"vitcapr.commands.{command.replace('-', '_')}")
    run_program(module.app, debug)


def _refuse(word: str, known: Sequence[str] | dict[str, str], remedy: str) -> None:
    close = difflib.get_close_matches(word, known, n=1)
    print(f"error: no command '{word}'; {f'did you mean {close[0]!r}?' if close else remedy}", file=sys.stderr)
    sys.exit(EXIT_BAD_INPUT)


if __name__ == "__main__":
    main()
