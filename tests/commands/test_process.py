"""How a command uses the cores and the memory of its machine."""

import ctypes
import os
import subprocess
import sys

import pytest

from vitcapr.commands.main import SPIN_COUNT, prepare_process

MEMORY_PAGES_OF_THE_SECOND_BLOCK = """
import resource
if {prepared}:
    from vitcapr.commands.main import prepare_process
    prepare_process()
for _ in range(2):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(b"x") * 2**26
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_threads_that_wait_soon_sleep_unless_the_user_decides(monkeypatch):
    for given, expected in ((None, SPIN_COUNT), ("7", "7")):
        monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
        if given is not None:
            monkeypatch.setenv("GOMP_SPINCOUNT", given)
        prepare_process()
        assert os.environ["GOMP_SPINCOUNT"] == expected


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library has no mallopt")
def test_large_blocks_are_used_again():
    def new_pages(prepared: bool) -> int:
        code = MEMORY_PAGES_OF_THE_SECOND_BLOCK.format(prepared=prepared)
        return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)

    assert new_pages(prepared=True) < new_pages(prepared=False) / 10
