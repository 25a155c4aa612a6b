import os
import time
from pathlib import Path

import numpy as np
import pytest

from tests.checkpoints import printed_by
from tests.commands.stores import write_store
from vitcapr.commands import gc
from vitcapr.errors import UserError
from vitcapr.formats.store_manifest import FeaturePart


def age(folder: Path) -> None:
    """Nothing in ``folder`` was written to within the last two hours."""
    then = time.time() - 7200
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (then, then), follow_symlinks=False)


def collect(results: Path, *options: str) -> str:
    return printed_by(gc.app, "--results", results, *options)


def test_gc_deletes_only_what_nothing_refers_to(tmp_path: Path) -> None:
    def write(digit: str) -> Path:
        """A store of three chunks, whose manifest is that of experiment ``digit``."""
        sealed = f"{digit}/features/vit/manifest.json"
        return write_store(
            tmp_path, {"cls": np.ones((3, 4), np.float16)}, list("xyz"), "image_id", 1, sealed, fingerprint=64 * digit
        )

    (tmp_path / "stores").mkdir()
    write("a")
    for digit in "bc":
        write(digit).unlink()
    results, replaced, begun = tmp_path, tmp_path / "stores" / (16 * "c"), tmp_path / "b/features/vit/parts/0.json"
    FeaturePart(64 * "b", (0, 1), {}).write(begun)
    assert "left alone" in collect(results, "--yes")
    (replaced / "gone").symlink_to("where a file went meanwhile")
    age(replaced)
    output = collect(results)
    assert (replaced.name in output, 16 * "a" in output, "3 chunks" in output) == (True, False, True)
    assert replaced.is_dir()
    assert "deleted" in collect(results, "--yes")
    assert not replaced.exists()
    assert len(list((results / "stores").iterdir())) == 2
    assert "in use" in collect(results)
    begun.write_text("{}")
    with pytest.raises(UserError, match="not a part"):
        collect(results)
