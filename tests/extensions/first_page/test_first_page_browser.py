"""The first page in a headless Chromium, opened as a file, without and with an explorer beside it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.browser import until
from vitcapr.extensions.first_page.index_page import Noted, small, to_html
from vitcapr.report.attended import encoded, lit
from vitcapr.report.figures.examples import mark_words

pytestmark = pytest.mark.browser
WEIGHTS = np.stack([np.eye(6)[0], np.full(6, 1 / 6)]).reshape(2, 2, 3)
"""The first word has all attention on the first patch, the second the even share everywhere."""
PIXELS = """
const drawn = [...document.querySelectorAll(".looked canvas")];
return drawn.map((canvas) => [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data]);
"""
SHIFT = """
window.shift = 0;
new PerformanceObserver((list) => list.getEntries().forEach((one) => (window.shift += one.value)))
  .observe({ type: "layout-shift", buffered: true });
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    picture = small(Image.new("RGB", (60, 40), "red"), "three boats", "i 1")
    words = mark_words(["three", "boats"], {0: "in truth four"})
    one = {
        "picture": picture,
        "captions": {"a": words},
        "attention": {"a": encoded(WEIGHTS)},
        "reference": "four boats",
    }
    looked = {"picture": picture, "words": ["three", "boats"], "attention": encoded(WEIGHTS), "note": "note"}
    sections = {"captioned": Noted([one], "note"), "looked": looked, "split": "test"}
    page = to_html(title="t", facts=[], folder="t", again="", **sections)
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    return tmp_path


def test_words_show_attention_and_truth_and_play(driver: Any, folder: Path) -> None:
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": SHIFT})
    driver.get((folder / "index.html").as_uri())
    find, run = driver.find_elements, driver.execute_script
    (wrong,) = find("css selector", ".false")
    assert (wrong.text, wrong.get_attribute("aria-label")) == ("three", "three: in truth four")
    assert (wrong.get_attribute("tabindex"), find("css selector", ".word")[1].get_attribute("tabindex")) == ("0", "-1")
    dark = "return document.querySelector('.stage canvas').getContext('2d').getImageData(50, 30, 1, 1).data[3]"
    run("arguments[0].focus()", wrong)
    until(driver, lambda: run(dark) > 120)
    assert find("css selector", ".scale .light-scale")[0].text == "01.56.0 × the even share"
    assert run("return getComputedStyle(arguments[0], '::after').content", wrong) == '"in truth four"'
    run("arguments[0].blur()", wrong)
    assert run(dark) == 0
    find("css selector", ".play")[0].click()
    until(driver, lambda: [word.text for word in find("css selector", ".played")] == ["boats"])
    assert run("return window.shift") < 0.02
    assert not find("css selector", "#explorer")[0].is_displayed()


def test_the_light_of_pages_is_that_of_figures_on_one_scale_for_all_words(driver: Any, folder: Path) -> None:
    driver.get((folder / "index.html").as_uri())
    pixels = until(
        driver, lambda: all(sum(each) for each in driver.execute_script(PIXELS)) and driver.execute_script(PIXELS)
    )
    page = [np.reshape(each, (40, 60, 4))[..., :3].astype(float) for each in pixels]
    # Away from the line, and from the red of the picture, which JPEG does not keep.
    focused = np.asarray(lit(Image.new("RGB", (60, 40), (254, 0, 0)), 6 * WEIGHTS[0], 6.0)).astype(float)
    plain = np.hypot(*np.meshgrid(np.arange(60) - 10, np.arange(40) - 10)) > 22
    np.testing.assert_allclose(page[0][plain], focused[plain], atol=12)
    assert page[0][10, 10, 0] == pytest.approx(254, abs=12), "the largest weight of the caption is fully lit"
    # The even share is a sixth of the scale, though no weight of this word is larger.
    np.testing.assert_allclose(page[1][..., 0], 254 * (1 - 0.5 * (1 - 6**-0.5)), atol=12)


def test_pictures_open_in_the_explorer_that_is_there(driver: Any, folder: Path) -> None:
    (folder / "explorer/data").mkdir(parents=True)
    overview = f'explorer.receive("overview",{json.dumps({"split": "test"})});'
    (folder / "explorer/data/overview.js").write_text(overview, encoding="utf-8")
    driver.get((folder / "index.html").as_uri())
    link = until(driver, lambda: driver.find_elements("css selector", "a:has(> img)"))[0]
    assert link.get_attribute("href").endswith("/explorer/index.html#image=i+1")
    assert driver.find_elements("css selector", "#explorer")[0].is_displayed()
