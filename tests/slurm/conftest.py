import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# importlib mode leaves sys.path alone; the helpers are modules beside the tests.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def programs_of_the_machine() -> Iterator[None]:
    """A Slurm that is installed is on the PATH, which other tests do not see."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["MACHINE_PATH"]]))
        yield
