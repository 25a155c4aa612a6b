"""For every kind of edit, exactly the rules that run again: all are predicted, some are asked of Snakemake."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from edits import EDITS, PAGE, Edit, page
from prediction import PlannedJob, made_from, planned_jobs, stale_rules

Planned = tuple[Any, list[PlannedJob], dict[PlannedJob, str]]

# One that concerns nothing, code, a release, a setting, a file; and all that only a dry run can tell.
ASKED = (
    "a comment in the beam search",
    "code of METEOR",
    "another release of pycocoevalcap",
    "the steps of the reranking weight",
    "a photograph replaced: same size, older time",
)


def by_name(edit: Edit) -> str:
    return edit.name


def _planned(project: Any) -> Planned:
    jobs = planned_jobs(project.snakemake("--dry-run", "--forceall", "--nocolor"))
    return project, jobs, made_from(project, jobs)


@pytest.fixture(scope="session")
def planned_two(finished_two: Any) -> Planned:
    return _planned(finished_two)


@pytest.fixture(scope="session")
def planned_photographs(finished_photographs: Any) -> Planned:
    return _planned(finished_photographs)


@pytest.mark.parametrize("edit", [edit for edit in EDITS if not edit.structural], ids=by_name)
def test_exactly_these_rules_are_stale(edit: Edit, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    project, jobs, before = request.getfixturevalue(f"planned_{edit.of}")
    root = tmp_path / "project"
    shutil.copytree(project.root, root, symlinks=True, ignore=shutil.ignore_patterns(".snakemake"))
    edited = type(project)(root, project.configfile)
    edit.make(edited)
    assert stale_rules(jobs, before, made_from(edited, jobs)) == set(edit.reruns)


@pytest.mark.parametrize("edit", [edit for edit in EDITS if edit.structural or edit.name in ASKED], ids=by_name)
def test_snakemake_says_so_too(edit: Edit, request: pytest.FixtureRequest) -> None:
    project = request.getfixturevalue(edit.of)
    edit.make(project)
    assert project.stale_rules() == set(edit.reruns)


@pytest.mark.slow
@pytest.mark.parametrize("edit", [edit for edit in EDITS if edit.name not in ASKED], ids=by_name)
def test_snakemake_says_so_for_all(edit: Edit, request: pytest.FixtureRequest) -> None:
    test_snakemake_says_so_too(edit, request)


def test_the_page_is_up_to_date() -> None:
    said = "docs/edits.md is out of date: python tests/workflow/edits.py"
    assert PAGE.read_text(encoding="utf-8") == page(), said


def test_names_are_distinct_and_the_sample_exists() -> None:
    names = [edit.name for edit in EDITS]
    assert len(set(names)) == len(names) >= 20
    assert set(ASKED) <= set(names)
