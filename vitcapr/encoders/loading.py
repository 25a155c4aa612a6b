"""Models in threads: transformers changes globals of torch while it loads, so one model is loaded or used at a time.

The module does not import torch.
"""

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_MODELS = threading.RLock()


def one_at_a_time(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function`` so that no other thread loads or uses a model meanwhile.

    While a model is loaded, torch's default dtype is that of its weights, and what another thread computes would be in
    it. Random numbers of the caller are left as they were: the weights of a new network are drawn before they are read.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        import torch

        with _MODELS, torch.random.fork_rng(devices=[]):
            return function(*args, **kwargs)

    return call


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Load without the lines and bars of transformers, and leave its and torch's global settings as they were."""
    import torch
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars
    from transformers.utils import logging

    with _MODELS:
        dtype, verbosity = torch.get_default_dtype(), logging.get_verbosity()
        bars, hub_bars = logging.is_progress_bar_enabled(), not are_progress_bars_disabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            logging.set_verbosity(verbosity)
            with warnings.catch_warnings(action="ignore"):  # The hub warns where the environment turns its bars off.
                if bars:
                    logging.enable_progress_bar()
            if not hub_bars:
                disable_progress_bars()
