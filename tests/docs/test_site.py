"""The documentation as a site, opened from the disk in a headless Chromium."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.browser import until
from tests.docs.blocks import REPOSITORY

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("sphinx", "furo", "myst_parser", "sphinx_copybutton"):
        pytest.importorskip(name, reason="pip install 'vitcapr[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", ".", str(folder)]
    subprocess.run(command, check=True, cwd=REPOSITORY)
    return folder


def test_options_have_their_dashes_and_no_default_of_none(site: Path) -> None:
    page = (site / "docs/commands.html").read_text(encoding="utf-8")
    assert "--no-embed" in page
    assert "–" not in page
    assert "default: None" not in page


@pytest.mark.parametrize("words", ["attention heatmap", "export features"])
def test_search_from_the_disk_shows_excerpts(driver: Any, site: Path, words: str) -> None:
    driver.get_log("browser")
    driver.get(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
    find = driver.find_elements
    until(driver, lambda: any(words.split()[-1] in one.text.lower() for one in find("css selector", "p.context")))
    assert driver.get_log("browser") == []


def test_pages_have_different_titles(site: Path) -> None:
    titles = [
        page.read_text(encoding="utf-8").partition("<title>")[2].partition("<")[0] for page in site.rglob("*.html")
    ]
    assert len({*titles}) >= len(titles) - 1  # The start of the site forwards to its front page.
