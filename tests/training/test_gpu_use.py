import itertools
import sys
import threading
import time
from types import SimpleNamespace

import pytest
import torch

from vitcapr.training import gpu_use
from vitcapr.training.gpu_use import sample_gpu_use

GIB = 2**30
GPU = torch.device("cuda")


class FakeNvml:
    """A GPU of 48 GiB whose use and memory grow with every question."""

    class NVMLError(Exception):
        pass

    def __init__(self, knows_use=True, starts=True):
        self.knows_use, self.starts, self.asked, self.open = knows_use, starts, 0, 0

    def nvmlInit(self):  # noqa: N802
        if not self.starts:
            raise self.NVMLError("driver not loaded")
        self.open += 1

    def nvmlShutdown(self):  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid):  # noqa: N802
        assert uuid == "GPU-1234"
        return "handle"

    def nvmlDeviceGetMemoryInfo(self, handle):  # noqa: N802
        assert handle == "handle"
        self.asked += 1
        return SimpleNamespace(used=self.asked * GIB, total=48 * GIB)

    def nvmlDeviceGetUtilizationRates(self, _):  # noqa: N802
        if not self.knows_use:
            raise self.NVMLError("not supported")
        return SimpleNamespace(gpu=10 * self.asked)


@pytest.fixture
def nvml(monkeypatch):
    def install(**options):
        fake = FakeNvml(**options)
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA L40S")
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid="1234"))
        return fake

    return install


def sample(path, fake, samples, **options):
    before = fake.asked
    with sample_gpu_use(path, GPU, interval=0.001, **options):
        while fake.asked < before + samples:
            time.sleep(0.001)


def content(path):
    note, header, *lines = path.read_text().splitlines()
    return note, header, [[float(value) if value else None for value in line.split(",")] for line in lines]


def test_samples_of_the_gpu_that_torch_computes_on(tmp_path, nvml):
    fake = nvml()
    sample(tmp_path / "gpu.csv", fake, 3)
    note, header, lines = content(tmp_path / "gpu.csv")
    assert (note, header) == ("# NVIDIA L40S", "seconds,gpu_percent,memory_gib,memory_total_gib")
    assert [line[1:] for line in lines[:3]] == [[10, 1, 48], [20, 2, 48], [30, 3, 48]]
    assert all(one[0] <= other[0] for one, other in itertools.pairwise(lines))
    assert fake.open == 0
    assert not [thread for thread in threading.enumerate() if thread.name == "gpu-use"]


def test_a_continued_training_appends_and_its_clock_goes_on(tmp_path, nvml):
    path = tmp_path / "gpu.csv"
    path.write_text("# NVIDIA A100\nseconds,gpu_percent,memory_gib,memory_total_gib\n100.0,5,1,40\n102.0,5,")
    sample(path, nvml(), 2, continued=True)
    note, _, lines = content(path)
    assert note == "# NVIDIA A100"
    assert lines[0] == [100, 5, 1, 40]
    assert lines[1][0] >= 100
    assert lines[1][1:] == [10, 1, 48]
    assert len(lines) >= 3


def test_without_a_gpu_the_file_says_what_was_trained_on(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_use, "_cores", lambda: 2)
    monkeypatch.setattr(gpu_use, "_processor", lambda: "Abacus 3000")
    with sample_gpu_use(tmp_path / "gpu.csv", torch.device("cpu"), continued=True):
        pass
    assert content(tmp_path / "gpu.csv") == (
        "# no GPU: trained on the CPU (2 cores, Abacus 3000)",
        "seconds,gpu_percent,memory_gib,memory_total_gib",
        [],
    )


def test_training_continues_if_nvml_fails(tmp_path, nvml, monkeypatch):
    nvml(starts=False)
    with sample_gpu_use(tmp_path / "gpu.csv", GPU):
        pass
    assert content(tmp_path / "gpu.csv")[0] == "# NVIDIA L40S: not sampled, driver not loaded"
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with sample_gpu_use(tmp_path / "gpu.csv", GPU):
        pass
    assert content(tmp_path / "gpu.csv")[0] == "# NVIDIA L40S: not sampled, nvidia-ml-py is not installed"


def test_a_stopped_training_keeps_its_rows_and_ends_the_thread(tmp_path, nvml):
    fake = nvml()
    with pytest.raises(KeyboardInterrupt), sample_gpu_use(tmp_path / "gpu.csv", GPU, interval=0.001):
        while not fake.asked:
            time.sleep(0.001)
        raise KeyboardInterrupt
    assert content(tmp_path / "gpu.csv")[2]
    assert fake.open == 0
