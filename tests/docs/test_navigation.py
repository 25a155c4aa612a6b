"""What ``make docs`` would refuse, found without MkDocs: a page that nothing leads to, a link to nothing."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.docs.blocks import PAGES, REPOSITORY

DOCS = REPOSITORY / "docs"
FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)


def named(navigation: Any) -> Iterator[str]:
    if isinstance(navigation, str):
        yield navigation
    else:
        for each in navigation.values() if isinstance(navigation, dict) else navigation:
            yield from named(each)


def test_every_page_is_in_the_navigation_once() -> None:
    configured = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = list(named(configured["nav"]))
    assert len(pages) == len(set(pages))
    written = {str(page.relative_to(DOCS)) for page in PAGES if DOCS in page.parents}
    assert written - set(pages) == set()


def test_every_link_leads_to_a_file() -> None:
    missing = []
    for page in PAGES:
        text = FENCED.sub("", page.read_text(encoding="utf-8"))
        for link in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", text):
            if not (page.parent / link).exists():
                missing.append(f"{page.relative_to(REPOSITORY)}: {link}")
    assert missing == []
