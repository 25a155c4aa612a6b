"""What determines the outputs of a job except its declared inputs: it decides which jobs Snakemake runs again, and is a
part of the key in the result cache."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitcapr.config.base import StageSettings, find_checkpoint
from vitcapr.data.digests import content_digest
from vitcapr.encoders.kinds import MODULES, library
from vitcapr.pipeline.code import code_hash, job_code
from vitcapr.pipeline.records import find_experiment_folder
from vitcapr.pipeline.stage import SOURCE, Stage

FILE_DIGESTS = ".digests.json"
"""File in the folder of all results that caches the digests of the user's files."""


def fingerprint(stage: Stage, settings: StageSettings | None, job: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """The hash of the code of a job, the settings and values that determine its result, and the digests of the user's
    files that it reads; of a checkpoint, the version of the optional library that reads it as well.

    Args:
        job: its plain values.
        results: the folder of all results, where digests are cached.

    Raises:
        UserError: a file of the user cannot be read, or a plugin cannot be followed.
    """
    plain = {} if settings is None else stage.result_settings(settings.canonical())
    files = user_files(stage, settings, job)
    readers = [(key, _reader(plain, key, path)) for key, path in files.items() if path.is_dir()]
    return {
        "code": code_hash(job_code(stage.module, plain)),
        "settings": plain,
        "values": {name: value for name, value in stage.values_of(job).items() if name not in stage.execution_only},
        "files": {key: content_digest(path, results / FILE_DIGESTS, key=key) for key, path in files.items()}
        | {f"the reader of {key}": name for key, name in readers if name},
    }


def _reader(settings: Mapping[str, Any], key: str, folder: Path) -> str | None:
    """The optional library that reads the checkpoint under ``key``, where its section does not pool by itself."""
    section: Any = settings
    for name in key.split(".")[:-1]:
        section = section.get(name, {}) if isinstance(section, Mapping) else {}
    return library(folder, isinstance(section, Mapping) and section.get("pool") in ("auto", MODULES))


def user_files(stage: Stage, settings: StageSettings | None, job: Mapping[str, Any]) -> dict[str, Path]:
    """The user's files and folders that a job reads, by their keys in its settings; ``source`` is a value."""
    files = {} if settings is None else dict(settings.user_files())
    source = job.get(SOURCE)
    # The backbone that the experiment trains is an input.
    if SOURCE in stage.parameters and source and find_experiment_folder(source) is None:
        files |= {SOURCE: folder} if (folder := find_checkpoint(source)) else {}
    # A path that is execution only itself counts by its content; a section that is execution only names nothing.
    without = tuple(f"{key}." for key in stage.execution_only)
    return {key: path for key, path in files.items() if not key.startswith(without)}
