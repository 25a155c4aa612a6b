"""The maps of the papers name every figure and table, and files that the papers' experiments ask for."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.extensions.papers.maps import PAPERS, REPOSITORY, drawn, read_map
from vitcapr.config.reading import read_yaml
from vitcapr.experiment.experiment import Experiment
from vitcapr.extensions.papers.published import TABLE_NAMES
from vitcapr.pipeline.stage import stage_names

EXPERIMENTS = {
    "vitcap-r": ["vitcap-r-flickr8k", "vitcap-r-coco"],
    "blip2-flickr30k": ["blip2-flickr30k"],
    "bert-vit": ["bert-vit"],
}
PRINTED = {
    "vitcap-r": {"figure": 19, "table": 0},
    "blip2-flickr30k": {"figure": 4, "table": 6},
    "bert-vit": {"figure": 13, "table": 7},
}
"""How many figures and tables a paper numbers."""


@pytest.mark.parametrize("paper", PAPERS)
def test_a_map_has_every_figure_and_table_once(paper: str) -> None:
    named = [part.name for part in read_map(paper)]
    for kind, count in PRINTED[paper].items():
        numbers = [int(n) for name in named if name.startswith(kind) for n in re.findall(r"\d+", name)]
        assert sorted(numbers) == list(range(1, count + 1)), kind


@pytest.mark.parametrize("paper", PAPERS)
def test_the_papers_experiments_ask_for_the_files_of_its_map(paper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr("vitcapr.experiment.experiment.problems", lambda _: ())
    asked = {f"tables/{paper}/{name}.md" for name in TABLE_NAMES[paper]}
    for name in EXPERIMENTS[paper]:
        values = read_yaml(Path("experiments") / f"{name}.yaml")
        experiment = Experiment.from_config(values, on_cluster=True)
        assert f"results/{name}/tables/{paper}/{paper}.md" in experiment.targets.tables
        asked |= {file.removeprefix(f"results/{name}/") for file in experiment.targets.figures}
    missing = {
        part.name
        for part in drawn(paper)
        if part.rule not in stage_names() or not any(fnmatch(file, part.file) for file in asked)
    }
    assert missing == set()


@pytest.mark.parametrize("paper", PAPERS)
def test_the_tests_of_a_map_exist(paper: str) -> None:
    assert [part.test for part in drawn(paper) if not (REPOSITORY / part.test).is_file()] == []
