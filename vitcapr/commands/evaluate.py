"""Score captions in COCO's format, or embeddings for retrieval, with intervals."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vitcapr.commands.main import split_commas, typer_app
from vitcapr.config.report import CAPTION_METRICS, FOR_ENGLISH
from vitcapr.errors import UserError
from vitcapr.progress import print_lines

if TYPE_CHECKING:
    import pandas as pd

    from vitcapr.api.evaluation import Evaluation


def main(
    results: Annotated[
        Path | None, typer.Argument(help='Results of COCO\'s form: [{"image_id": 139, "caption": "a cat"}, ...].')
    ] = None,
    references: Annotated[
        Path | None, typer.Option(help="Annotations of COCO, {image: [captions]}, or a table of images and captions.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            help="Results of another system for the same images, or, after --embeddings, its IMAGES TEXTS: prints the "
            "differences."
        ),
    ] = None,
    instances: Annotated[
        list[Path] | None,
        typer.Option(help="instances_*.json of COCO: scores CHAIR, the objects that are not in the image. Repeatable."),
    ] = None,
    metrics: Annotated[
        str, typer.Option(help=f"{', '.join(CAPTION_METRICS)}; separated by commas.")
    ] = "bleu,meteor,rouge_l,cider",
    language: Annotated[
        str, typer.Option(help="Language of the captions; other than en: by characters and without METEOR.")
    ] = "en",
    embeddings: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="IMAGES TEXTS", help="Two .npy files with one row per image and per text; scores retrieval."
        ),
    ] = None,
    captions_per_image: Annotated[
        int | None, typer.Option(min=1, help="Number of texts per image; the texts are in the order of the images.")
    ] = None,
    image_of_text: Annotated[
        Path | None, typer.Option(help="A .npy file with the row of each text's image, counted from 0.")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="Bootstrap samples for the intervals; 0 for none.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    per_image: Annotated[Path | None, typer.Option(help="A CSV file for the scores of every image.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Score captions as COCO's evaluation does, or embeddings by Recall@K, with 95 % intervals over the images.

    Needs no vocabulary, no photographs and no Java of your own.
    """
    other = None
    if embeddings is not None and against is not None and results is not None:
        other, results = (against, results), None
    if (results is None) == (embeddings is None):
        remedy = "give RESULTS.json --references ANNOTATIONS.json, or --embeddings images.npy texts.npy"
        raise UserError("an evaluation is of captions or of embeddings", remedy=remedy)
    if results is not None and references is None:
        raise UserError("captions are scored against references", remedy="give --references ANNOTATIONS.json")
    if embeddings is not None and (references is not None or instances):
        raise UserError("embeddings are scored without references", remedy="leave out --references and --instances")
    if embeddings is not None and against is not None and other is None:
        raise UserError("embeddings are compared with two files", remedy="give --against IMAGES.npy TEXTS.npy")
    if embeddings is None and (captions_per_image is not None or image_of_text is not None):
        raise UserError("captions name their images", remedy="leave out --captions-per-image and --image-of-text")
    if as_json and as_csv:
        raise UserError("the scores are printed in one form", remedy="give --json or --csv")
    given = [results, references, against, *(instances or ()), *(embeddings or ()), *(other or ()), image_of_text]
    for path in given:
        if path is not None and not path.is_file():
            raise UserError("no such file", where=path)

    from vitcapr.api.evaluation import evaluate
    from vitcapr.api.retrieval_evaluation import evaluate_retrieval
    from vitcapr.files import write_text
    from vitcapr.formats.containers import frame_to_csv

    if embeddings is None:
        assert results is not None
        assert references is not None
        how: dict[str, Any] = {"metrics": split_commas(metrics), "instances": instances or [], "language": language}
        scored = evaluate(results, references, against=against, **how, samples=samples, seed=seed)
    else:
        scored = evaluate_retrieval(
            *embeddings,
            captions_per_image=captions_per_image,
            image_of_text=image_of_text,
            against=other,
            samples=samples,
            seed=seed,
        )
    if per_image is not None:
        write_text(per_image, frame_to_csv(scored.per_image))
    if as_json:
        content: dict[str, Any] = {"metrics": _by_name(scored.scores), "protocol": scored.protocol}
        content["without_captions"] = scored.without_captions
        content["remarks"] = list(scored.remarks)
        if scored.differences is not None:
            content["differences"] = _by_name(scored.differences)
        print(json.dumps(content, indent=2, ensure_ascii=False))
    elif as_csv:
        print(frame_to_csv(scored.scores if scored.differences is None else scored.differences), end="")
    else:
        print_scores(scored, str(results or "embeddings"), against)
    if as_csv and scored.without_captions:
        print_lines(_coverage(scored), stream=sys.stderr)
    for remark in scored.remarks:
        print_lines(remark, stream=sys.stderr)
    if left_out := [name for name in split_commas(metrics) if name in FOR_ENGLISH and language != "en"]:
        print_lines(f"not scored: {', '.join(left_out)}, for English only", stream=sys.stderr)


def _coverage(scored: "Evaluation") -> str:
    return f"Scored: the {len(scored.per_image)} images with a caption; {scored.without_captions} have none."


def _by_name(frame: "pd.DataFrame") -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = json.loads(frame.set_index("metric").to_json(orient="index", double_precision=15))
    return rows


def print_scores(scored: "Evaluation", system: str, against: Path | None = None) -> None:
    """Print a row for each score, times 100 where it is a share, and the protocol."""
    from vitcapr.formats.tables import NOTHING, Table, row
    from vitcapr.formats.terminal import print_listing
    from vitcapr.metrics.labels import COLUMNS
    from vitcapr.report.score_tables import COMPARISON_COLUMNS, comparison_rows

    if scored.differences is not None:
        print_lines(f"before: {against}, after: {system}; scores times 100")
        rows = comparison_rows(_by_name(scored.differences))
        print_listing(Table("", COMPARISON_COLUMNS, tuple(rows), align="lrrrrrl"))
    else:
        print_lines(f"{system}: scores times 100, ranks as they are")
        scores = [(COLUMNS[name], score) for name, score in _by_name(scored.scores).items() if name in COLUMNS]
        cells = [(column.label, column.cell(score)) for column, score in scores]
        rows = [row(label, cell.text, cell.interval or NOTHING) for label, cell in cells]
        print_listing(Table("", ("score", "value", "95 % interval"), tuple(rows)))
    if scored.without_captions:
        print_lines(f"\n{_coverage(scored)}")
    print_lines(f"\nProtocol: {scored.protocol}")


app = typer_app(main)
