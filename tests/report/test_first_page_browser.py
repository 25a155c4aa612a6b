"""The first page in a headless Chromium, opened as a file, without and with an explorer beside it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.browser import until
from vitcapr.report.attended import encoded
from vitcapr.report.figures.examples import mark_words
from vitcapr.report.first_page import Noted, small, to_html

pytestmark = pytest.mark.browser
SHIFT = """
window.shift = 0;
new PerformanceObserver((list) => list.getEntries().forEach((one) => (window.shift += one.value)))
  .observe({ type: "layout-shift", buffered: true });
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    picture = small(Image.new("RGB", (60, 40), "red"), "three boats", "i 1")
    words = mark_words(["three", "boats"], {0: "in truth four"})
    attention = {"a": encoded(np.eye(6)[:2].reshape(2, 2, 3))}
    one = {"picture": picture, "captions": {"a": words}, "attention": attention, "reference": "four boats"}
    page = to_html(title="t", facts=[], folder="t", again="", captioned=Noted([one], "note"), split="test")
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    return tmp_path


def test_words_show_attention_and_truth_and_play(driver: Any, folder: Path) -> None:
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": SHIFT})
    driver.get((folder / "index.html").as_uri())
    find, run = driver.find_elements, driver.execute_script
    (wrong,) = find("css selector", ".false")
    assert (wrong.text, wrong.get_attribute("aria-label")) == ("three", "three: in truth four")
    dark = "return document.querySelector('.stage canvas').getContext('2d').getImageData(50, 30, 1, 1).data[3]"
    run("arguments[0].focus()", wrong)
    until(driver, lambda: run(dark) > 150)
    assert run("return getComputedStyle(arguments[0], '::after').content", wrong) == '"in truth four"'
    run("arguments[0].blur()", wrong)
    assert run(dark) == 0
    find("css selector", ".play")[0].click()
    until(driver, lambda: [word.text for word in find("css selector", ".played")] == ["boats"])
    assert run("return window.shift") < 0.02
    assert not find("css selector", "#explorer")[0].is_displayed()


def test_pictures_open_in_the_explorer_that_is_there(driver: Any, folder: Path) -> None:
    (folder / "explorer/data").mkdir(parents=True)
    overview = f'explorer.receive("overview",{json.dumps({"split": "test"})});'
    (folder / "explorer/data/overview.js").write_text(overview, encoding="utf-8")
    driver.get((folder / "index.html").as_uri())
    link = until(driver, lambda: driver.find_elements("css selector", "a:has(> img)"))[0]
    assert link.get_attribute("href").endswith("/explorer/index.html#image=i+1")
    assert driver.find_elements("css selector", "#explorer")[0].is_displayed()
