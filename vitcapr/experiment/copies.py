"""Copies of results in other places: what was pushed or published, where and when.

``copies.jsonl`` lies in the folder of the experiment, or in the folder of a store that belongs to no experiment. Lines
are only added to it.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from vitcapr.files import canonical_json, sha256_file
from vitcapr.pipeline.run_records import RUNS

COPIES = "copies.jsonl"


class Copy(NamedTuple):
    """A copy in another place.

    Attributes:
        file: the manifest, card or summary of the copied results, from the folder of the record on.
        sha256: the digest of this file when it was copied.
        place: a path, or an address without names and passwords.
        digest: of the list of files in that place; of a store, its fingerprint.
    """

    file: str
    sha256: str
    place: str
    time: str
    digest: str


def record_copy(file: Path, place: str, digest: str, say: Callable[[str], object]) -> None:
    """Record that the results which ``file`` describes were copied to ``place``; say so if that cannot be written."""
    file = file.resolve()
    folder = next((above for above in file.parents if (above / RUNS).is_dir()), file.parent)
    place = place if "://" in place else str(Path(place).resolve())
    time = datetime.now(UTC).isoformat(timespec="seconds")
    copy = Copy(file.relative_to(folder).as_posix(), sha256_file(file), place, time, digest)
    try:
        with (folder / COPIES).open("a", encoding="utf-8") as stream:
            stream.write(canonical_json(copy._asdict()) + "\n")
    except OSError as error:
        say(f"this copy is not recorded for vitcapr trace: {error}")


def read_copies(folder: Path) -> list[Copy]:
    """Return the recorded copies of an experiment or a store, the oldest first."""
    path = folder / COPIES
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [Copy(**json.loads(line)) for line in lines]
