"""Every benchmark in one run: ``make bench``. Ratios against the bare limit, and the tables of the pages.

Nothing is needed but the installation: the pictures are rendered, the ViT has the size of ViT-Ti/16 and random
weights. Prints the ratios, and which are worse than those of benchmarks/results.json by more than a tenth. Writes this
file and, with every number of the benchmarks, results/benchmarks.json.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.inputs import VIT_TINY, measured, render, write_vit

PICTURES = 512
OTHERS = ("training", "decoding", "language_model", "retrieval")
LOADER = "python -m benchmarks.loader --channels 192"


def extraction(folder: Path) -> Any:
    manifest, vit = render(folder, PICTURES, 224), write_vit(folder / "vit", VIT_TINY)
    return measured(
        "benchmarks.extraction",
        *("--manifest", str(manifest), "--backbone", str(vit), "--images", str(PICTURES)),
    )


def dry_run() -> dict[str, float]:
    """CPU seconds of ``snakemake --dry-run`` on the default configuration, the best of three."""
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "all"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2))
    return {"seconds": min(seconds)}


def ratios(report: dict[str, Any]) -> dict[str, list[Any]]:
    """Each ratio and its aim."""
    training, decoding, language_model = report["training"], report["decoding"], report["language_model"]
    one, five = language_model["training_one_caption"], language_model["training_five_captions"]
    return {
        "extraction, files to sealed store / bare forward pass": [report["extraction"]["ratio"], "at least 0.85"],
        "random batches from the store / rows of one .npy memory map": [report["loader"]["ratio"], "at least 0.9"],
        "random batches from the store / zarr's oindex": [report["loader"]["ratio_to_oindex"], ""],
        "training steps fed from the store / fed from memory": [training["store_to_memory"], "near 1"],
        "training steps fed from a store of int8 / fed from memory": [training["eight_bits_to_memory"], "near 1"],
        "training step / a plain prototype's": [training["step_to_plain_step"], "at least 3"],
        "training step / with the plain formula of attention": [
            *(training["step_to_step_with_plain_attention"], "at least 1.5"),
        ],
        "greedy / a plain batched prototype": [round(decoding["greedy_over_plain_greedy"], 2), "above 1"],
        "beam 5 / a plain batched prototype": [round(decoding["beam_5_over_plain_beam_5"], 2), "above 1"],
        "beam 5 / the reference implementation": [round(decoding["beam_5_over_reference_beam_5"]), ""],
        "training step of a language model, one caption an image / transformers' loop": [one["speed"], "at least 0.95"],
        "training step of a language model, five captions an image / transformers' loop": [five["speed"], "above 1"],
        "greedy of a language model / generate": [language_model["decoding"]["beam_1"], "at least 0.95"],
        "beam 5 of a language model / generate": [language_model["decoding"]["beam_5"], "above 1"],
        "time of the ranks of 5,000 x 25,000 / of the bare matrix product": [report["retrieval"]["ratio"], "at most 2"],
        "dry-run of the default DAG, CPU seconds": [report["dry_run"]["seconds"], "at most 3"],
    }


def tables(report: dict[str, Any]) -> dict[str, results.Table]:
    """What the pages show, by its name in the file."""
    training, language_model = report["training"], report["language_model"]
    decoding = {
        name.replace("_", " "): [round(value["processor_ms_per_caption"], 2)]
        for name, value in report["decoding"].items()
        if isinstance(value, dict)
    }
    pieces = {
        f"training step, {each} an image": [step["speed"], step["our_mb"], step["their_mb"]]
        for each, step in (
            ("one caption", language_model["training_one_caption"]),
            ("five captions", language_model["training_five_captions"]),
        )
    }
    searches = {"greedy, 12 pieces": "beam_1", "beam of 5, 12 pieces": "beam_5"}
    pieces |= {name: [language_model["decoding"][key], None, None] for name, key in searches.items()}
    sources = {"memory": "memory", "a store": "store", "a store of int8": "eight_bits"}
    steps = {name: [training[f"images_per_second_from_{key}"]] for name, key in sources.items()}
    memory = ["", "faster than transformers", "kept for the backward pass, MB", "transformers, MB"]
    return {
        "ratios": _table("make bench", ["measured in one run", "", "aim"], ratios(report)),
        "decoding": _table("python -m benchmarks.decoding", ["", "CPU ms a caption"], decoding),
        "training": _table("python -m benchmarks.training", ["training steps fed from", "images a second"], steps),
        "language model": _table("python -m benchmarks.language_model", memory, pieces),
    }


def _table(command: str, columns: list[str], rows: dict[str, list[Any]]) -> results.Table:
    return {"command": command, "columns": columns, "rows": rows}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report: dict[str, Any] = {
            "extraction": extraction(Path(folder)),
            "loader": measured(*LOADER.split()[2:]),
            **{
                name: measured(f"benchmarks.{name}") for name in ("training", "decoding", "language_model", "retrieval")
            },
            "dry_run": dry_run(),
        }
    path = Path("results/benchmarks.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
    slower = results.slower(ratios(report), results.read().get("ratios", {"rows": {}})["rows"])
    results.write(tables(report))
    print("\n".join([results.markdown(results.read()["ratios"]), *slower]))


if __name__ == "__main__":
    main()
