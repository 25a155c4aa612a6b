"""Say what differs between two results, and in what they were made from."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.formats.scores import read_summary
from vitcapr.pipeline.comparison import Scores, compare_artefacts, compare_experiments, compare_scores
from vitcapr.pipeline.lineage import Lineage
from vitcapr.progress import print_lines

SUMMARY = "summary.csv"
KINDS = "two folders of experiments, two artefacts, or two summaries"


def main(
    first: Annotated[Path, typer.Argument(help="results/<experiment>, a file or folder in it, or a summary.csv.")],
    second: Annotated[Path, typer.Argument(help="What to compare it with; of the same kind.")],
) -> None:
    """Print the differences in settings, code, libraries, inputs and scores. Computes nothing."""
    for path in (first, second):
        if not path.exists():
            raise UserError("no such file or folder", where=path, remedy=f"name {KINDS}")
    if first.suffix == second.suffix == ".csv":
        lines = list(compare_scores(read_scores(first), read_scores(second)))
    else:
        lines = compare(first, second)
    print_lines(f"{first} -> {second}", *(f"  {line}" for line in lines))


def compare(first: Path, second: Path) -> list[str]:
    """Two experiments, or two artefacts."""
    lineages = Lineage.of(first), Lineage.of(second)
    pairs = list(zip(lineages, (first, second), strict=True))
    whole = [lineage.experiment.resolve() == path.resolve() for lineage, path in pairs]
    if all(whole):
        lines = list(compare_experiments(*lineages))
        summaries = [path / SUMMARY for path in (first, second)]
        if all(summary.is_file() for summary in summaries):
            lines += ["scores", *(f"  {line}" for line in compare_scores(*map(read_scores, summaries)))]
        return lines
    made = [lineage.made(path) for lineage, path in pairs]
    if any(whole) or any(len(runs) != 1 for runs in made):
        raise UserError("these cannot be compared", where=f"{first}, {second}", remedy=f"name {KINDS}")
    lines = list(compare_artefacts((lineages[0], made[0][0]), (lineages[1], made[1][0])))
    if first.is_file() and second.is_file():
        same = sha256_file(first) == sha256_file(second)
        lines.append("the files are the same, byte for byte" if same else "the files differ")
    return lines or ["made from the same"]


def read_scores(path: Path) -> Scores:
    """The scores of a summary by split, model, decoding and metric. Scores without a value are left out."""
    table = read_summary(path).dropna(subset=["value"])
    keys = table[["split", "model", "decoding", "metric"]].itertuples(index=False, name=None)
    return dict(zip(keys, table["value"].tolist(), strict=True))


app = typer_app(main)
