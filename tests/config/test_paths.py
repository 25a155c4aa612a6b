"""Every spelling of a path is the same value; another path is another value."""

from pathlib import Path

import pytest

from vitcapr.config.features import BackboneConfig
from vitcapr.config.names import one_spelling


def test_spellings_of_one_path_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    spellings = ["x/y", "./x/y", "x//y/", f"{tmp_path}/x/y", f"{tmp_path}/./x/y/"]
    assert {one_spelling(path) for path in spellings} == {"x/y"}
    assert one_spelling("~/x") == "home/x"
    assert one_spelling("/data/x/") == "/data/x"
    assert BackboneConfig(source="store:./x/").source == "store:x"


@pytest.mark.parametrize("name", ["", "google/vit-base", "trained", "hf://a//b", "../x", "link/../x"])
def test_names_that_are_no_other_spelling_stay(name: str) -> None:
    assert one_spelling(name) == name
