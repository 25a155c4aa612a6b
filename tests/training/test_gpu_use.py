import itertools
import threading
import time
from contextlib import suppress

import pytest
import torch

from vitcapr.training.gpu_use import sample_gpu_use

GIB = 2**30
GPU = torch.device("cuda")


class FakeGpu:
    """A GPU of 48 GiB whose use and memory grow with every question."""

    def __init__(self, monkeypatch, knows_use=True):
        self.asked, self.knows_use = 0, knows_use
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA L40S")
        monkeypatch.setattr(torch.cuda, "mem_get_info", self.mem_get_info)
        monkeypatch.setattr(torch.cuda, "utilization", self.utilization)

    def mem_get_info(self, _):
        self.asked += 1
        return (48 - self.asked) * GIB, 48 * GIB

    def utilization(self, _):
        if not self.knows_use:
            raise RuntimeError("not supported")
        return 10 * self.asked


def sample(path, fake, samples, **options):
    """Of a training that is interrupted."""
    with suppress(KeyboardInterrupt), sample_gpu_use(path, GPU, interval=0.001, **options):
        while fake.asked < samples:
            time.sleep(0.001)
        raise KeyboardInterrupt


def content(path):
    note, header, *lines = path.read_text().splitlines()
    return note, header, [[float(value) if value else None for value in line.split(",")] for line in lines]


@pytest.mark.parametrize("knows_use", [True, False])
def test_samples_of_the_gpu_that_torch_computes_on(tmp_path, monkeypatch, knows_use):
    sample(tmp_path / "gpu.csv", FakeGpu(monkeypatch, knows_use), 3)
    note, header, lines = content(tmp_path / "gpu.csv")
    assert (note, header) == ("# NVIDIA L40S", "seconds,gpu_percent,memory_gib,memory_total_gib")
    assert [line[1] for line in lines[:3]] == ([10, 20, 30] if knows_use else [None] * 3)
    assert [line[2:] for line in lines[:3]] == [[1, 48], [2, 48], [3, 48]]
    assert all(one[0] <= other[0] for one, other in itertools.pairwise(lines))
    assert not [thread for thread in threading.enumerate() if thread.name == "gpu-use"]


def test_a_continued_training_appends_and_its_clock_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "gpu.csv"
    path.write_text("# NVIDIA A100\nseconds,gpu_percent,memory_gib,memory_total_gib\n100.0,5,1,40\n102.0,5,")
    sample(path, FakeGpu(monkeypatch), 2, continued=True)
    note, _, lines = content(path)
    assert note == "# NVIDIA A100"
    assert lines[0] == [100, 5, 1, 40]
    assert lines[1][0] >= 100
    assert lines[1][1:] == [10, 1, 48]
    assert len(lines) >= 3
