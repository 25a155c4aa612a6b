"""The maps of the papers in docs/: each figure and table of a paper, with its file, its rule and its test."""

from dataclasses import dataclass
from pathlib import Path

from vitcapr.experiment.paths import gpu_exists

REPOSITORY = Path(__file__).parents[3]
PAPERS = ("vitcap-r", "blip2-flickr30k", "bert-vit")
WITHOUT_GPU = set() if gpu_exists() else {"figure 4"}
"""The use of the GPU in ViTCap-R, on a machine without one."""


@dataclass(frozen=True)
class Part:
    """A row of a map.

    Attributes:
        name: such as ``figures 5 and 6``.
        file: a pattern below the experiment's folder; the reason, if the project does not draw it.
        rule, test: empty, if the project does not draw it.
        test: a path from the root of the repository.
    """

    name: str
    file: str
    rule: str
    test: str

    def is_in(self, root: Path) -> bool:
        return any(root.glob(self.file))


def read_map(paper: str) -> list[Part]:
    page = (REPOSITORY / f"docs/{paper}.md").read_text(encoding="utf-8")
    _, _, begun = page.partition(f"<!-- map {paper} -->\n")
    rows = begun.partition("<!-- end of map -->")[0].splitlines()[2:]
    cells = [[cell.strip(" `") for cell in row.removeprefix("|").split("|")[:4]] for row in rows]
    return [Part(name.partition(":")[0], *rest) for name, *rest in cells]


def drawn(paper: str) -> list[Part]:
    """The parts that the project draws."""
    return [part for part in read_map(paper) if part.rule]
