"""Every benchmark in one run: ``make bench``. Ratios against the bare limit, as JSON and as a table.

Nothing is needed but the installation: the pictures are rendered, the ViT has the size of ViT-Ti/16 and random
weights. Writes results/benchmarks.json and results/benchmarks.md.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.inputs import VIT_TINY, measured, render, write_vit

RESULTS = Path("results")
PICTURES = 512


def extraction(folder: Path) -> Any:
    manifest, vit = render(folder, PICTURES, 224), write_vit(folder / "vit", VIT_TINY)
    return measured(
        "benchmarks.extraction",
        *("--manifest", str(manifest), "--backbone", str(vit), "--images", str(PICTURES)),
    )


def dry_run() -> dict[str, float]:
    """Seconds of ``snakemake --dry-run`` on the default configuration, the best of three."""
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "all"], check=True)
        seconds.append(round(time.perf_counter() - begin, 2))
    return {"seconds": min(seconds)}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report: dict[str, Any] = {
            "extraction": extraction(Path(folder)),
            "loader": measured("benchmarks.loader"),
            "training": measured("benchmarks.training"),
            "decoding": measured("benchmarks.decoding"),
            "language_model": measured("benchmarks.language_model"),
            "retrieval": measured("benchmarks.retrieval"),
            "dry_run": dry_run(),
        }
    decoding, language_model = report["decoding"], report["language_model"]
    rows = [
        ("extraction, files to sealed store / bare forward pass", report["extraction"]["ratio"], "at least 0.85"),
        ("random batches from the store / rows of one .npy memory map", report["loader"]["ratio"], "at least 0.9"),
        ("random batches from the store / zarr's oindex", report["loader"]["ratio_to_oindex"], ""),
        ("training steps fed from the store / fed from memory", report["training"]["store_to_memory"], "near 1"),
        (
            "training steps fed from a store of eight bits / fed from memory",
            report["training"]["eight_bits_to_memory"],
            "near 1",
        ),
        ("training step / a plain prototype's", report["training"]["step_to_plain_step"], "at least 3"),
        (
            "training step / a step with the formula of the attention written out",
            report["training"]["step_to_step_with_plain_attention"],
            "at least 1.5",
        ),
        ("greedy, captions a second", round(decoding["greedy"]["captions_per_second"]), "above 780"),
        ("greedy / a plain batched prototype", round(decoding["greedy_over_plain_greedy"], 2), "above 1"),
        ("beam 5, captions a second", round(decoding["beam_5"]["captions_per_second"]), "above 196"),
        ("beam 5 / a plain batched prototype", round(decoding["beam_5_over_plain_beam_5"], 2), "above 1"),
        ("beam 5 / the reference implementation", round(decoding["beam_5_over_reference_beam_5"]), ""),
        (
            "training step of a language model, one caption an image / transformers' loop",
            language_model["training_one_caption"]["speed"],
            "at least 0.95",
        ),
        (
            "training step of a language model, five captions an image / transformers' loop",
            language_model["training_five_captions"]["speed"],
            "above 1",
        ),
        ("greedy of a language model / generate", language_model["decoding"]["beam_1"], "at least 0.95"),
        ("beam 5 of a language model / generate", language_model["decoding"]["beam_5"], "above 1"),
        ("ranks of 5,000 x 25,000 / the bare matrix product", report["retrieval"]["ratio"], "at most 2"),
        ("dry-run of the default DAG, seconds", report["dry_run"]["seconds"], "under 3"),
    ]
    lines = ["| measured in one run | | aim |", "| --- | ---: | --- |"]
    lines += [f"| {name} | {value} | {aim} |" for name, value, aim in rows]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "benchmarks.json").write_text(json.dumps(report, indent=2) + "\n")
    (RESULTS / "benchmarks.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
