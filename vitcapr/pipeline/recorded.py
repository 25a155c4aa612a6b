"""A rule's job: the stage with its run record, restored from the result cache if possible."""

import getpass
import os
import platform
import re
import resource
import shlex
import socket
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.files import remove_remains, write_json
from vitcapr.pipeline import records
from vitcapr.pipeline.code import job_code
from vitcapr.pipeline.fingerprint import file_digests, fingerprint, user_files
from vitcapr.pipeline.result_cache import cache_key, open_result_cache
from vitcapr.pipeline.run import Job
from vitcapr.pipeline.stage import COMMAND, Role
from vitcapr.plugins import check_reads
from vitcapr.progress import Reporter

Inputs = Mapping[str, records.FileFacts]


def run_recorded(job: Job, record: Path, inputs: Inputs) -> None:
    """Run a job, or restore its results, and write its record.

    Args:
        inputs: the facts of the input files, from before the stage runs: files may change during hours of work.

    Raises:
        UserError: an input or a file of the user changes while the stage runs.
    """
    stage, settings = job.stage, job.values.get("settings")
    results = next(folder.parent.parent for folder in record.parents if folder.name == records.RUNS)
    started, own_files = datetime.now(UTC).isoformat(timespec="seconds"), user_files(stage, settings, job.values)
    made_of = fingerprint(stage, settings, job.values, results)
    code, key, targets = job_code(stage.module, made_of["settings"]), find_key(job, made_of, inputs), find_targets(job)
    cache = open_result_cache(results) if stage.cached else None
    entry = None if cache is None else cache.find(key)
    if entry is not None:
        entry.restore(targets)
        made = dict(entry.run)
        _say(job, f"restored from the result cache, {entry.path}: made on {made['host']} in {made['seconds']:.0f} s")
    else:
        begun = time.monotonic()
        joules = gpu_joules()
        job.compute()
        now = records.file_facts(job.files(Role.INPUT))
        changed = [path for path, facts in inputs.items() if now.get(path) != facts]
        files = file_digests(own_files, results)
        changed += [str(path) for name, path in own_files.items() if files[name] != made_of["files"].get(name)]
        if changed:
            what = f"the file changed while {stage.name} ran"
            raise UserError(what, where=changed[0], remedy="run the same command again")
        check_reads(code, [*map(Path, inputs), *targets.values(), *own_files.values()])
        made = _made(started, time.monotonic() - begun, joules)
        if cache is not None:
            try:
                cache.store(key, _existing(targets), made)
            except (OSError, UserError) as error:  # The stage has succeeded, so the job does not fail.
                _say(job, f"warning: not stored in the result cache, {cache.root}: {error}")
    values = {each.name: job.values[each.name] for each in stage.of_role(Role.VALUE)}
    content = {
        "format": records.FORMAT,
        "stage": stage.name,
        "command": shlex.join([*COMMAND, stage.name, *job.arguments]),
        "code": code,
        "settings": job.settings,
        "values": {name: value for name, value in values.items() if value is not None},
        "files": made_of["files"],
        "inputs": inputs,
        "outputs": records.file_facts(job.files(Role.OUTPUT)),
        "made": made,
        "result_cache": None if cache is None else {"key": key, "restored": started if entry is not None else None},
    }
    write_json(record, content)
    for written in (*_existing(targets).values(), record):
        remove_remains(written)


def find_targets(job: Job) -> dict[str, Path]:
    """The outputs by their names in the result cache: ``parameter`` or ``parameter/file``."""
    return {
        f"{parameter.name}/{path.name}" if parameter.files else parameter.name: path
        for parameter in job.stage.of_role(Role.OUTPUT)
        for path in parameter.paths(job.values[parameter.name])
    }


def find_key(job: Job, made_of: Mapping[str, Any], inputs: Inputs) -> str:
    """The key in the result cache: a digest of everything that determines the result. Paths of files do not count, but
    their names and their order do; the number of threads does, because it decides how sums are rounded.

    Args:
        made_of: the fingerprint of the job.
    """
    read = [
        [parameter.name, name, path.name, inputs[path.as_posix()]["sha256"]]
        for parameter in job.stage.of_role(Role.INPUT)
        for name, path in parameter.named(job.values[parameter.name])
        if path.as_posix() in inputs
    ]
    return cache_key({"stage": job.stage.name, **made_of, "inputs": read, "threads": threads()})


def _existing(targets: Mapping[str, Path]) -> dict[str, Path]:
    return {name: path for name, path in targets.items() if path.is_file()}


def _say(job: Job, line: str) -> None:
    with Reporter(job.log) as report:
        report.line(line)


def _made(started: str, seconds: float, joules: float | None) -> dict[str, Any]:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "user": _user(),
        "host": socket.gethostname(),
        "platform": f"{platform.platform()}, {_processor()}, {len(os.sched_getaffinity(0))} cores",
        "started": started,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 2),
        "threads": threads(),
        "peak_memory_mb": round(max(_peak_memory(own.ru_maxrss), children.ru_maxrss) / 1024),
        "joules": None if joules is None else round((gpu_joules() or joules) - joules, 1),
        "python": platform.python_version(),
    }


def gpu_joules() -> float | None:
    """The energy of all GPUs since their drivers were loaded, over all programs; None where it cannot be read."""
    if not records.GPU.exists():
        return None
    import pynvml  # type: ignore[import-untyped, unused-ignore]

    try:
        pynvml.nvmlInit()
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return float(sum(map(pynvml.nvmlDeviceGetTotalEnergyConsumption, handles))) / 1000
    except pynvml.NVMLError:
        return None


def threads() -> int:
    """How many torch and numpy may use: Snakemake sets the number of a job."""
    return int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))


def _processor() -> str:
    """The model of the processor, where the system tells it."""
    try:
        names = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _peak_memory(resident: int) -> int:
    """The most memory of this process, in kB. ``resident``, its ``ru_maxrss``, counts the process that started it, too;
    Linux alone tells the two apart."""
    status = Path("/proc/self/status")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.is_file() else None
    return int(peak[1]) if peak else resident
