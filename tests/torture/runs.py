"""Runs of commands in a sandbox, in forks of one process that has imported everything; and whether a run ended well."""

import json
import os
import pkgutil
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import vitcapr
from tests.forks import SNAKEMAKE, Forks

LIBRARIES = (
    "torch transformers pandas pyarrow.parquet matplotlib.pyplot scipy.stats sklearn.decomposition sklearn.manifold "
    "h5py zarr PIL.Image nltk jieba.posseg safetensors.torch tokenizers grimp fsspec aiohttp yaml pydantic typer rich "
    "torch._dynamo transformers.models.vit.modeling_vit transformers.models.bert.modeling_bert "
    "transformers.models.auto.modeling_auto transformers.models.auto.tokenization_auto"
)
"""What a command imports from its libraries, those included that a network needs later."""
SECONDS = 120
"""A run that takes longer hangs: the longest takes a few."""


@dataclass(frozen=True)
class Run:
    """How a run ended.

    Attributes:
        code: the exit code, of a signal 128 more than its number.
        operations: the number of its file operations.
    """

    code: int
    operations: int
    printed: str

    @property
    def hung(self) -> bool:
        return self.code == 128 + signal.SIGALRM

    @property
    def killed(self) -> bool:
        """By a signal; the code of a broken pipe is the command's own."""
        return self.code > 128 and self.code != 128 + signal.SIGPIPE

    @property
    def in_one_line(self) -> bool:
        """Whether it refused its input as it should: exit code 2, and one line that says why."""
        errors = [line for line in self.printed.splitlines() if line.startswith("error: ")]
        usage = "Usage: " in self.printed and "Try '" in self.printed
        return self.code == 2 and (len(errors) == 1 or usage) and not self.traced

    @property
    def traced(self) -> bool:
        """Whether an error was not caught. Python prints a traceback and goes on if a signal comes in a destructor."""
        return self.printed.count("Traceback (most recent call last)") > self.printed.count("Exception ignored in")

    @property
    def problem(self) -> str | None:
        """How it ended, unless it did its work or refused its input."""
        return None if self.in_one_line or (self.code == 0 and not self.traced) else self.end

    @cached_property
    def end(self) -> str:
        """Its last line, for a report."""
        return f"code {self.code}{' (hung)' * self.hung}: " + " | ".join(self.printed.strip().splitlines()[-3:])[-300:]


@cache
def package_forks() -> Forks:
    """A process that has imported whatever a job imports, and knows the code of every stage."""
    own = [module.name for module in pkgutil.walk_packages(vitcapr.__path__, "vitcapr.")]
    own.remove("vitcapr.__main__")
    return Forks(*SNAKEMAKE, *LIBRARIES.split(), *own, "stage_code", "torture.inside")


def attempt(folder: Path, arguments: Sequence[str], beside: Sequence[Sequence[str]] = (), **request: Any) -> Run:
    """Run ``vitcapr ARGUMENTS`` in ``folder``.

    Args:
        beside: arguments of other commands that run at the same time.
        request: what happens to it; ``inside.py`` has the list.
    """
    temporary = folder.parent / f"{folder.name}.tmp"
    temporary.mkdir(exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    environment |= {"TMPDIR": str(temporary), "COLUMNS": "200"}

    def one(number: int, words: Sequence[str], request: dict[str, Any]) -> Run:
        counter = temporary / f"counter-{number}"
        counter.write_bytes(bytes(8))
        asked = {"folder": str(folder), "arguments": [*map(str, words)], "counter": str(counter), "seconds": SECONDS}
        code = f"import json, torture.inside; torture.inside.run(json.loads({json.dumps(asked | request)!r}))"
        done = package_forks().run("-c", code, folder=folder, environment=environment)
        return Run(done.returncode, int.from_bytes(counter.read_bytes(), "little"), done.stdout + done.stderr)

    with ThreadPoolExecutor() as pool:
        others = [pool.submit(one, number, words, {}) for number, words in enumerate(beside, 1)]
        ended = one(0, arguments, request)
        failed = next((other.result() for other in others if other.result().code), None)
    return ended if failed is None or ended.code else failed
