import numpy as np
import pandas as pd
import pytest
import torch

from tests.report.conftest import check_layout
from vitcapr.extensions.figures.gpu import gpu_use
from vitcapr.extensions.figures.stages.draw_gpu import draw_gpu
from vitcapr.formats.training_files import GPU_COLUMNS as COLUMNS
from vitcapr.formats.training_files import GpuUse, read_gpu_use
from vitcapr.training import gpu_use as sampling


def used(seconds, percent, memory, device="NVIDIA L40S"):
    count = len(seconds)
    return GpuUse(device, pd.DataFrame(dict(zip(COLUMNS, (seconds, percent, memory, [48.0] * count), strict=True))))


def nothing(device="no GPU: trained on the CPU"):
    return used([], [], [], device)


def words(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_use_and_memory_over_the_training():
    figure = gpu_use({"attention": used([2.0, 4.0, 6.0], [50.0, 70.0, 90.0], [1.0, 4.0, 2.0])})
    busy, full = figure.axes
    assert busy.get_lines()[0].get_ydata().tolist() == [50, 70, 90]
    assert full.get_lines()[0].get_ydata().tolist() == [1, 4, 2]
    assert busy.get_xlabel() == "seconds of training"
    assert full.texts[0].get_text() == "total 48 GiB"
    assert words(figure) == ["attention: NVIDIA L40S, in use 70% on average, at most 4.0 GiB"]


def test_a_long_training_is_drawn_in_stretches_with_their_range():
    seconds = np.arange(1, 30_001) * 2.0
    percent = np.tile([0.0, 100.0], 15_000)
    busy = gpu_use({"a": used(seconds, percent, np.ones(30_000))}).axes[0]
    assert busy.get_lines()[0].get_ydata() == pytest.approx(np.full(300, 50))
    band = busy.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (0, 100)
    assert busy.get_xlabel() == "hours of training"


def test_trainings_without_samples_are_left_out():
    figure = gpu_use({"b": nothing(), "a": used([200.0, 400.0], [np.nan, np.nan], [1.0, 1.0])})
    assert words(figure) == ["a: NVIDIA L40S, at most 1.0 GiB"]
    assert not figure.axes[0].get_lines()
    check_layout(figure)


def test_what_training_on_a_cpu_writes_has_nothing_to_draw(draw, tmp_path):
    with sampling.sample_gpu_use(tmp_path / "gpu.csv", torch.device("cpu")):
        pass
    assert read_gpu_use(tmp_path / "gpu.csv").device == "no GPU: trained on the CPU"
    draw(draw_gpu, "gpu", uses={"attention": tmp_path / "gpu.csv"})
    (text,) = gpu_use({"attention": nothing()}).texts
    assert text.get_text() == "No training has samples of a GPU."
