"""The first page of each toy, in its toy's own words, and once in the bytes of a second run."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.forks import Forks

pytestmark = pytest.mark.timeout(1800)

SECTIONS = {
    "tiny": {"result", "scores", "paper", "captions", "retrieval", "training", "cost", "again"},
    "towers": {"result", "scores", "paper", "captions", "retrieval", "training", "cost", "again"},
    "pairs": {"result", "scores", "paper", "retrieval", "training", "cost", "again"},
}


@pytest.mark.parametrize("experiment", SECTIONS)
def test_the_page_of_each_toy(toys: Path, experiment: str) -> None:
    path = toys / "results" / experiment / "index.html"
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 3_000_000
    assert set(re.findall(r'<section [^>]*id="([^"]*)"', text)) == SECTIONS[experiment]
    pictures = re.findall(r"<img [^>]*>", text)
    assert pictures
    assert all(re.search('alt="[^"]', picture) and 'src="data:image/' in picture for picture in pictures)
    addresses = re.findall('(?:href|src)="([^"]*)"', text)
    files = [address for address in addresses if not address.startswith(("data:", "#"))]
    later = ("report.html", "explorer/index.html")
    assert not [file for file in files if file not in later and not (path.parent / file).exists()]
    assert not re.search(r"https?://|url\(|@import|<script", text.partition("<body>")[0])
    assert f"snakemake --cores all --configfile {experiment}.yaml" in text
    assert " wrote this page." in text


def test_captions_before_and_after_reranking(toys: Path) -> None:
    text = (toys / "results/tiny/index.html").read_text(encoding="utf-8")
    for system in ("attention/greedy", "attention/beam", "attention/reranked", "attention/oracle"):
        assert text.count(f"<dt>{system}</dt>") == 8  # the toy has eight test images
    assert "Reranking changed a caption of" in text


def test_the_same_results_give_the_same_page(project: Path, forks: Forks) -> None:
    path = project / "results/tiny/index.html"
    before = path.read_bytes()
    command = json.loads((project / "results/tiny/runs/first_page.json").read_text(encoding="utf-8"))["command"]
    path.unlink()
    again = forks.run(*shlex.split(command)[1:], folder=project)
    assert again.returncode == 0, again.stderr
    assert path.read_bytes() == before
