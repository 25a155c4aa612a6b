import itertools
import threading
import time
from contextlib import suppress

import pytest
import torch

from vitcapr.training.gpu_use import sample_gpu_use

GIB = 2**30
HEADER = "seconds,gpu_percent,memory_gib,memory_total_gib"


@pytest.mark.parametrize("knows_use", [True, False])
@pytest.mark.parametrize("continued", [False, True])
def test_samples_of_the_gpu_that_torch_computes_on(tmp_path, monkeypatch, knows_use, continued):
    """A GPU of 48 GiB, whose use and memory grow with every question, until the training is interrupted. One that is
    continued has its rows appended, and its clock goes on."""
    path, asked = tmp_path / "gpu.csv", []

    def mem_get_info(_):
        asked.append(None)
        return (48 - len(asked)) * GIB, 48 * GIB

    def utilization(_):
        if not knows_use:
            raise RuntimeError("not supported")
        return 10 * len(asked)

    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA L40S")
    monkeypatch.setattr(torch.cuda, "mem_get_info", mem_get_info)
    monkeypatch.setattr(torch.cuda, "utilization", utilization)
    if continued:
        path.write_text(f"# NVIDIA A100\n{HEADER}\n100.0,5,1,40\n102.0,5,")
    with (
        suppress(KeyboardInterrupt),
        sample_gpu_use(path, torch.device("cuda"), interval=0.001, continued=continued),
    ):
        while len(asked) < 3:
            time.sleep(0.001)
        raise KeyboardInterrupt
    note, header, *rows = path.read_text().splitlines()
    lines = [[float(value) if value else None for value in row.split(",")] for row in rows]
    assert (note, header) == ("# NVIDIA A100" if continued else "# NVIDIA L40S", HEADER)
    assert all(one[0] <= other[0] for one, other in itertools.pairwise(lines))
    if continued:
        assert lines.pop(0) == [100, 5, 1, 40]
    assert [line[1] for line in lines[:3]] == ([10, 20, 30] if knows_use else [None] * 3)
    assert [line[2:] for line in lines[:3]] == [[1, 48], [2, 48], [3, 48]]
    assert not [thread for thread in threading.enumerate() if thread.name == "gpu-use"]
