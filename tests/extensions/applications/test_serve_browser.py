"""The page of ``vitcapr serve`` in a real headless Chromium. It needs Chromium, chromedriver and selenium."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vitcapr
from tests.browser import darkness, requested, running, size, until
from vitcapr.data.photographs import open_image
from vitcapr.extensions.applications.caption_page import HEADERS, CaptionPage, Limits
from vitcapr.extensions.applications.commands.serve import PageServer

pytestmark = pytest.mark.browser

LIMITS = Limits(max_bytes=1_000_000)
WIDE, NARROW = (1300, 900), (390, 800)
MARKUP = "<img src=x onerror=document.title='taken'>"


@pytest.fixture
def answers(project: Path) -> CaptionPage:
    captioner = vitcapr.load_captioner(project / "results/toy/captioners/patch_attention", n_best=2)
    return CaptionPage(captioner, vitcapr.load_retriever(project / "results/toy/retrievers/words"), LIMITS)


@pytest.fixture
def server(answers: CaptionPage) -> Iterator[PageServer]:
    with running(PageServer(answers.routes, "127.0.0.1", 0, HEADERS)) as server:
        yield server


@pytest.fixture
def page(driver: Any, server: PageServer) -> Iterator[Any]:
    """The opened page. It may ask nobody but its server."""
    size(driver, WIDE)
    driver.get_log("browser"), requested(driver)
    driver.get(server.url)
    until(driver, lambda: driver.execute_script("return document.querySelector('#models').textContent"))
    yield driver
    asked = requested(driver)
    assert {f"{server.url}about", f"{server.url}page.js"} <= set(asked)
    assert [url for url in asked if not url.startswith((server.url, "data:"))] == []


def texts(page: Any, selector: str) -> list[str]:
    return [each.text for each in page.find_elements("css selector", selector)]


def upload(page: Any, path: Path) -> None:
    page.find_element("css selector", "#file").send_keys(str(path.resolve()))


@pytest.fixture
def calm(driver: Any) -> Iterator[None]:
    """Nothing moves by itself."""
    emulate = driver.execute_cdp_cmd
    emulate("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    yield
    emulate("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.usefixtures("calm")
def test_caption_attention_and_nearest_captions(page: Any, answers: CaptionPage) -> None:
    from selenium.webdriver import ActionChains

    photograph = Path("photos/photo 07.png")
    expected = answers.answer(open_image(photograph))
    upload(page, photograph)
    words = until(page, lambda: page.find_elements("css selector", "#caption button"))
    assert [each.text for each in words] == [word["word"] for word in expected["words"]]
    assert [line.split("cosine")[0].strip() for line in texts(page, "#nearest li")] == [
        one["caption"] for one in expected["nearest"]
    ]
    assert len(texts(page, "#others li")) == 1
    assert not any(darkness(page, "#picture canvas", 2, 2))
    assert not page.find_element("css selector", ".play").is_displayed()
    assert len(page.find_elements("css selector", "#nearest img")) == len(expected["nearest"])
    ActionChains(page).move_to_element(words[1]).perform()
    until(page, lambda: any(darkness(page, "#picture canvas", 2, 2)))
    assert words[1].text in page.find_element("css selector", "#hint").text
    weights = [weight for row in expected["words"][1]["attention"] for weight in row]
    dark = darkness(page, "#picture canvas", 2, 2)
    assert dark.index(min(dark)) == weights.index(max(weights))
    ActionChains(page).move_to_element(page.find_element("css selector", "h1")).perform()
    until(page, lambda: not any(darkness(page, "#picture canvas", 2, 2)))
    size(page, NARROW)
    assert page.execute_script("return document.documentElement.scrollWidth") <= NARROW[0]
    assert [entry["message"] for entry in page.get_log("browser")] == []


def test_a_caption_plays_by_itself_and_pauses(page: Any) -> None:
    from selenium.webdriver import ActionChains

    upload(page, Path("photos/photo 07.png"))
    until(page, lambda: texts(page, "#caption .played"))
    ActionChains(page).send_keys("p").perform()
    assert texts(page, ".play") == ["▶ play"]
    ActionChains(page).send_keys("p").perform()
    until(page, lambda: texts(page, ".play") == ["❚❚ pause"])


def test_samples_are_one_click_away_and_several_files_are_said(page: Any) -> None:
    samples = until(page, lambda: page.find_elements("css selector", "#samples button"))
    assert len(samples) == 3  # the test images
    samples[1].click()
    until(page, lambda: page.find_elements("css selector", "#caption button"))
    page.execute_script(
        """
        const files = ["a.png", "b.png"].map((name) => new File([arguments[0]], name));
        const transfer = new DataTransfer();
        files.forEach((file) => transfer.items.add(file));
        document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer }));
        """,
        "no picture",
    )
    until(page, lambda: "a.png: this image cannot be used" in texts(page, "#status")[0])
    page.execute_script(
        """
        fetch("/samples/0").then((response) => response.blob()).then((blob) => {
          const transfer = new DataTransfer();
          for (const name of ["a.png", "b.png", "c.png"]) transfer.items.add(new File([blob], name));
          document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer }));
        });
        """
    )
    until(page, lambda: texts(page, "#status") == ["a.png is the first of 3 files; the page captions one at a time."])


def test_a_refusal_has_its_reason(page: Any, tmp_path: Path) -> None:
    upload(page, Path("photos/photo 07.png"))
    until(page, lambda: page.find_element("css selector", "#result").is_displayed())
    for name, content, message in (
        ("notes.png", b"no picture", "notes.png: this image cannot be used: not an image in a known format"),
        ("large.png", bytes(3_000_000), "large.png has 3 MB; the most is 1 MB."),
    ):
        (tmp_path / name).write_bytes(content)
        upload(page, tmp_path / name)
        until(page, lambda expected=message: texts(page, "#status.bad") == [expected])
        assert not page.find_element("css selector", "#result").is_displayed()


def test_no_word_is_markup(page: Any, answers: CaptionPage, monkeypatch: pytest.MonkeyPatch) -> None:
    word = {"word": MARKUP, "log_prob": -1.0, "attention": None}
    answer = {
        "caption": MARKUP,
        "words": [word],
        "candidates": [{"caption": MARKUP, "log_prob": -1.0, "score": -1.0}] * 2,
        "nearest": [{"cosine": 0.5, "caption": MARKUP, "image": MARKUP, "thumbnail": None}],
        "likeness": {"cosine": 0.25, "usual": 0.75},
        "picture": "data:,",
    }
    monkeypatch.setattr(answers, "answer", lambda _: answer)
    upload(page, Path("photos/photo 07.png"))
    until(page, lambda: texts(page, "#caption button") == [MARKUP])
    assert MARKUP in texts(page, "#nearest li")[0]
    assert MARKUP in texts(page, "#others li")[0]
    assert page.find_elements("css selector", "img[onerror]") == []
    assert "unlike the training images: its cosine with the nearest is 0.25" in texts(page, "#unlike")[0]
    assert page.title == "Caption a photograph"
