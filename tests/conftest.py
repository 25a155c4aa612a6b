"""What the tests see of the machine, how they are dealt out to several workers, and that none fails for being slow.

The tests see what ``make test`` installs and the programs of ``programs.txt``. Slurm, Java, web servers, fonts, caches,
settings and variables of the machine neither help nor hurt. A test that needs more says so and is skipped without it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["tests.checkpoints", "tests.browser", "tests.small_project"]

PROGRAMS = (Path(__file__).parent / "programs.txt").read_text(encoding="utf-8")
KEPT = {
    "VITCAPR_DATA": "real data, for the tests marked data",
    "VITCAPR_BACKBONES": "real weights, for the same",
    "OMP_NUM_THREADS": "threads of each worker",
    "CUDA_VISIBLE_DEVICES": "the GPU, for tests that can use one",
    "LD_LIBRARY_PATH": "the libraries without which some interpreters do not start",
    "CI": "hypothesis draws the same examples every time",
}
"""The variables of the machine that tests see, and what for; pytest's own are kept, too."""
FONTS = """
from pathlib import Path
import matplotlib as mpl
from matplotlib import font_manager
fonts = font_manager.fontManager
fonts.ttflist = [font for font in fonts.ttflist if Path(font.fname).is_relative_to(mpl.get_data_path())]
font_manager.json_dump(fonts, Path(mpl.get_cachedir(), f"fontlist-v{fonts.__version__}.json"))
"""
"""Leaves in matplotlib's cache the fonts that come with it; it looks for others only where there is no cache."""


def isolate() -> Path:
    """Replace the environment. Returns the folder with the programs, the home and the temporary files of this session.

    It comes before the import of any library that reads a variable or a cache.
    """
    session = Path(tempfile.mkdtemp(prefix="vitcapr-tests-"))
    for name in ("programs", "home", "tmp"):
        (session / name).mkdir()
    for line in PROGRAMS.splitlines():
        for name in () if line.startswith("#") else line.split():
            if program := shutil.which(name):
                (session / "programs" / name).symlink_to(program)
    seen = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith("PYTEST_")}
    seen |= {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(session / "programs")]),
        "MACHINE_PATH": os.environ.get("PATH", os.defpath),  # only for tests that need more
        "HOME": str(session / "home"),  # and with it all caches
        "TMPDIR": str(session / "tmp"),
        "PYTEST_DEBUG_TEMPROOT": os.environ.get("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir()),  # where tmp_path was
        "HYPOTHESIS_STORAGE_DIRECTORY": str(session / "hypothesis"),
        "XDG_CONFIG_DIRS": str(session / "none"),
        "XDG_DATA_DIRS": str(session / "none"),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "HF_HUB_OFFLINE": "1",
    }
    os.environ.clear()
    os.environ.update(seen)
    tempfile.tempdir = None  # looked up again
    subprocess.run([sys.executable, "-c", FONTS], check=True)
    return session


# A worker has the environment of the process that started it.
SESSION = None if "PYTEST_XDIST_WORKER" in os.environ else isolate()

from hypothesis import settings  # noqa: E402 - it looks at the environment

settings.register_profile("no-deadline", deadline=None, database=None, print_blob=True)
settings.load_profile("no-deadline")

SHARED = (
    ("tests/end_to_end/",),
    ("tests/experiment/test_edits.py", "tests/experiment/test_reruns.py"),
    ("tests/extensions/publications/",),
)
"""The tests of each group look at one fixture that takes long: runs of the whole DAG, a project that is computed.
Two workers would make two."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One by one to whichever worker is free, but those of one group to one worker."""
    from xdist.scheduler import LoadScopeScheduling

    class OneGroupOneWorker(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((group[0] for group in SHARED if nodeid.startswith(group)), nodeid)

    return OneGroupOneWorker(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest single tests begin early: at the end, one worker would wait for the other."""
    longest = ("tests/test_loader.py::test_they_work", "tests/experiment/test_packaged.py")
    items.sort(key=lambda item: not item.nodeid.startswith(longest))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets, for tests marked ``data``."""
    folder = os.environ.get("VITCAPR_DATA")
    if not folder:
        pytest.skip("VITCAPR_DATA does not name the folder of real data sets")
    return Path(folder)


def pytest_unconfigure() -> None:
    if SESSION is not None:
        shutil.rmtree(SESSION, ignore_errors=True)
