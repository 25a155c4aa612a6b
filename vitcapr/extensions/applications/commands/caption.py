"""Caption photographs: files, folders or patterns."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vitcapr.api.trained_captioner import BATCH, load_captioner
from vitcapr.commands.main import Device, typer_app
from vitcapr.data.archive import FIGURE_SUFFIX
from vitcapr.errors import UserError
from vitcapr.extensions.applications.named_photographs import find_photographs
from vitcapr.extensions.applications.options import Backbone, BeamSize, Decoding, LengthPenalty, NBest
from vitcapr.progress import print_lines

if TYPE_CHECKING:
    from vitcapr.api.trained_captioner import TrainedCaptioner


def main(
    images: Annotated[list[str], typer.Argument(help="Photographs, folders of them, or quoted patterns.")],
    captioner: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the trained captioner, or of an experiment; with several captioners, prints their names."
        ),
    ] = None,
    decoding: Decoding = None,
    n_best: NBest = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    device: Device = "auto",
    backbone: Backbone = None,
    explain: Annotated[
        Path | None,
        typer.Option(
            "--explain", file_okay=False, help="Folder for pictures of where the captioner looked for each word."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Caption photographs of any size with a trained captioner.

    The experiment that contains the captioner supplies the vocabulary, the backbone and the decoding.
    """
    paths, bad, skipped = find_photographs(images)
    asked, rows = len(paths) + len(bad), []
    if paths:
        opened = load_captioner(
            captioner,
            decoding=decoding,
            n_best=n_best,
            beam_size=beam_size,
            length_penalty=length_penalty,
            device=device,
            backbone=backbone,
        )
        rows = _captions(opened, paths, bad, explain)
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    elif rows:
        _print(rows)
    for name, number in skipped.items():
        print_lines(f"skipped: {number} file(s) in {name} that are not images", stream=sys.stderr)
    for name, reason in bad.items():
        print_lines(f"bad: {name}: {reason}", stream=sys.stderr)
    if bad:
        raise UserError(f"{len(bad)} of {asked} have no caption", remedy="see the lines above")


def _captions(
    captioner: "TrainedCaptioner", paths: Sequence[Path], bad: dict[str, str], explain: Path | None
) -> list[dict[str, Any]]:
    """Return a row for each readable photograph; the others are added to ``bad`` with the reason."""
    from vitcapr.data.images import BadImage
    from vitcapr.data.photographs import open_photograph
    from vitcapr.progress import Reporter

    if explain is not None:
        from vitcapr.report.figures.attention import attended_words
        from vitcapr.report.figures.style import save_figure

        captioner.check_attention()
    reporter, decoding = Reporter(), captioner.decoding
    penalty = f", length penalty {decoding.length_penalty:g}" if decoding.length_penalty else ""
    reporter.line(f"decoding {captioner.decoding_name or '(defaults)'}: {decoding.method}{penalty}")
    rows, drawn = [], Counter[str]()
    with reporter.track("caption", len(paths), "photographs") as tracker:
        for first in range(0, len(paths), BATCH):
            batch = paths[first : first + BATCH]
            images = {}
            for path in batch:
                try:
                    images[path] = open_photograph(path)
                except BadImage as error:
                    bad[str(path)] = error.reason
            captioned = captioner.caption(list(images.values()), attention=explain is not None)
            for (path, image), best in zip(images.items(), captioned, strict=True):
                candidates = best.rounded(6)
                row = {"path": str(path), **candidates[0], "candidates": candidates}
                if explain is not None:
                    assert best.attention is not None
                    drawn[path.name] += 1
                    name = path.name if drawn[path.name] == 1 else f"{path.name}-{drawn[path.name]}"
                    figure = explain / (name + FIGURE_SUFFIX)
                    save_figure(
                        attended_words(captioner.seen(image), best.candidates[0].tokens, best.attention), figure
                    )
                    row["attention"] = str(figure)
                rows.append(row)
            tracker.advance(len(batch))
    return rows


def _print(rows: Sequence[dict[str, Any]]) -> None:
    """Print one caption per line after the score that orders it, aligned; a terminal truncates long lines."""
    from vitcapr.formats.tables import Table, row
    from vitcapr.formats.terminal import print_listing

    lines = [
        row(one["path"] if rank == 0 else "", f"{candidate['score']:.2f}", candidate["caption"])
        for one in rows
        for rank, candidate in enumerate(one["candidates"])
    ]
    print_listing(Table("", ("", "", ""), tuple(lines), align="lrl"))
    for one in rows:
        if "attention" in one:
            print_lines(f"attention: {one['attention']}")


app = typer_app(main)
