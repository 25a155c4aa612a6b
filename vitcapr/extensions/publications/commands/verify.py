"""Verify a publication: recompute its table from its files."""

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.errors import UserError
from vitcapr.progress import Reporter, print_lines

if TYPE_CHECKING:
    from vitcapr.extensions.publications.verification import Number

_WORDS = {
    "equal": "recomputed and equal",
    "scored": "recomputed and equal, from files taken on trust",
    "floating": "recomputed, equal but for floating point",
    "different": "RECOMPUTED AND DIFFERENT",
    "trusted": "taken on trust",
}


class NotVerified(UserError):
    """The publication is not what it says."""

    exit_code = 1


def main(
    source: Annotated[str, typer.Argument(help="A folder, a .zip, s3://BUCKET/PATH, hf://OWNER/NAME, http://...")],
    table: Annotated[Path | None, typer.Option(help="A .tex file whose table is compared, too.")] = None,
) -> None:
    """Decode, embed and score again, and compare every number of the table, without photographs and GPU.

    The exit code is 1 if a number or a file is not what the publication says.
    """
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    from vitcapr.extensions.publications.paper_table import check_table
    from vitcapr.extensions.publications.publication import EXPERIMENT
    from vitcapr.extensions.publications.verification import verify

    with tempfile.TemporaryDirectory() as scratch, Reporter() as report:
        verified = verify(source, Path(scratch), report)
        numbers, faults = list(verified.numbers()), verified.faults
        if table is not None:
            faults += check_table(table, Path(scratch) / EXPERIMENT, verified.digest, print_lines)
    _print_numbers(numbers)
    trusted = [f"  {run.name}, {run.made['started'][:10]}, {run.made['platform']}" for run in verified.trusted]
    print_lines("", f"taken on trust, from their records: {len(trusted)} jobs", *trusted)
    if verified.listed.left_out:
        print_lines(f"left out by the publisher: {', '.join(verified.listed.left_out)}")
    print_lines("", *(f"floating point or wording: {each}" for each in verified.floating))
    print_lines(*(f"fault: {fault}" for fault in faults))
    counts = Counter(number.status for number in numbers)
    print_lines("; ".join(f"{counts[status]} {words}" for status, words in _WORDS.items() if counts[status]))
    print_lines(f"publication {verified.digest}")
    if faults or counts["different"]:
        raise NotVerified(f"{len(faults)} faults, {counts['different']} different numbers", where=source)


def _print_numbers(numbers: Sequence["Number"]) -> None:
    """Print every number of the table, by system and state."""
    systems = defaultdict[tuple[str, str], list["Number"]](list)
    for number in numbers:
        names = (str(number.row[key]) for key in ("dataset", "split", "model", "decoding"))
        systems[" ".join(filter(None, names)), number.status].append(number)
    for (name, status), some in systems.items():
        print_lines(f"{name}: {_WORDS[status]}")
        if status == "equal":
            print_lines("  " + ", ".join(f"{one.row['metric']} {one.row['value']:g}" for one in some))
        else:
            print_lines(*(f"  {one.row['metric']} {one.row['value']:g} ({one.note})" for one in some))


app = typer_app(main)
