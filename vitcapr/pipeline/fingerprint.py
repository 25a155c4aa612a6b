"""Fingerprint of a job: everything that determines its outputs except its declared inputs.

It decides which jobs run again, and is a part of the key in the result cache.
"""

import copy
import re
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vitcapr.config.base import StageSettings, find_checkpoint
from vitcapr.data.archive import scan
from vitcapr.data.digests import content_digest
from vitcapr.encoders.checkpoint_kinds import MODULES, installed, is_checkpoint, library
from vitcapr.pipeline.code import code_hash, job_code
from vitcapr.pipeline.run_records import find_experiment_folder
from vitcapr.pipeline.stage import SOURCE, Stage

_DOCUMENTS = re.compile(r"README.*|LICEN[CS]E.*|NOTICE.*|.*\.md", re.IGNORECASE)
"""Files of a checkpoint that people read and no encoder does. Licences of a store decide no features."""
_HEIC = (".heic", ".heif", ".hif")
_READER = "the reader of "
"""Before a key of the user's files: the library that reads them."""
FILE_DIGESTS = ".digests.json"
"""File in the folder of all results that caches the digests of the user's files."""


def fingerprint(stage: Stage, settings: StageSettings | None, job: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """Return everything that determines the result of a job except its declared inputs.

    That is the hash of its code, its settings and values, and the digests of the user's files that it reads; for a
    checkpoint and for HEIC images also the version of the optional library that reads them.

    Args:
        job: its plain values.
        results: the folder of all results, where digests are cached.

    Raises:
        UserError: a file of the user cannot be read, or a plugin cannot be followed.
    """
    plain = {} if settings is None else stage.result_settings(settings.canonical())
    values = {name: value for name, value in stage.values_of(job).items() if name not in stage.execution_only}
    files = user_files(stage, settings, job)
    readers = [(key, _reader(plain, key, path)) for key, path in files.items()]
    digests = {
        key: content_digest(path, results / FILE_DIGESTS, key=key, without=_DOCUMENTS if is_checkpoint(path) else None)
        for key, path in files.items()
    }
    return {
        "code": code_hash(job_code(stage.module, plain)),
        "settings": without_paths(plain, files),
        "values": without_paths(values, files),
        "files": digests | {f"{_READER}{key}": name for key, name in readers if name},
    }


def without_paths(values: dict[str, Any], files: Iterable[str]) -> dict[str, Any]:
    """Return settings or values with None for each path of the user's files: a path locates, the digest identifies.

    Args:
        files: the keys of the digests. A key may begin with a section of the configuration that the settings of a stage
            leave out, as in ``data.table.images``.
    """
    kept: dict[str, Any] = copy.deepcopy(values)
    for key in files:
        if key.startswith(_READER):
            continue
        *sections, last = key.split(".")
        sections = sections[1:] if sections and sections[0] not in kept else sections
        place: Any = kept
        for name in sections:
            place = place[int(name)] if isinstance(place, list) else place.get(name, {})
        index: Any = int(last) if isinstance(place, list) else last
        if isinstance(place, list) or index in place:
            place[index] = None
    return kept


def _reader(settings: Mapping[str, Any], key: str, path: Path) -> str | None:
    """Return the optional library that reads the images or the checkpoint under ``key``, with its version.

    A checkpoint has none if its section sets ``pool``.
    """
    names: Iterable[str] = ()
    if path.is_dir():
        names = (name for name, _ in scan(path))
    elif path.suffix.lower() == ".zip":
        with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as packed:
            names = packed.namelist()
    if any(name.lower().endswith(_HEIC) for name in names):
        return installed("pillow-heif")
    if not is_checkpoint(path):
        return None
    section: Any = settings
    for name in key.split(".")[:-1]:
        section = section.get(name, {}) if isinstance(section, Mapping) else {}
    return library(path, isinstance(section, Mapping) and section.get("pool") in ("auto", MODULES))


def user_files(stage: Stage, settings: StageSettings | None, job: Mapping[str, Any]) -> dict[str, Path]:
    """Return the user's files and folders that a job reads, by their keys in its settings; ``source`` is a value."""
    files = {} if settings is None else dict(settings.user_files())
    source = job.get(SOURCE)
    # The backbone that the experiment trains is an input.
    if SOURCE in stage.parameters and source and find_experiment_folder(source) is None:
        files |= {SOURCE: folder} if (folder := find_checkpoint(source)) else {}
    # A path that is execution only itself counts by its content; a section that is execution only names nothing.
    without = tuple(f"{key}." for key in stage.execution_only)
    return {key: path for key, path in files.items() if not key.startswith(without)}
