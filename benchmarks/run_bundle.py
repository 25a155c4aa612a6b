"""Runs the tests and the benchmark of a GPU from the folder of ``make bench-gpu-bundle``, with this Python's packages.

python3 bench-gpu/run.py            # or --trial: at a tiny size, without a GPU too
"""

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEEDED = ("torch", "transformers", "numpy", "pandas", "pyarrow", "PIL", "yaml", "safetensors")


def main() -> int:
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        print(f"error: {sys.executable} has no {', '.join(missing)}; run this with a Python that has", file=sys.stderr)
        return 2
    here = f"-cp{sys.version_info.major}{sys.version_info.minor}-"
    site = HERE / "site"
    for wheel in sorted((HERE / "wheels").glob("*.whl")):
        if here in wheel.name or wheel.name.endswith("-none-any.whl"):
            with zipfile.ZipFile(wheel) as content:
                content.extractall(site)
    # Before the machine's own: pydantic and its compiled core must be of one release.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(site), str(HERE)])
    os.chdir(HERE)
    tests = 0
    if find_spec("pytest") is None:
        print("no pytest here: the tests that compare CPU and GPU are left out", flush=True)
    else:
        options = ("-q", "-rs", "-m", "gpu", "--noconftest", "-p", "no:cacheprovider")
        tests = subprocess.run([sys.executable, "-m", "pytest", *options, "tests/gpu"], check=False).returncode
    bench = [sys.executable, "-m", "benchmarks.gpu", "--manifest", "data/manifest.json", *sys.argv[1:]]
    return subprocess.run(bench, check=False).returncode or tests


if __name__ == "__main__":
    sys.exit(main())
