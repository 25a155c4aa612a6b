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
from vitcapr.formats.page import COLOURS


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


def test_marks_have_a_contrast_of_3_and_text_of_4_5_in_both_modes() -> None:
    files = (COLOURS, PAGE / "style.css", PAGE / "map.js")
    colours, style, page_map = (file.read_text(encoding="utf-8") for file in files)
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w+);", part)) for part in colours.split("@media"))
    scales = [
        re.findall(r"#\w{6}", line) for line in page_map.splitlines() if line.startswith(("const SCALE", "const DARK"))
    ]
    systems = re.findall(r"--system: (#\w+);", style)
    assert [len(each) for each in (*scales, systems)] == [6, 6, 7]
    for mode, scale in zip((light, dark), scales, strict=True):
        assert min(contrast(mark, mode["paper"]) for mark in (*scale, *systems)) >= 3
        for back in (mode["paper"], mode["card"]):
            assert contrast(mode["pale"], back) >= 3
            assert min(contrast(mode[text], back) for text in ("ink", "faint", "good", "bad", "false")) >= 4.5


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by WCAG 2: 21 for black and white."""

    def luminance(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)
