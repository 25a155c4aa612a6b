"""Loading a model leaves the settings of torch and transformers as they were, also from threads."""

import threading
from pathlib import Path

import torch
import transformers

from tests.checkpoints import save_bert
from vitcapr.encoders.checkpoints import load_half, read_config
from vitcapr.encoders.loading import one_at_a_time


def test_threads_that_load_leave_the_globals_and_disturb_no_arithmetic(tmp_path: Path) -> None:
    folder, logging = save_bert(tmp_path / "bert", ["a"]), transformers.utils.logging
    before = (torch.get_default_dtype(), logging.get_verbosity(), logging.is_progress_bar_enabled())
    random, dtypes = torch.get_rng_state(), set()

    @one_at_a_time
    def load() -> None:
        load_half(folder, read_config(folder), torch.bfloat16, "text")

    @one_at_a_time
    def compute() -> None:
        dtypes.add(torch.rand(2).dtype)

    def work() -> None:
        for _ in range(6):
            load()
            compute()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dtypes == {torch.float32}
    assert (torch.get_default_dtype(), logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert torch.equal(torch.get_rng_state(), random)
