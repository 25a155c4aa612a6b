"""The program ``vitcapr``: finds the command and loads nothing else."""

import difflib
import runpy
import sys

from vitcapr import __version__
from vitcapr.errors import EXIT_BAD_INPUT

COMMANDS: dict[str, dict[str, str]] = {
    "An experiment": {
        "status": "What would be computed again, and why.",
        "config": "Check a configuration, show it in full, or print its schema.",
        "table": "Print the scores of a summary.",
        "features": "Inspect, verify, export and tidy stored features.",
    },
    "Its stages, as the rules call them": {
        "data_scenes": "Render pictures with captions and masks.",
        "data_flickr8k": "Flickr8k on disk -> manifest.",
        "data_coco": "MS COCO on disk -> manifest.",
        "vocabulary": "Captions -> vocabulary and word numbers.",
        "word_vectors": "A GloVe file -> the embedding to start from.",
        "train_backbone": "Train the small ViT of the rendered pictures.",
        "extract": "Pictures -> features, one task of several.",
        "seal": "The parts of all tasks -> verified features.",
        "train_captioner": "Features and captions -> a captioner.",
        "decode": "A captioner -> captions of a split.",
        "score": "Captions -> BLEU, METEOR, ROUGE-L, CIDEr.",
        "ground": "Attention -> the share of it that falls on the object.",
        "draw_curves": "Training curves.",
        "draw_captions": "Captioned images.",
        "draw_attention": "Attention by word.",
        "draw_text": "Word frequencies and caption lengths.",
        "summary": "All scores -> one table.",
    },
}


def main() -> None:
    """Run ``vitcapr COMMAND ...`` as ``python -m vitcapr.cli.COMMAND ...``."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage())
        return
    if arguments[0] == "--version":
        print(f"vitcapr {__version__}")
        return
    command = arguments[0].replace("-", "_")
    known = [name for group in COMMANDS.values() for name in group]
    if command not in known:
        close = difflib.get_close_matches(command, known, n=1)
        remedy = f"did you mean '{close[0]}'?" if close else "vitcapr --help lists the commands"
        print(f"error: no command '{arguments[0]}'; {remedy}", file=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)
    sys.argv = [f"vitcapr {command}", *arguments[1:]]
    runpy.run_module(f"vitcapr.cli.{command}", run_name="__main__")


def usage() -> str:
    width = max(len(name) for group in COMMANDS.values() for name in group)
    lines = ["Usage: vitcapr COMMAND [OPTIONS]     vitcapr COMMAND --help explains one", ""]
    for title, group in COMMANDS.items():
        lines += [f"{title}:", *(f"  {name:{width}}  {line}" for name, line in group.items()), ""]
    lines += ["The whole pipeline: snakemake --cores 2 [--configfile experiments/NAME.yaml]"]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
