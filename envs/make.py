"""Write the conda environments of the rules: the dependencies of ``pyproject.toml``, as pinned by ``constraints.txt``.

    python envs/make.py

Snakemake copies an environment file elsewhere before it builds it, so the file names no other file. The code of the
package is not in the environment: rules run ``python -m vitcapr`` in the working directory.
"""

import re
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
HEADS = {
    "cpu": ("# Environment of the rules without a GPU, for --software-deployment-method conda.", True),
    "gpu": ("# Environment of the rules that can use a GPU, for --software-deployment-method conda.", False),
}
"""The first line of each file, and whether it has torch without CUDA."""


def environment(name: str) -> str:
    """The text of ``envs/NAME.yaml``."""
    head, without_cuda = HEADS[name]
    index = ["--extra-index-url https://download.pytorch.org/whl/cpu"] if without_cuda else []
    lines = [
        head,
        "# envs/make.py writes this file from pyproject.toml and constraints.txt. `make venv` needs no conda.",
        "channels:",
        "  - conda-forge",
        "  - nodefaults",
        "dependencies:",
        "  - python =3.11",
        "  - pip",
        "  - pip:",
        *(f"      - {line}" for line in [*index, *pinned()]),
    ]
    return "\n".join(lines) + "\n"


def pinned() -> list[str]:
    """The dependencies of the package with their pinned versions, in the order of ``pyproject.toml``."""
    wanted = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    pins = {}
    for line in (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"([\w.-]+)==([^\s;#]+)", line):
            pins[_plain(found[1])] = found[2]
    return [
        f"{name}=={pins[_plain(name.partition('[')[0])]}" for name in (re.split(r"[<>=!~ ]", one)[0] for one in wanted)
    ]


def _plain(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    for name in HEADS:
        (REPOSITORY / "envs" / f"{name}.yaml").write_text(environment(name), encoding="utf-8")
