"""The code blocks of the documentation."""

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
BESIDE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "config/README.md")
PAGES = sorted([*(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / name for name in BESIDE)])
BLOCK = re.compile(r"^( *)```([\w{}-]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    page: str
    number: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}-{self.language}-{self.number}"


def blocks_of(page: Path) -> Iterator[Block]:
    counts: dict[str, int] = {}
    for _, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        number = counts.get(language, 0)
        counts[language] = number + 1
        yield Block(str(page.relative_to(REPOSITORY)), number, language, textwrap.dedent(text))


def commands_of(block: Block) -> list[list[str]]:
    """The words of each command, without the variables before it."""
    lines = block.text.replace("\\\n", " ").splitlines()
    split = [shlex.split(line, comments=True) for line in lines]
    named = [words[next((at for at, word in enumerate(words) if "=" not in word), 0) :] for words in split]
    return [words for words in named if words]
