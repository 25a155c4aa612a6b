"""A freed block is used again, in a process of its own: the setting stays with a process."""

import platform
import subprocess
import sys

import pytest

from vitcapr.memory import keep_freed_memory

FAULTS_OF_LATER_ROUNDS = """
import random, resource, torch
from vitcapr.memory import keep_freed_memory
assert keep_freed_memory()
random.seed(0)
def play(rounds):
    for _ in range(rounds):
        live = [torch.empty(random.randrange(9_000_000, 12_000_000)).fill_(1.0) for _ in range(3)]
        random.shuffle(live)
        while live:
            live.pop()
play(20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
play(5)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
"""Blocks above the 32 MiB from which glibc by itself maps each anew, 9,000 pages and more."""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has the setting")
def test_freed_blocks_are_not_mapped_again() -> None:
    program = [sys.executable, "-c", FAULTS_OF_LATER_ROUNDS]
    assert int(subprocess.run(program, capture_output=True, text=True, check=True).stdout) < 20_000


def test_another_platform_goes_on_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_freed_memory() is False
