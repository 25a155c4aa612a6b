"""One stage command as a rule sees it: its settings, and all that its outputs depend on."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitcapr.config.base import Section
from vitcapr.data.digests import content_digest
from vitcapr.files import canonical_json
from vitcapr.provenance.code import code_hash, stage_code
from vitcapr.provenance.records import CODE_DIGESTS

RESULTS = Path("results")
DIGEST_CACHE = RESULTS / ".digests.json"

Wildcards = Any
"""Snakemake's wildcards of a job: attributes that are strings."""


@dataclass(frozen=True)
class Stage:
    """A stage's command and where its settings come from.

    Args:
        module: the command's module below ``vitcapr.cli``.
        build: the stage's settings for given wildcards.
        incidental: dotted keys of the settings that say how the work is done and not what comes out; changing one of
            them re-runs nothing.
        sources: the user's own files that the stage reads, by the key that names them; their content counts, and
            neither their time nor their place.
    """

    module: str
    build: Callable[[Wildcards], Section] = lambda _: Section()
    incidental: frozenset[str] = frozenset()
    sources: Callable[[Wildcards], dict[str, Path]] = lambda _: {}

    def settings(self, wildcards: Wildcards, threads: int) -> str:  # noqa: ARG002
        """The value of ``--settings``.

        It asks for ``threads`` because Snakemake does not take a parameter that does for a reason to run again:
        whether to is for :meth:`made_from` to say.
        """
        return canonical_json(self.build(wildcards).canonical())

    def made_from(self, wildcards: Wildcards) -> str:
        """All that the outputs depend on besides the declared inputs, as JSON: ``code, settings, sources``."""
        settings = self.build(wildcards).canonical()
        for key in self.incidental:
            _remove(settings, key.split("."))
        sources = {key: content_digest(path, DIGEST_CACHE, key=key) for key, path in self.sources(wildcards).items()}
        return canonical_json({"code": self.code, "settings": settings, "sources": sources})

    def code_hash(self, wildcards: Wildcards, threads: int) -> str:  # noqa: ARG002
        """For a command that keeps unfinished work beside its outputs and must know which code it is from."""
        return code_hash(self.code)

    @property
    def code(self) -> dict[str, str]:
        return stage_code(f"vitcapr.cli.{self.module}", remembered=RESULTS / CODE_DIGESTS)


def _remove(values: dict[str, Any], key: list[str]) -> None:
    for part in key[:-1]:
        values = values[part]
    del values[key[-1]]
