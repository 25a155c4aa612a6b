"""Stands in for Slurm: every job is done at once by making its outputs, and what was asked for it is written down.

Run under the name of the command that it stands in for, from the folder that also holds ``outputs.json``: the outputs
of each job by what ``snakemake --target-jobs`` calls it.
"""

import base64
import json
import re
import shutil
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).parent
ASKED, IDS = HERE / "asked.jsonl", HERE / "ids.txt"


def commands(wrapped: str, first: int, last: int) -> dict[str, str]:
    """The command of each task of an array, by its number; the first stands as it is, the others are packed."""
    head, _, packed = wrapped.partition("--slurm-jobstep-array-execs=")
    found = {str(first): head}
    if packed:
        others = json.loads(base64.b64decode(packed.split()[0].strip("'\"")))
        found |= {task: zlib.decompress(bytes.fromhex(call)).decode() for task, call in others.items()}
    assert set(found) == {str(task) for task in range(first, last + 1)}, (set(found), first, last)
    return found


def submit(arguments: list[str]) -> None:
    options, wrapped = arguments[:-1], arguments[-1].removeprefix("--wrap=")
    if arguments[-1] == "/dev/stdin":
        wrapped = sys.stdin.read()
    array = re.search(r"--array=(\d+)-(\d+)", " ".join(options))
    tasks = commands(wrapped, int(array[1]), int(array[2])) if array else {"": wrapped}
    number = 1 + (ASKED.read_text().count("\n") if ASKED.exists() else 0)
    jobs = []
    for task, command in tasks.items():
        called = re.search(r"--target-jobs[ =]+'?([^ '\"\\]+)", command)
        assert called, command
        jobs.append(called[1])
        for output in json.loads((HERE / "outputs.json").read_text())[called[1]]:
            Path(output).parent.mkdir(parents=True, exist_ok=True)
            Path(output).touch()
        with IDS.open("a") as stream:
            stream.write(f"{number}_{task}|COMPLETED\n" if task else f"{number}|COMPLETED\n")
    with ASKED.open("a") as stream:
        stream.write(json.dumps({"jobs": jobs, "options": options}) + "\n")
    print(number)


def locate(program: str) -> None:
    """``which``, which not every machine has."""
    found = shutil.which(program)
    if found is None:
        sys.exit(1)
    print(found)


if __name__ == "__main__":
    command = Path(sys.argv[0]).name
    if command == "sbatch":
        submit(sys.argv[1:])
    elif command == "squeue":
        print(IDS.read_text() if IDS.exists() else "", end="")
    elif command == "scontrol":
        print("MinJobAge = 600 sec\nMaxArraySize = 1001")
    elif command == "which":
        locate(sys.argv[1])
    else:
        sys.exit(f"nobody expects a call of {command}: {sys.argv[1:]}")
