"""A headless Chromium for tests, which needs chromedriver and selenium (extra ``browser``), and servers in threads."""

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

PROGRAMS = {name: shutil.which(name, path=os.environ["MACHINE_PATH"]) for name in ("chromium", "chromedriver")}


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """A driver that logs the console and all requests. The test is skipped where there is no Chromium."""
    pytest.importorskip("selenium", reason="pip install 'vitcapr[browser]'")
    for name, program in PROGRAMS.items():
        if program is None:
            pytest.skip(f"no {name} on this machine")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(PROGRAMS["chromium"])
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=Service(str(PROGRAMS["chromedriver"])))
    try:
        yield opened
    finally:
        opened.quit()


def requested(driver: Any) -> list[str]:
    """The addresses that pages have asked for since the last call."""
    sent = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [one["params"]["request"]["url"] for one in sent if one["method"] == "Network.requestWillBeSent"]


def until(driver: Any, holds: Callable[[], Any]) -> Any:
    """Wait until something is true; returns it."""
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.support.wait import WebDriverWait

    waits = WebDriverWait(driver, 10, 0.02, ignored_exceptions=[StaleElementReferenceException])
    return waits.until(lambda _: holds())


def size(driver: Any, pixels: tuple[int, int]) -> None:
    """Set the width and height of the window."""
    metrics = {"width": pixels[0], "height": pixels[1], "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def darkness(driver: Any, canvas: str, rows: int, columns: int) -> list[int]:
    """How dark a picture is made in the middle of each patch of a grid."""
    script = """
        const canvas = document.querySelector(arguments[0]), { width, height } = canvas;
        const [rows, columns] = [...arguments].slice(1), copy = document.createElement("canvas");
        Object.assign(copy, { width, height });
        const brush = copy.getContext("2d", { willReadFrequently: true });
        brush.drawImage(canvas, 0, 0);
        return [...Array(rows * columns).keys()].map((patch) => brush.getImageData(
            (patch % columns + 0.5) * width / columns, (Math.floor(patch / columns) + 0.5) * height / rows, 1, 1
        ).data[3]);
    """
    return list(driver.execute_script(script, canvas, rows, columns))


@contextmanager
def running(server: Any) -> Iterator[Any]:
    """The server answers inside the block."""
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield server
    server.should_exit = True
    thread.join()
