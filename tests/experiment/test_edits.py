"""For every kind of edit, exactly the rules that Snakemake runs again."""

import shutil
from typing import Any

import pytest

from tests.experiment.edits import EDITS, PAGE, Edit, page

TYPICAL = (
    "the default of a key of decodings, in code",
    "code of METEOR",
    "a photograph replaced: same size, older time",
    "the photographs in another folder",
)
"""Asked of Snakemake by default; the others are slow, and test_reruns.py asks for settings job by job."""


def _case(edit: Edit) -> object:
    return pytest.param(edit, id=edit.name, marks=() if edit.name in TYPICAL else pytest.mark.slow)


@pytest.mark.parametrize("edit", [_case(edit) for edit in EDITS])
@pytest.mark.parametrize("metadata", [pytest.param(True, marks=pytest.mark.slow), False])
def test_exactly_these_rules_run_again(edit: Edit, metadata: bool, request: pytest.FixtureRequest) -> None:
    """The records decide, with Snakemake's metadata and without."""
    project = request.getfixturevalue(edit.of)
    if not metadata:
        shutil.rmtree(project.root / ".snakemake")
    edit.make(project)
    assert project.stale_rules() == set(edit.reruns)


def test_edits_that_run_nothing_again_run_nothing_together(two: Any) -> None:
    for edit in EDITS:
        if edit.of == "two" and not edit.reruns:
            edit.make(two)
    assert two.stale_rules() == set()


def test_every_edit_can_be_made(two: Any, photographs: Any) -> None:
    """No slow one fails for a file that has moved."""
    for edit in EDITS:
        edit.make({"two": two, "photographs": photographs}[edit.of])


def test_the_page_is_up_to_date() -> None:
    message = "docs/edits.md is out of date: python tests/experiment/edits.py"
    assert PAGE.read_text(encoding="utf-8") == page(), message
