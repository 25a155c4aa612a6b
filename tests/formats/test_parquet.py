"""Reading a table ends, whatever the limit of the memory."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

READING = """
import resource, sys
from pathlib import Path
from vitcapr.formats.scores import read_per_image
from vitcapr.errors import UserError
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv[2]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    print(len(read_per_image(Path(sys.argv[1]))))
except (UserError, MemoryError) as error:
    print("error")
"""


@pytest.mark.parametrize("more", [0, 2, 6, 12, 24, 48, 96])
def test_reading_ends_under_a_limit_of_the_address_space(tmp_path: Path, more: int) -> None:
    """With threads, it waited for ever for those that could not start."""
    table = tmp_path / "table.parquet"
    columns = {name: [f"{name} {row}" for row in range(1000)] for name in ("image_id", "caption", "tokens")}
    pd.DataFrame(columns).to_parquet(table, index=False)
    command = [sys.executable, "-c", READING, str(table), str(more)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout in ("1000\n", "error\n"), done.stderr
