"""One archive that runs ``make bench-gpu`` and ``make test-gpu`` on a borrowed machine without a network.

It holds the code, 750 rendered JPEG files, and the wheels that a machine with torch, transformers, pandas, pyarrow
and Pillow may lack, for several releases of Python. Writes results/bench-gpu.tar.gz:

    tar xzf bench-gpu.tar.gz && python3 bench-gpu/run.py
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

from benchmarks.gpu import PHOTOGRAPHS, RESULTS, SIDE
from benchmarks.inputs import render_jpegs

LARGEST = 60_000_000
NAME = "bench-gpu"
CODE = (
    *("vitcapr", "benchmarks", "pyproject.toml", "LICENSE"),
    *("tests/gpu", "tests/data_sets.py", "tests/decoding/reference_beam.py"),
    "tests/training/trained.py",
)
PURE = ("pydantic", "annotated-types", "typing-inspection", "typing-extensions", "zarr", "donfig")
COMPILED = ("pydantic-core", "numcodecs", "google-crc32c", "grimp")
PYTHONS = ("3.12", "3.13", "3.14")


def download(wheels: Path) -> None:
    """The wheels, of the releases that are installed here."""
    platforms = [f"--platform=manylinux{tag}_x86_64" for tag in ("_2_28", "_2_17", "2014")]
    common = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", wheels]
    subprocess.run([*common, *(f"{name}=={version(name)}" for name in PURE)], check=True)
    for python in PYTHONS:
        of_python = ["--implementation=cp", f"--python-version={python}", *platforms]
        subprocess.run([*common, *of_python, *(f"{name}=={version(name)}" for name in COMPILED)], check=True)


def main() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z", *CODE], check=True, stdout=subprocess.PIPE, text=True).stdout
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{NAME}.tar.gz"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / NAME
        for name in tracked.split("\0")[:-1]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, folder / name)
        for package in (
            "tests",
            "tests/decoding",
            "tests/gpu",
            "tests/training",
        ):  # Where a machine has another package of this name.
            (folder / package / "__init__.py").touch()
        shutil.copyfile(Path(__file__).with_name("run_bundle.py"), folder / "run.py")
        download(folder / "wheels")
        render_jpegs(folder / "data", PHOTOGRAPHS, SIDE)
        with tarfile.open(path, "w:gz") as archive:
            archive.add(folder, NAME)
    size = path.stat().st_size
    if size > LARGEST:
        sys.exit(f"error: {path} has {size / 1e6:.1f} MB, and at most {LARGEST / 1e6:.0f} are wanted")
    print(f"{path}: {size / 1e6:.1f} MB. On the machine: tar xzf {path.name} && python3 {NAME}/run.py")


if __name__ == "__main__":
    main()
