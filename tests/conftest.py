"""How the tests are dealt out when several workers run them, and that none fails for being slow."""

from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

RUN = "tests/end_to_end/"
"""These tests look at one small run of the whole DAG, which is a session's fixture: two workers would make two."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One by one to whichever worker is free, but those of one run to one worker."""
    from xdist.scheduler import LoadScopeScheduling

    class OneRunOneWorker(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return RUN if nodeid.startswith(RUN) else nodeid

    return OneRunOneWorker(config, log)
