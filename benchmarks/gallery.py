"""Make the pictures of the documentation that show the demo: ``make gallery``, after ``make demo``.

Figures are reduced; pages are photographed in a headless Chromium (extra ``browser``).
"""

import base64
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.browser import PROGRAMS, until

DEMO, IMAGES = Path("results/demo"), Path("docs/images")
FIGURES = {
    "gallery/reranked.png": "reranked/attention/reranked/test/reranked.png",
    "gallery/recall.png": "recall/test/recall.png",
    "gallery/retrieved.png": "retrieved/recommended/test/text_to_image.png",
    "gallery/cosines.png": "embeddings/recommended/test/cosines.png",
    "gallery/curves.png": "curves/retrievers.png",
    "gallery/backbone.png": "curves/backbone.png",
}
WIDTH = 1000
_GAP = 20
"""White lines between two rows of a figure of examples."""
WORD = """
const [number] = selection();
location.hash = explorer.address({ image: data.images.ids[number] });
"""


def first_row(picture: Image.Image) -> Image.Image:
    """Return the first row of a figure of examples; a figure of one row whole."""
    blank = (np.asarray(picture.convert("L")) > 250).all(axis=1)
    for line in range(picture.height // 6, picture.height - _GAP):
        if blank[line : line + _GAP].all():
            return picture.crop((0, 0, picture.width, line))
    return picture


def reduce_figure(source: Path, target: Path) -> None:
    """Write a figure at the width of a page."""
    picture = Image.open(source).convert("RGB")
    if target.name == "reranked.png":
        picture = first_row(picture)
    picture.thumbnail((WIDTH, 10_000), Image.Resampling.LANCZOS)
    picture.quantize(128).save(target, optimize=True)


def photograph(driver: Any, target: Path, height: int) -> None:
    """Write the upper part of the page."""
    clip = {"x": 0, "y": 0, "width": 1240, "height": height, "scale": 1}
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    target.write_bytes(base64.b64decode(taken["data"]))
    Image.open(target).convert("RGB").quantize(256, kmeans=3).save(target, optimize=True)


def photograph_pages() -> None:
    """Write the head of the first page, and an image with a wrong word in the explorer."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(PROGRAMS["chromium"])
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1240,900"):
        options.add_argument(switch)
    driver = webdriver.Chrome(options=options, service=Service(str(PROGRAMS["chromedriver"])))
    try:
        driver.get((DEMO / "index.html").resolve().as_uri())
        until(driver, lambda: driver.find_elements("css selector", ".looked .light-scale"))
        end = driver.execute_script("return document.querySelector('.dots').getBoundingClientRect().bottom")
        photograph(driver, IMAGES / "first-page.png", int(end) + 8)
        address = (DEMO / "explorer/index.html").resolve().as_uri()
        driver.get(f"{address}#if=1~~attention, beam:wrong_claims")
        until(driver, lambda: driver.execute_script("return document.documentElement.dataset.ready"))
        driver.execute_script(WORD)
        word = until(driver, lambda: driver.find_elements("css selector", "#image .word.attended.false"))[0]
        driver.execute_script("arguments[0].focus({ preventScroll: true })", word)
        until(driver, lambda: driver.find_elements("css selector", "#image .light-scale"))
        photograph(driver, IMAGES / "explorer.png", 640)
    finally:
        driver.quit()


def main() -> None:
    for name, source in FIGURES.items():
        reduce_figure(DEMO / "figures" / source, IMAGES / name)
    photograph_pages()


if __name__ == "__main__":
    main()
