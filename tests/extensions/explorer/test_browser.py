"""The explorer in a real headless Chromium, opened as a file. It needs Chromium, chromedriver and selenium."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser import darkness, requested, size, until
from tests.extensions.explorer.experiment import (
    BEAM,
    HOSTILE,
    IDS,
    IMAGES,
    RERANKED,
    embed,
    read_results,
    write_experiment,
)
from vitcapr.extensions.explorer.contents import Contents
from vitcapr.extensions.explorer.writing import write_explorer
from vitcapr.formats.captions import read_results as read_coco
from vitcapr.progress import Reporter

pytestmark = pytest.mark.browser

WIDE, NARROW = (1300, 900), (390, 800)


class Page:
    """The page in the browser; waits for what it asks for."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver, self.address = driver, address

    def open(self, state: str = "") -> "Page":
        """Open the page anew at a state."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.address}{state}")
        self.until(lambda: self.run("return document.documentElement.dataset.ready"))
        return self

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, holds: Callable[[], Any]) -> Any:
        return until(self.driver, holds)

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    def one(self, selector: str) -> Any:
        return self.until(lambda: next(iter(self.all(selector)), None))

    def press(self, *keys: str) -> None:
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def choose(self, menu: str, value: str) -> None:
        """Choose an entry of the menu with this label."""
        script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))"
        self.run(script, self.one(f"select[aria-label='{menu}']"), value)

    def export(self, file: str) -> None:
        """Choose a file of the menu of exports."""
        self.run("arguments[0].open = true", self.one(".menu"))
        next(entry for entry in self.all(".menu button") if file in entry.text).click()

    def hover(self, element: Any) -> None:
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).move_to_element(element).perform()

    @property
    def shown(self) -> list[str]:
        """The ids on the cards."""
        return [element.text for element in self.all(".card .id")]

    def shows(self, *ids: str) -> None:
        self.until(lambda: self.shown == list(ids))

    def darkness(self) -> list[int]:
        return darkness(self.driver, "#image canvas", 2, 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = write_experiment(tmp_path_factory.mktemp("results") / "toy")
    write_explorer(results / "explorer", Contents([read_results(results)], "test", embed), Reporter())
    return results / "explorer"


@pytest.fixture
def page(driver: Any, folder: Path) -> Iterator[Page]:
    """No test may leave an error in the console, or a request for anything but files of the folder."""
    size(driver, WIDE)
    driver.get_log("browser"), requested(driver)
    yield Page(driver, f"{folder.as_uri()}/index.html").open()
    assert [entry["message"] for entry in driver.get_log("browser")] == []
    asked = requested(driver)
    assert asked
    allowed = (folder.as_uri(), "data:", "about:")
    assert [url for url in asked if not url.startswith(allowed)] == []


def test_all_images_with_their_captions(page: Page) -> None:
    page.shows(*IDS)
    assert page.one(".count").text == f"{IMAGES} of {IMAGES} images"
    first = [element.text for element in page.all(".card:first-child .caption .words")]
    assert first == [BEAM[0], RERANKED[0]]  # beam and greedy wrote the same
    assert [element.text for element in page.all(".card:first-child ins")] == ["white"]
    page.until(lambda: page.run("return [...document.images].every((one) => one.complete && one.naturalWidth === 60)"))
    assert page.all("img:not([alt])") == []


def test_text_of_the_data_is_never_markup(page: Page) -> None:
    assert HOSTILE in page.all(".card")[3].text
    page.open("#image=i3")
    page.until(lambda: "candidates" in page.one(".captions").text)
    page.one("#neighbours .thumbnails")
    assert page.one("title").get_attribute("textContent") == "i3 · toy · vitcapr explorer"
    assert page.all("img[onerror]") == []
    assert all(script.get_attribute("src") for script in page.all("script"))


def test_filter_by_words(page: Page) -> None:
    words = page.one("#words")
    words.send_keys("wat")
    page.shows("i2", IDS[5])
    words.send_keys("er -fish")
    page.shows(IDS[5])
    for phrase in ('"on the grass"', "“on the grass”"):
        words.clear()
        words.send_keys(phrase)
        page.shows("i1")
    page.run("refine({ where: 'captions' })")
    page.until(lambda: "No image fits." in page.one("#list").text)
    page.one(".empty button").click()
    page.until(lambda: len(page.shown) == IMAGES)


def test_filter_by_numbers_and_link_to_it(page: Page) -> None:
    buttons = {button.text: button for button in page.all(".chips button")}
    buttons["a claim is wrong"].click()
    page.shows("i4")
    buttons["a claim is wrong"].click()
    buttons["the true match is not first"].click()
    page.shows("i0", "i1")
    page.one("[aria-label^='at least']").clear()
    page.one("[aria-label^='at most']").send_keys("2\t")
    page.until(lambda: "i0" not in page.shown)
    shown, address = page.shown, page.driver.current_url
    page.driver.get("about:blank")
    page.driver.get(address)
    page.shows(*shown)


def test_a_histogram_counts_the_images_that_the_other_filters_leave(page: Page) -> None:
    """Six images; CIDEr of beam is 25 to 400. Equal heights are equal counts, and an axis says how many."""
    bars = """
        const canvas = document.querySelector(".histogram"), { width, height } = canvas;
        const copy = Object.assign(document.createElement("canvas"), { width, height });
        const brush = copy.getContext("2d", { willReadFrequently: true });
        brush.drawImage(canvas, 0, 0);
        return [...Array(40).keys()].map((bar) => [...Array(height).keys()].filter(
            (y) => brush.getImageData((bar + 0.5) * width / 40, y, 1, 1).data[3]).length);
    """
    page.run("refine({ conditions: [{ name: 'attention, beam:cider', low: null, high: null }] })")
    page.until(lambda: page.one(".axis").text.split("\n")[0] == "25.00")
    assert page.one(".axis").text.splitlines() == ["25.00", "highest bar: 1 of 6 images", "400.00"]
    heights = page.run(bars)
    assert (sum(map(bool, heights)), len(set(heights))) == (6, 2)
    page.run("refine({ words: 'wat' })")
    page.until(lambda: "of 2 images" in page.one(".axis").text)
    assert sum(map(bool, page.run(bars))) == 2
    page.run("refine({ words: '', conditions: [{ name: 'attention, beam:cider', low: 300, high: null }] })")
    page.until(lambda: "of 6 images" in page.one(".axis").text)


def test_sort_by_a_score_and_by_the_difference_of_two_systems(page: Page) -> None:
    page.choose("Sort by", "attention, beam:cider")
    page.shows("i4", "i3", "i0", "i1", "i2", IDS[5])
    assert page.one(".badge").text == "CIDEr 25.00 attention, beam"
    next(button for button in page.all(".bar button") if "lowest first" in button.text).click()
    page.shows(IDS[5], "i2", "i1", "i0", "i3", "i4")
    page.choose("Minus", "attention, greedy:cider")
    page.until(lambda: page.one(".badge").text == "CIDEr -225.00 attention, beam − attention, greedy")
    page.shows("i4", "i3", "i0", "i1", IDS[5], "i2")
    page.open(f"#{page.driver.current_url.partition('#')[2]}")
    page.shows("i4", "i3", "i0", "i1", IDS[5], "i2")


def test_scores_of_what_the_filters_leave(page: Page) -> None:
    page.one("#subset summary").click()
    page.one("#subset tbody tr")
    rows = {row.find_element("css selector", "th").text: row for row in page.all("#subset tbody tr")}
    cells = {name: [cell.text for cell in row.find_elements("css selector", "td")] for name, row in rows.items()}
    # CIDEr of beam is 100, 200, 300, 50, 25, 400, of greedy 50 to 300: six images have no interval.
    assert {"179.17", "175.00\ndifference -4.17"} <= set(cells["CIDEr"])
    page.open("#where=captions&words=fish")
    page.one("#subset summary").click()
    assert page.one("#subset summary").text == "Scores of these 1 images"
    assert page.one("#subset tbody td").text == "300.00"
    values = [1.0, 2, 4, 8, 3, 5, 7, 2, 9, 4, 6, 1]
    found = page.run("return subset.mean(arguments[0])", values)
    error = 1.96 * np.std(values, ddof=1) / np.sqrt(12)
    assert [found[key] for key in ("mean", "low", "high")] == pytest.approx(
        [np.mean(values), np.mean(values) - error, np.mean(values) + error]
    )


def test_export_what_the_filters_leave(page: Page, tmp_path: Path) -> None:
    page.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path.resolve())}
    )
    page.open(f"#words=wat&sort=attention, beam:cider&star={IDS[2]}")
    page.shows("i2", IDS[5])
    page.export("captions of attention, beam")
    results = tmp_path / "toy-test-attention-beam.json"
    page.until(results.is_file)
    assert {image: one.caption for image, one in read_coco(results).items()} == {"i2": BEAM[2], IDS[5]: BEAM[5]}
    page.export("CSV")
    page.until((tmp_path / "toy-test-images.csv").is_file)
    with (tmp_path / "toy-test-images.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    names = ["attention, beam", "attention, greedy", "attention, reranked"]
    assert rows[0] == ["image_id", "starred · yours", "CIDEr · attention, beam", *names]
    assert rows[1:] == [["i2", "1", "300", *[BEAM[2]] * 3], [f"'{IDS[5]}", "0", "400", *[BEAM[5]] * 3]]


def test_hover_shows_where_the_captioner_looked(page: Page) -> None:
    page.open("#image=i1")
    word = page.one("[aria-label='attention, beam'] .word.attended")
    page.hover(word)
    dark = page.until(lambda: page.darkness() if any(page.darkness()) else None)
    assert dark[5] < 40 < 50 < dark[0] < dark[1]
    assert page.one(".said").text.startswith("“two”: probability 0.50; it looked most at the bottom right, 4.5 times")
    page.hover(page.one("#image-title"))
    page.until(lambda: not any(page.darkness()))
    assert page.one(".said").text.startswith("Point at a word of a caption")
    page.one("[aria-label='attention, greedy'] .word.attended")


def test_claims_candidates_and_scores_of_an_image(page: Page) -> None:
    page.open("#image=i0")
    beam = page.one("section[aria-label='attention, beam']")
    page.until(lambda: "✗ colour: black, in truth white" in beam.text)
    beam.find_element("css selector", "summary").click()
    assert "a thing" in beam.text
    rows = [row.text.split() for row in page.all(".scores tbody tr")]
    assert ["CIDEr", "100.00", "50.00", "350.00"] in rows
    assert "350.00" in [cell.text for cell in page.all(".scores .best")]


def test_the_wrong_first_match_beside_the_true_one(page: Page) -> None:
    page.open("#image=i1")
    page.one("#neighbours .thumbnails")
    page.all(".reference")[1].click()
    page.until(lambda: "there is two big red balls" in page.one("#neighbours h3").text)
    verdicts = [element.text for element in page.all("#neighbours .verdict")]
    assert verdicts == ["✗ first match, wrongcosine 0.800", "✓ true match, rank 2cosine 0.600"]
    links = page.all("#neighbours .match a")
    assert [link.get_attribute("href").partition("#")[2] for link in links] == ["image=i0", "image=i1"]
    links[0].click()
    page.until(lambda: page.one("#image-title").text == "i0")


def test_what_a_caption_finds(page: Page) -> None:
    page.open("#image=i4")
    page.one("section[aria-label='attention, beam'] .ask button").click()
    page.until(lambda: "Neighbours of “a star” in the space of" in page.one("#neighbours h3").text)
    verdicts = [element.text for element in page.all("#neighbours .verdict")]
    assert verdicts == ["✗ first match, wrongcosine 0.800", "✓ true match, rank 2cosine 0.600"]
    assert page.one(".ask [aria-pressed='true']").text == "rank 2 · neighbours"
    assert "caption=attention%2C+beam" in page.driver.current_url
    page.one("#neighbours h3 button").click()
    page.until(lambda: "Neighbours of the image" in page.one("#neighbours h3").text)


def test_deep_link_and_back(page: Page) -> None:
    page.open("#image=i2")
    assert page.one("#image-title").text == "i2"
    page.one("a.button").click()
    page.until(lambda: len(page.shown) == IMAGES)
    page.driver.back()
    page.until(lambda: page.one("#image").is_displayed())
    page.open("#image=nothing")
    assert "There is no image nothing here." in page.one("[role=alert]").text
    page.open()
    page.run("arguments[0].click()", page.all(".card > .picture")[5])  # Its id has odd characters.
    page.until(lambda: page.one("#image-title").text == IDS[5])
    address = page.driver.current_url
    page.driver.get("about:blank")
    page.driver.get(address)
    page.until(lambda: page.one("#image-title").text == IDS[5])
    page.one("#neighbours .match")


def test_keys(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    active = "return document.activeElement"
    page.press("/")
    assert page.run(active).get_attribute("id") == "words"
    page.press("fish", Keys.ESCAPE)
    page.shows("i2")
    page.run("filters.reset()")
    page.until(lambda: len(page.shown) == IMAGES)
    page.run("document.querySelector('.card > .picture').focus()")
    page.press(Keys.ARROW_RIGHT, Keys.ENTER)
    page.until(lambda: page.one("#image-title").text == "i1")
    page.press("j")
    page.until(lambda: page.one("#image-title").text == "i2")
    page.press("k")
    page.until(lambda: page.one("#image-title").text == "i1")
    word = page.one(".word.attended")
    page.run("arguments[0].focus()", word)
    page.press(Keys.ARROW_RIGHT)
    assert page.run(active).text == "big"
    assert page.one(".said").text.startswith("“big”")
    page.press(Keys.ESCAPE)
    page.until(lambda: len(page.shown) == IMAGES)
    assert page.run(active).get_attribute("aria-label").startswith("Open image i1")
    page.press("?")
    assert page.one("#help").get_attribute("open") is not None
    page.press(Keys.ESCAPE)
    page.until(lambda: page.one("#help").get_attribute("open") is None)


def test_wrong_words_stand_out_and_say_what_is_true(page: Page) -> None:
    card = page.one("[data-image='i0']")
    (wrong,) = card.find_elements("css selector", ".false")
    assert (wrong.text, wrong.get_attribute("aria-label")) == ("black", "black: in truth white")
    style = "return getComputedStyle(arguments[0]).textDecoration"
    assert "wavy rgb(208, 0, 0)" in page.run(style, wrong)
    shown = "return getComputedStyle(arguments[0], '::after').content"
    assert page.run(shown, wrong) == "none"
    page.run("arguments[0].focus()", wrong)
    page.press("")
    page.hover(wrong)
    assert page.run(shown, wrong) == '"in truth white"'
    page.open("#image=i0")
    word = page.until(lambda: next((one for one in page.all("[aria-label='attention, beam'] .word.false")), None))
    page.hover(word)
    assert page.one(".said").text.startswith("“black”: in truth white; probability 0.50")


def test_stars_are_in_the_address_the_filter_and_on_the_cards(page: Page) -> None:
    page.run("document.querySelectorAll('.card > .picture')[1].focus()")
    page.press("s")
    page.until(lambda: "star=i1" in page.driver.current_url)
    assert page.run("return document.activeElement.closest('.card').dataset.image") == "i1"
    page.all(".star")[3].click()
    page.until(lambda: "star=i3" in page.driver.current_url)
    next(button for button in page.all(".chips button") if "starred" in button.text).click()
    page.shows("i1", "i3")
    page.open(f"#{page.driver.current_url.partition('#')[2]}")
    page.shows("i1", "i3")
    page.open("#image=i2&star=i2")
    assert page.one(".star").get_attribute("aria-pressed") == "true"
    page.press("s")
    page.until(lambda: page.one(".star").get_attribute("aria-pressed") == "false")
    assert "star=" not in page.driver.current_url


def test_a_caption_plays_word_by_word_and_pauses(page: Page) -> None:
    page.open("#image=i1")
    play = page.one("[aria-label='attention, beam'] .play")
    play.click()
    page.until(lambda: [word.text for word in page.all(".word.played")] == ["big"])
    page.press("p")
    assert play.text == "▶ play"
    page.press("p")
    page.until(lambda: not page.all(".word.played") and not any(page.darkness()))
    emulate = page.driver.execute_cdp_cmd
    emulate("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    page.open("#image=i1")
    page.one("[aria-label='attention, beam'] .word.attended")
    assert not page.one(".play").is_displayed()
    page.press("p")
    assert page.all(".word.played") == []
    emulate("Emulation.setEmulatedMedia", {"features": []})


def test_the_map(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open("#view=map&colour=attention, beam:cider")
    canvas = page.one("#map canvas")
    canvas.send_keys(Keys.ARROW_LEFT)
    tip = page.until(lambda: page.one(".tip").text)
    canvas.send_keys(Keys.ENTER)
    page.until(lambda: page.one("#image").is_displayed())
    assert page.one("#image-title").text in tip
    assert "CIDEr · attention, beam: " in tip
    page.open("#view=map")
    legend = page.one(".legend").text  # The six images have six values in the last system.
    assert legend.splitlines() == [
        "CIDEr · attention, reranked",
        "25.00",
        "50.00",
        "200.00",
        "300.00",
        "350.00",
        "400.00",
    ]
    assert page.one("#map [role=status]").text == "6 of 6 images"
    assert page.all("#map .thumbnails li") == []
    page.open()
    page.one(".card[data-image=i3] .under a").click()  # From the list to the map and back.
    page.until(lambda: len(page.all("#map .thumbnails img")) == 6)
    assert page.all("#map .thumbnails a")[0].get_attribute("aria-label").startswith("Open image i3:")
    assert len(page.run("return map.near")) == 6
    page.one("#views a").click()
    page.until(lambda: page.all(".card.pointed"))
    assert page.one(".card.pointed").get_attribute("data-image") == "i3"
    page.open("#view=map&words=wat")
    assert page.one("#map [role=status]").text == "2 of 6 images left by the filters"
    assert len(page.all("#map .thumbnails img")) == 2


def test_a_lasso_on_the_map_filters_the_images(page: Page) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    page.open("#view=map")
    canvas = page.one("#map canvas")
    places = page.run("return data['map-0'].places.map(toScreen)")
    width, height = canvas.size["width"], canvas.size["height"]
    middle = sum(sorted(x for x, _ in places)[2:4]) / 2
    corners = [(9, 9), (middle, 9), (middle, height - 9), (9, height - 9)]  # The sheet has round corners.
    drag = ActionChains(page.driver).key_down(Keys.SHIFT)
    for place, (x, y) in enumerate(corners):
        drag.move_to_element_with_offset(canvas, round(x - width / 2), round(y - height / 2))
        if not place:
            drag.click_and_hold()
    drag.release().key_up(Keys.SHIFT).perform()
    left = [image for image, (x, _) in zip(IDS, places, strict=True) if x < middle]
    assert len(left) == 3
    page.until(lambda: page.one("#map [role=status]").text == "3 of 6 images enclosed")
    page.open(f"#{page.driver.current_url.partition('#')[2]}".replace("view=map", ""))
    page.shows(*left)
    next(button for button in page.all("#controls button") if "enclosed" in button.text).click()
    page.shows(*IDS)


def test_a_narrow_screen_needs_no_sideways_scrolling(page: Page) -> None:
    size(page.driver, NARROW)
    for state in ("", "#image=i3", "#view=map", "#view=scores"):
        page.open(state)
        page.until(lambda: page.all("#image:not([hidden]) .matches, #list .card, #map canvas, #scores table"))
        assert page.run("return document.documentElement.scrollWidth") <= NARROW[0]
    page.open()
    assert not page.one("#controls").is_displayed()


def test_many_images_come_in_pages(page: Page) -> None:
    """The state of 5,000 images in the same page: the number of cards does not grow."""
    page.run(
        """
        const { images } = data;
        for (let number = images.ids.length; number < 5000; number++) {
          images.ids.push(`more${number}`);
          images.pictures.push(false);
          images.sizes.push([1, 1]);
          for (const captions of images.captions) captions.push("a thing");
          referencesOf(0).length && references.push([]);
          for (const column of explorer.columns) column.values.push(number);
        }
        refine({ sort: "attention, beam:cider", down: true });
        """
    )
    page.until(lambda: page.shown[:1] == ["more4999"])
    assert len(page.shown) == 48
    page.press("j")
    page.until(lambda: page.shown[:1] == ["more4951"])
    assert "page 2 of 105" in page.one(".pages").text
