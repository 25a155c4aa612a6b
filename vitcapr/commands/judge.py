"""Compare caption metrics with human judgments."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vitcapr.commands.main import typed
from vitcapr.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def main(
    captions: Annotated[Path, typer.Argument(help="Flickr8k.token.txt: lines of image#number, a tab and a caption.")],
    expert: Annotated[Path | None, typer.Option(help="ExpertAnnotations.txt of Flickr8k.")] = None,
    crowdflower: Annotated[Path | None, typer.Option(help="CrowdFlowerAnnotations.txt of Flickr8k.")] = None,
    metrics: Annotated[str, typer.Option(help="Metrics, separated by commas.")] = "bleu,meteor,rouge_l,cider",
    samples: Annotated[int, typer.Option(min=0, help="Bootstrap samples for the intervals; 0 for none.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    output: Annotated[Path | None, typer.Option(help="A CSV file for the correlations.")] = None,
) -> None:
    """Kendall's tau-b and tau-c, times 100, of each metric and the people's ratings.

    A candidate is scored against all captions of the image that was shown. Candidates that are among these are left
    out.
    """
    if (expert is None) == (crowdflower is None):
        raise UserError("judgments are of experts or of CrowdFlower", remedy="give --expert FILE or --crowdflower FILE")
    from vitcapr.api.evaluation import evaluate
    from vitcapr.data.flickr8k import parse_token_file
    from vitcapr.files import read_file, write_text
    from vitcapr.formats.containers import frame_to_csv
    from vitcapr.formats.scores import read_crowdflower, read_expert
    from vitcapr.metrics.judgments import agreement, candidates_of

    judgments = read_expert(expert) if expert is not None else read_crowdflower(crowdflower)  # type: ignore[arg-type]
    try:
        listed, rejected = parse_token_file(read_file(captions).decode("utf-8"), captions.name)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the captions cannot be read: {error}", where=captions, remedy="give the file") from error
    if rejected:
        item, reason = rejected[0]
        raise UserError(reason, where=item, remedy="give Flickr8k.token.txt")
    texts = {one.caption_id: one.text for one in listed}
    found = candidates_of(judgments, texts, {one.caption_id: one.image_id for one in listed})
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    evaluation = evaluate(found.captions, found.references, metrics=names, samples=0)
    per_image = evaluation.per_image.set_index("image_id").loc[list(found.captions)]
    scores = {name: per_image[name].to_numpy() for name in evaluation.scores["metric"] if name in per_image}
    table = agreement(scores, found.judgments, samples, seed)
    if output is not None:
        write_text(output, frame_to_csv(table))
    _print(table)
    print(f"\n{len(found.judgments)} candidates; {found.left_out} left out because they are references of their image")
    print(f"Protocol: {evaluation.protocol}")


def _print(table: "pd.DataFrame") -> None:
    from vitcapr.formats.tables import Table, number, row
    from vitcapr.formats.terminal import print_listing
    from vitcapr.metrics.labels import COLUMNS

    rows = []
    for metric, parts in table.groupby("metric", sort=False):
        cells = [number(one["tau"], one["low"], one["high"], scale=100) for one in parts.to_dict("records")]
        rows.append(row(COLUMNS[str(metric)].label, *cells, str(parts["n"].iloc[0])))
    print_listing(Table("", ("metric", "tau-b", "tau-c", "ratings"), tuple(rows)))


app = typed(main)
