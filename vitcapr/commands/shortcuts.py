"""Planned jobs that compute little: results in the result cache, and features in a store."""

import json
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vitcapr.commands.stage import read_job
from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.pipeline.result_cache import cache_key, open_result_cache
from vitcapr.pipeline.run import Job, find_targets, read_by_name
from vitcapr.pipeline.stage import Role
from vitcapr.pipeline.staleness import rule_stage

RESTORED = "restored from the result cache"


@dataclass
class Shortcuts:
    """What planned jobs need not compute. Ask for a job after those whose outputs it reads.

    Attributes:
        results: the folder of all results.
        digests: sha256 of the files that restored jobs will write.
        unknown: the files that other planned jobs will write.
    """

    results: Path
    digests: dict[str, str] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)

    def of(self, job: Any) -> str:
        """Return ``RESTORED``, or the store that holds features of a job of Snakemake; empty if it computes all."""
        declared, outputs = rule_stage(job.rule), set(map(str, job.output))
        if declared is None or self.unknown & set(map(str, job.input)):
            self.unknown |= outputs
            return ""
        planned = Job(declared.stage, read_job(shlex.split(job.params.command)[-1]))
        cache = open_result_cache(self.results) if declared.stage.cached else None
        entry = None if cache is None else cache.find(self._key(planned, job))
        if entry is None:
            self.unknown |= outputs
            with suppress(UserError):  # Without the checkpoint, nobody knows the store.
                return _store(planned)
            return ""
        targets = find_targets(planned)
        self.digests |= {targets[name].as_posix(): digest for name, digest in entry.files.items() if name in targets}
        return RESTORED

    def _key(self, planned: Job, job: Any) -> str:
        made_of = json.loads(job.params.fingerprint)
        del made_of["names"]
        read = (path for each in planned.stage.of_role(Role.INPUT) for path in each.paths(planned.values[each.name]))
        inputs: Any = {path.as_posix(): {"sha256": digest} for path in read if (digest := self._digest(path))}
        return cache_key(
            {"stage": planned.stage.name, **made_of, "inputs": read_by_name(planned, inputs), "threads": job.threads}
        )

    def _digest(self, path: Path) -> str:
        return self.digests.get(path.as_posix()) or (sha256_file(path) if path.is_file() else "")


def _store(planned: Job) -> str:
    """Return how many chunks of the store of an extraction are finished; empty without one, and for other jobs."""
    if planned.stage.name not in ("extract", "extract_text"):
        return ""
    os.environ["HF_HUB_OFFLINE"] = "1"  # A status waits for no network.
    from vitcapr.store.layout import chunk_range
    from vitcapr.store.writer import StoreWriter, read_layouts

    values = planned.values
    plan = (_images if planned.stage.name == "extract" else _captions)(planned, values)
    chunks = chunk_range(plan.chunks, values.get("task", 0), values.get("tasks", 1))
    store = StoreWriter(plan.folder, read_layouts(plan.folder))
    finished = sum(store.checksums(index) is not None for index in chunks) if store.layouts else 0
    return f"{finished} of {len(chunks)} chunks are in {plan.folder}" if finished else ""


def _images(planned: Job, values: Mapping[str, Any]) -> Any:
    """Return the plan of :mod:`vitcapr.stages.extract`."""
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.encoders.image_recipe import image_recipe
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.stages.extract import images_in_chunk
    from vitcapr.store.fill import StorePlan
    from vitcapr.store.layout import Rows

    config, cut = values["settings"].backbone, values["settings"].features
    source = config.source if values["backbone"] is None else str(values["backbone"])
    recipe = image_recipe(source, resolve_device(values["device"]), name=config.source, **config.values("source"))
    rows, chunk = Rows.of_images(read_manifest(values["manifest"])), images_in_chunk(cut, config)
    return StorePlan(Path(values["stores"]), rows, recipe.attributes, chunk, planned.code)


def _captions(planned: Job, values: Mapping[str, Any]) -> Any:
    """Return the plan of :mod:`vitcapr.stages.extract_text`."""
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.encoders.text_encoders import TextRecipe
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.store.caption_rows import CHUNK
    from vitcapr.store.fill import StorePlan
    from vitcapr.store.layout import Rows

    config = values["settings"].text_encoder
    recipe = TextRecipe(device=resolve_device(values["device"]), **config.values("store_dtype"))
    attributes = {**recipe.attributes, "store_dtype": config.store_dtype}
    rows = Rows.of_captions(read_manifest(values["manifest"]))
    return StorePlan(Path(values["stores"]), rows, attributes, CHUNK, planned.code)
