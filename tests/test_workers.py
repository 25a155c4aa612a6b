"""Cores that a process may use, on systems with and without affinity."""

import os

import pytest

from vitcapr.workers import usable_cores


def test_cores_are_counted_where_processes_have_no_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    assert usable_cores() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cores() == os.cpu_count()
