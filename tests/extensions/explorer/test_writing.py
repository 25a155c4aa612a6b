"""The folder that the explorer writes."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from tests.checkpoints import printed_by, snapshot
from tests.extensions.explorer.experiment import IMAGES, write_experiment
from vitcapr.errors import UserError
from vitcapr.extensions.explorer.commands.explore import app, main
from vitcapr.extensions.explorer.writing import MARK, PAGE, _write_data


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_experiment(tmp_path_factory.mktemp("results") / "toy")
    explore(folder)
    return folder


explore = partial(printed_by, app)


def test_every_file_that_the_page_names_is_there(results: Path) -> None:
    page = (results / "explorer/index.html").read_text(encoding="utf-8")
    named = re.findall(r'(?:src|href)="([^#"]+)"', page)
    assert len(named) > 10
    assert [name for name in named if name != "data:," and not (results / "explorer" / name).is_file()] == []
    assert len(list((results / "explorer/pictures").iterdir())) == IMAGES


def test_the_page_asks_for_nothing_from_elsewhere(results: Path) -> None:
    page = (results / "explorer/index.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert policy[1].startswith("default-src 'none'; script-src 'self' file:;")
    for name, content in snapshot(results / "explorer").items():
        if not name.endswith(".webp"):
            assert b"http:" not in content, name
            assert b"https:" not in content, name


def test_no_script_makes_markup_of_text() -> None:
    for script in PAGE.glob("*.js"):
        text = script.read_text(encoding="utf-8")
        assert text.startswith('"use strict";')
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text)


def test_any_text_of_python_is_text_in_a_script(tmp_path: Path) -> None:
    _write_data(tmp_path, "odd", ["é\u2028\ud800</script>"])
    content = (tmp_path / "data/odd.js").read_bytes()
    assert content == 'explorer.receive("odd",["é\u2028\\ud800</script>"]);\n'.encode()


def test_the_same_results_give_the_same_folder(results: Path) -> None:
    before = snapshot(results / "explorer")
    printed = explore(results)
    assert snapshot(results / "explorer") == before
    assert printed.startswith(f"{results}/explorer/index.html: {IMAGES} images, ")
    assert [path.name for path in results.iterdir() if path.name.endswith(".partial")] == []


def test_only_an_explorer_is_replaced(results: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    explore(results, "--output", mine)
    (mine / MARK).unlink()
    with pytest.raises(UserError, match="the folder holds something other than an explorer"):
        explore(results, "--output", mine)
    assert (mine / "index.html").is_file()


def test_an_error_leaves_the_earlier_folder(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "explorer"
    explore(results, "--output", folder)
    before = snapshot(folder)
    other = write_experiment(tmp_path / "other", shade=7)
    with pytest.raises(UserError, match="another picture"):
        explore(results, other, "--output", folder)
    assert snapshot(folder) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["explorer", "other"]


def test_a_picture_that_has_gone_is_said(tmp_path: Path) -> None:
    folder = write_experiment(tmp_path / "toy")
    (folder / "data/2.png").unlink()
    (folder / "data/3.png").write_bytes(b"no picture")
    explore(folder)
    images = json.loads((folder / "explorer/data/images.js").read_text()[len('explorer.receive("images",') : -3])
    assert images["pictures"] == [True, True, False, False, True, True]


def test_a_retriever_that_cannot_be_loaded_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = write_experiment(tmp_path / "toy")
    (folder / "retrievers/dual").mkdir(parents=True)
    (folder / "retrievers/dual/card.json").write_text("{}")
    main([folder])
    assert "explore: the captions have no neighbours in dual: not the card of a captioner" in capfd.readouterr().err
    main([folder], embed=False)
    assert "neighbours" not in capfd.readouterr().err
