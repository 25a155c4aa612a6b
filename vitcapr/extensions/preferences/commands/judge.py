"""Compare caption metrics with human judgments."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vitcapr.commands.main import WithoutContentCheck, split_commas, typer_app
from vitcapr.errors import UserError
from vitcapr.progress import print_lines

if TYPE_CHECKING:
    from vitcapr.extensions.preferences.judgments import Agreement
    from vitcapr.formats.tables import Table


def main(
    captions: Annotated[Path, typer.Argument(help="Flickr8k.token.txt: lines of image#number, a tab and a caption.")],
    expert: Annotated[Path | None, typer.Option(help="ExpertAnnotations.txt of Flickr8k.")] = None,
    crowdflower: Annotated[Path | None, typer.Option(help="CrowdFlowerAnnotations.txt of Flickr8k.")] = None,
    metrics: Annotated[str, typer.Option(help="Metrics, separated by commas.")] = "bleu,meteor,rouge_l,cider",
    retriever: Annotated[
        Path | None, typer.Option(help="Folder of a trained retriever for the cosine of caption and photograph.")
    ] = None,
    photographs: Annotated[Path | None, typer.Option(help="Folder of the judged photographs, for --retriever.")] = None,
    samples: Annotated[int, typer.Option(min=0, help="Bootstrap samples for the intervals; 0 for none.")] = 200,
    without_content_check: WithoutContentCheck = False,
    output: Annotated[
        Path | None, typer.Option(help="Folder for taus.csv, differences.csv, the figure and a page.")
    ] = None,
) -> None:
    """Kendall's tau-b and tau-c, times 100, of each metric and the people's ratings, with paired differences.

    Experts: candidates that are references of their image are left out. CrowdFlower: all candidates are scored, and
    the judged captions are not references of their image. These are the protocols of the CLIPScore paper.
    """
    if (expert is None) == (crowdflower is None):
        raise UserError("judgments are of experts or of CrowdFlower", remedy="give --expert FILE or --crowdflower FILE")
    if (retriever is None) != (photographs is None):
        raise UserError("a retriever compares captions with photographs", remedy="give --retriever and --photographs")
    from vitcapr.api.evaluation import evaluate
    from vitcapr.api.pairs_check import UNCHECKED
    from vitcapr.extensions.preferences.judgments import (
        agreement,
        check_judgments,
        drop_candidates,
        drop_references,
        read_corpus,
        read_crowdflower,
        read_expert,
    )
    from vitcapr.extensions.preferences.preference_figures import draw_agreement, write_results
    from vitcapr.formats.terminal import print_listing

    corpus = read_corpus(captions)
    if expert is not None:
        judged = drop_candidates(read_expert(expert), corpus)
    else:
        judged = drop_references(read_crowdflower(crowdflower), corpus)  # type: ignore[arg-type]
    content = UNCHECKED
    if not without_content_check:
        ratings = [sum(one.ratings) for one in judged.judgments]
        candidates, references = list(judged.captions.values()), list(judged.references.values())
        content = check_judgments(candidates, references, ratings, expert or crowdflower)
    # Most of the judged captions are those of other images.
    how: dict[str, Any] = {"metrics": split_commas(metrics), "content_check": False}
    evaluation = evaluate(judged.captions, judged.references, **how, samples=0)
    per_image = evaluation.per_image.set_index("image_id").loc[list(judged.captions)]
    scores = {name: per_image[name].to_numpy() for name in evaluation.scores["metric"] if name in per_image}
    protocol = [evaluation.protocol.removesuffix(f"|{UNCHECKED}") if content != UNCHECKED else evaluation.protocol]
    if retriever is not None and photographs is not None:
        from vitcapr.api.trained_retriever import load_retriever
        from vitcapr.extensions.preferences.judgments import retriever_scores

        model, folder = load_retriever(retriever), photographs
        scores |= retriever_scores(
            judged, model.embed_texts, lambda images: model.embed_images([folder / image for image in images])
        )
        protocol.append(f"retriever:{retriever.resolve().name}")
    agreements = agreement(scores, judged.judgments, samples, seed=0)
    table = _table(agreements, "c" if expert is not None else "b")
    notes = [f"{len(judged.judgments)} candidates; {judged.changed}", content, f"Protocol: `{'|'.join(protocol)}`"]
    print_listing(table)
    print_lines("", *notes)
    if output is not None:
        page = ("Agreement of metrics with human ratings", [table], ". ".join(notes))
        frames = {"taus": agreements.taus, "differences": agreements.differences}
        write_results(output, page, draw_agreement(agreements), **frames)


def _table(agreements: "Agreement", variant: str) -> "Table":
    """Return the correlations, and the difference of each metric from the one with the highest tau of the variant."""
    from vitcapr.formats.tables import NOTHING, Table, number, row
    from vitcapr.metrics.labels import COLUMNS

    taus, differences = (frame[frame["variant"] == variant] for frame in agreements)
    best = str(taus.set_index("metric")["tau"].idxmax())
    apart = {one["metric"]: one for one in differences[differences["other"] == best].to_dict("records")}
    rows = []
    for metric, parts in agreements.taus.groupby("metric", sort=False):
        cells = [number(one["tau"], one["low"], one["high"], scale=100) for one in parts.to_dict("records")]
        one = apart.get(metric)
        gap = number(one["difference"], one["low"], one["high"], scale=100, signed=True) if one else NOTHING
        rows.append(
            row(
                COLUMNS[str(metric)].label,
                *cells,
                gap,
                f"{one['p_value']:.3g}" if one and one["p_value"] >= 0 else NOTHING,
            )
        )
    heading = f"tau-{variant} - {COLUMNS[best].label}"
    return Table("", ("metric", "tau-b", "tau-c", heading, "p"), tuple(rows))


app = typer_app(main)
