"""The page of an audit in a headless Chromium: marks by keys, in the address, and their export."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from vitcapr.extensions.audit.audit import Audit
from vitcapr.formats.tables import Table, row

pytestmark = pytest.mark.browser


class Captions:
    """Three captions without pictures."""

    root = None

    def rows(self, rows: Any, *_: str) -> pd.DataFrame:
        return pd.DataFrame({"caption_id": [f"a,{row}" for row in rows], "text": "<b>"}, index=rows)

    def column(self, _: str) -> dict[int, str]:
        return {0: "none"}


def test_marks_are_in_the_address_and_in_the_export(driver: Any, tmp_path: Path, monkeypatch: Any) -> None:
    facts = {"rank": [1, 2, 3], "suspicion": 1.0, "p": 0.1, "wrong": [0.9, 0.8, 0.7], "image_row": 0}
    captions = pd.DataFrame({**facts, "better_image": -1, "better_caption": -1})
    counts = Table("", ("what", "number"), (row("wrong", "2"),))
    data = SimpleNamespace(dataset="d", caption_table=Captions(), image_table=Captions(), image_root=tmp_path)
    monkeypatch.setattr("vitcapr.extensions.audit.audit._picture", lambda *_: "")
    page = tmp_path / "index.html"
    page.write_text(Audit(data, captions, pd.DataFrame(), counts)._page())  # type: ignore[arg-type]
    driver.get(page.as_uri())

    def press(key: str) -> str:
        driver.execute_script("document.dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0] }))", key)
        return str(driver.execute_async_script("setTimeout(() => arguments[0](location.hash), 50)"))

    assert press("w") == "#at=2&w=1"
    assert press("u") == "#at=3&w=1&u=2"
    assert press("p") == "#at=2&w=1&u=2"
    assert driver.find_element("id", "progress").text.startswith("2 of 3, marked unsure. Marks: 0 right, 1 wrong")
    assert driver.execute_script("return table()") == 'caption_id,wrong\n"a,0",1\n"a,1",0.8\n'
    driver.get(f"{page.as_uri()}#at=1&r=2")
    shown = "return [...document.querySelectorAll('article')].map((one) => one.hidden)"
    assert driver.execute_script(shown) == [False, True, True]
    assert driver.execute_script("return table()") == 'caption_id,wrong\n"a,1",0\n'
